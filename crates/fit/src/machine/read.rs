//! The file of `kit/machine.py`: one JSON object a line.

use super::AttentionChoice;
use crate::measurements::{OFTEN, read_text};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::collectives::{Collective, CollectiveTimes};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_trace::json_reason;

/// PyTorch's description of the device, and its versions.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Described {
    #[serde(alias = "gpu")]
    pub(super) device: String,
    #[serde(default = "bf16")]
    pub(super) precision: Precision,
    #[serde(default = "gpu", rename = "type")]
    pub(super) kind: String,
}

fn bf16() -> Precision {
    Precision::Bf16
}

fn gpu() -> String {
    "gpu".to_owned()
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct MeasuredProduct {
    pub(super) family: String,
    pub(super) m: f64,
    pub(super) n: f64,
    pub(super) k: f64,
    /// Whether the device was under load before.
    pub(super) loaded: bool,
    pub(super) us: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct MeasuredAttention {
    pub(super) family: String,
    pub(super) heads: u64,
    pub(super) width: u64,
    pub(super) sequence: u64,
    pub(super) batch: u64,
    /// Which implementation was timed.
    pub(super) backend: AttentionChoice,
    pub(super) fwd_us: f64,
    pub(super) bwd_us: f64,
}

/// A pass over memory.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MeasuredPass {
    pub(super) family: String,
    pub(super) rate: Rate,
    pub(super) bytes: f64,
    pub(super) kernels: f64,
    pub(super) us: f64,
}

/// The rate that a pass measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Rate {
    /// Rate of norms, sums and activations.
    Pass,
    /// Rate of long copies and losses.
    Stream,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct MeasuredUpdate {
    pub(super) family: String,
    pub(super) bytes: f64,
    pub(super) us: f64,
}

/// A shard of a decoder, or a whole step of one.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct MeasuredDecoder {
    pub(super) model: String,
    pub(super) arch: String,
    pub(super) h: u64,
    pub(super) heads: u64,
    pub(super) kv: u64,
    pub(super) ffn: u64,
    pub(super) seq: u64,
    pub(super) mb: u64,
    pub(super) precision: String,
    #[serde(default = "one")]
    pub(super) t: u64,
    #[serde(default = "one", rename = "L")]
    pub(super) layers: u64,
    #[serde(default = "vocabulary")]
    pub(super) vocab: u64,
    #[serde(default)]
    pub(super) recompute: bool,
    #[serde(default)]
    pub(super) repeat: bool,
    #[serde(default)]
    pub(super) fwd_ms: f64,
    #[serde(default)]
    pub(super) bwd_ms: f64,
    #[serde(default)]
    pub(super) step_ms: Vec<f64>,
}

fn one() -> u64 {
    1
}

fn vocabulary() -> u64 {
    32_000
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct MeasuredCollective {
    pub(super) family: String,
    #[serde(rename = "N")]
    pub(super) ranks: u64,
    pub(super) bytes: f64,
    pub(super) us: f64,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Machine(Described),
    Product(MeasuredProduct),
    Attention(MeasuredAttention),
    Pass(MeasuredPass),
    Update(MeasuredUpdate),
    Block(MeasuredDecoder),
    Head(MeasuredDecoder),
    Step(MeasuredDecoder),
    Collective(MeasuredCollective),
    Network,
    #[serde(other)]
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) described: Option<Described>,
    pub(super) products: Vec<MeasuredProduct>,
    pub(super) attention: Vec<MeasuredAttention>,
    pub(super) passes: Vec<MeasuredPass>,
    pub(super) updates: Vec<MeasuredUpdate>,
    pub(super) blocks: Vec<MeasuredDecoder>,
    pub(super) heads: Vec<MeasuredDecoder>,
    pub(super) steps: Vec<MeasuredDecoder>,
    pub(super) collectives: Vec<MeasuredCollective>,
    /// Lines of networks, as `fit steps` reads them.
    pub(super) networks: String,
}

/// Reads a file, plain or compressed, with cancellation.
pub(super) fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Rows, Stopped> {
    let name = path.display().to_string();
    let text = read_text(path, "give the file that kit/machine.py wrote", wanted)?;
    let mut rows = Rows::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if number % OFTEN == 0 && wanted().is_break() {
            return Err(Stopped::Cancelled);
        }
        let place = format!("{name}:{}", number + 1);
        let wrong = |reason: String| {
            Fault::in_file(&place, reason, "give the lines that kit/machine.py writes (docs/kit.md)")
        };
        let read: Line = serde_json::from_str(line).map_err(|error| wrong(json_reason(&error)))?;
        let times: Vec<f64> = match &read {
            Line::Product(row) => vec![row.us],
            Line::Attention(row) => vec![row.fwd_us, row.bwd_us],
            Line::Pass(row) => vec![row.us],
            Line::Update(row) => vec![row.us],
            Line::Block(row) | Line::Head(row) => vec![row.fwd_ms, row.bwd_ms],
            Line::Step(row) if row.step_ms.is_empty() => vec![0.0],
            Line::Step(row) => row.step_ms.clone(),
            Line::Collective(row) => vec![row.us],
            Line::Machine(_) | Line::Network | Line::Other => Vec::new(),
        };
        if times.iter().any(|time| !(time.is_finite() && *time > 0.0)) {
            return Err(wrong("a time is missing or not above zero".to_owned()).into());
        }
        match read {
            Line::Machine(row) => rows.described = Some(row),
            Line::Product(row) => rows.products.push(row),
            Line::Attention(row) => rows.attention.push(row),
            Line::Pass(row) => rows.passes.push(row),
            Line::Update(row) => rows.updates.push(row),
            Line::Block(row) if !row.repeat => rows.blocks.push(row),
            Line::Head(row) if !row.repeat => rows.heads.push(row),
            Line::Step(row) if !row.repeat => rows.steps.push(row),
            Line::Collective(row) => rows.collectives.push(row),
            Line::Network => {
                rows.networks.push_str(line);
                rows.networks.push('\n');
            }
            Line::Block(_) | Line::Head(_) | Line::Step(_) | Line::Other => {}
        }
    }
    Ok(rows)
}

/// Times of each kind over each number of ranks, by size; kinds with a single size are left out.
pub(super) fn collective_times(rows: &[MeasuredCollective]) -> Vec<CollectiveTimes> {
    let mut found: BTreeMap<(&str, u64), BTreeMap<u64, f64>> = BTreeMap::new();
    for row in rows {
        found.entry((&row.family, row.ranks)).or_default().insert(row.bytes as u64, row.us * 1e-6);
    }
    let entry = |((name, ranks), times): ((&str, u64), BTreeMap<u64, f64>)| {
        let collective: Collective = serde_json::from_value(name.into()).ok()?;
        let measured = times.into_iter().map(|(size, time)| (Bytes::new(size as f64), Seconds::new(time)));
        Some(CollectiveTimes { collective, ranks, measured: measured.collect() })
    };
    found.into_iter().filter(|(_, times)| times.len() > 1).filter_map(entry).collect()
}
