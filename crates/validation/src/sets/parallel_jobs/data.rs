//! The file: measured collectives, profiles of layers and measured jobs, one JSON object a line.

use flate2::read::GzDecoder;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::collectives::{Collective, Curves};
use stepcast_core::fitted::transfer::Measured;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_stats::{mean, quantile};

/// A file beyond this is a mistake.
const MAX_FILE: u64 = 256 << 20;

/// The machines of a job: rate of their links, and their number, which decides how many cores each has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Place {
    pub(super) rate: String,
    pub(super) world: u64,
}

/// One layer of a profile, in seconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Layer {
    pub(super) fwd: f64,
    pub(super) bwd: f64,
    pub(super) opt: f64,
    #[serde(default)]
    pub(super) bwd_input: f64,
    #[serde(default)]
    pub(super) bwd_weight: f64,
}

/// Layers computed without communication: embedding, three blocks, output layer with the loss.
#[derive(Debug, Deserialize)]
pub(super) struct Profile {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) model: String,
    pub(super) b: u64,
    pub(super) t: u64,
    #[serde(default)]
    pub(super) sp: bool,
    /// 1 alone, else all ranks at once.
    pub(super) ranks: u64,
    pub(super) layers: Vec<Layer>,
    pub(super) split_layers: Option<Vec<Layer>>,
    /// Of all ranks, if they computed at once.
    #[serde(default)]
    pub(super) total_by_rank: Vec<f64>,
    #[serde(default)]
    noisy: bool,
}

/// What every job has.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) model: String,
    pub(super) b: u64,
    pub(super) iter: Vec<f64>,
    /// By rank.
    pub(super) parts: Vec<Vec<f64>>,
    pub(super) grad_bytes: Vec<f64>,
    #[serde(default)]
    pub(super) noisy: bool,
}

impl Job {
    /// The median iteration.
    pub(super) fn measured(&self) -> f64 {
        median(&self.iter)
    }
}

/// An operation of a recorded iteration: rank, stage, kind, micro-batch, start, end.
#[derive(Debug, Deserialize)]
pub(super) struct Span(
    pub(super) u32,
    pub(super) u32,
    pub(super) String,
    pub(super) u32,
    pub(super) f64,
    pub(super) f64,
);

/// A pipeline job.
#[derive(Debug, Deserialize)]
pub(super) struct PipelineJob {
    #[serde(flatten)]
    pub(super) job: Job,
    pub(super) schedule: String,
    pub(super) p: u32,
    pub(super) v: u32,
    pub(super) m: u32,
    pub(super) dp: u64,
    /// Blocks of every virtual stage.
    pub(super) split: Vec<u32>,
    pub(super) act_bytes: f64,
    /// Median seconds by stage and kind: "0F".
    pub(super) ops: BTreeMap<String, f64>,
    pub(super) timeline: Vec<Span>,
}

/// A tensor-parallel job.
#[derive(Debug, Deserialize)]
pub(super) struct TensorJob {
    #[serde(flatten)]
    pub(super) job: Job,
    pub(super) t: u64,
    pub(super) dp: u64,
    #[serde(rename = "L")]
    pub(super) layers: u64,
    pub(super) sp: bool,
    pub(super) overlap: bool,
    pub(super) norm_bytes: f64,
}

/// A job with sharded states.
#[derive(Debug, Deserialize)]
pub(super) struct ShardedJob {
    #[serde(flatten)]
    pub(super) job: Job,
    #[serde(rename = "N")]
    pub(super) ranks: u64,
    #[serde(rename = "L")]
    pub(super) layers: usize,
    #[serde(rename = "impl")]
    pub(super) implementation: String,
    pub(super) stage: u32,
    pub(super) overlap: bool,
}

#[derive(Debug, Deserialize)]
struct Timed {
    #[serde(flatten)]
    place: Place,
    #[serde(rename = "N")]
    ranks: Option<u64>,
    bytes: u64,
    #[serde(alias = "half_round_trip")]
    s: Vec<f64>,
    #[serde(default)]
    noisy: bool,
}

#[derive(Debug, Deserialize)]
struct Head {
    kind: String,
}

/// The contents of the file; jobs that other load disturbed are left out.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) curves: BTreeMap<Place, Curves>,
    pub(super) profiles: Vec<Profile>,
    pub(super) pipelines: Vec<PipelineJob>,
    pub(super) tensors: Vec<TensorJob>,
    pub(super) sharded: Vec<ShardedJob>,
}

impl Data {
    /// Reads a file, compressed or not.
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let remedy = "use a file in the format of validation/parallel-jobs";
        let failed = |reason: String| Fault::new(format!("{}: {reason}", path.display()), remedy);
        let text = text(path).map_err(|error| failed(error.to_string()))?;
        let mut data = Self::default();
        let mut timed: BTreeMap<(Place, &str, u64), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let broken = |error: serde_json::Error| failed(format!("line {}: {error}", number + 1));
            let Head { kind } = serde_json::from_str(line).map_err(broken)?;
            let collective =
                ["p2p", "allreduce", "allgather", "reducescatter"].iter().find(|&&name| name == kind);
            if let Some(&name) = collective {
                let row: Timed = serde_json::from_str(line).map_err(broken)?;
                if !row.noisy {
                    let key = (row.place, name, row.ranks.unwrap_or(2));
                    timed.entry(key).or_default().entry(row.bytes).or_default().push(median(&row.s));
                }
                continue;
            }
            match kind.as_str() {
                "profile" => data.profiles.push(serde_json::from_str(line).map_err(broken)?),
                "pp" => data.pipelines.push(serde_json::from_str(line).map_err(broken)?),
                "tp" => data.tensors.push(serde_json::from_str(line).map_err(broken)?),
                "zero" => data.sharded.push(serde_json::from_str(line).map_err(broken)?),
                _ => return Err(failed(format!("line {}: there is no kind \"{kind}\"", number + 1))),
            }
        }
        data.profiles.retain(|row| !row.noisy);
        data.pipelines.retain(|row| !row.job.noisy);
        data.tensors.retain(|row| !row.job.noisy);
        data.sharded.retain(|row| !row.job.noisy);
        for ((place, name, ranks), sizes) in timed {
            let point =
                |(&size, times): (&u64, &Vec<f64>)| (Bytes::new(size as f64), Seconds::new(mean(times)));
            let points: Vec<_> = sizes.iter().map(point).collect();
            let curve = Measured::new(&points).map_err(|error| failed(error.to_string()))?;
            let collective = match name {
                "p2p" => Collective::Send,
                "allreduce" => Collective::AllReduce,
                "allgather" => Collective::AllGather,
                _ => Collective::ReduceScatter,
            };
            data.curves.entry(place).or_default().add(collective, ranks, curve);
        }
        Ok(data)
    }

    /// Time of a collective at a place, while `active` ranks communicate.
    pub(super) fn time(
        &self,
        place: &Place,
        collective: Collective,
        ranks: u64,
        bytes: f64,
        active: u64,
    ) -> Result<Seconds, Fault> {
        let curves = self.curves.get(place);
        let time = curves.and_then(|curves| curves.time(collective, ranks, Bytes::new(bytes), active));
        time.ok_or_else(|| {
            let reason = format!("no {collective:?} over {ranks} ranks was measured at {}", place.rate);
            Fault::new(reason, "measure it, or leave the job out")
        })
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::read(path)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(bytes).map_err(|error| std::io::Error::other(error.to_string()));
    }
    let mut text = String::new();
    GzDecoder::new(bytes.as_slice()).take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn median(values: &[f64]) -> f64 {
    quantile(&mut values.to_vec(), 0.5)
}
