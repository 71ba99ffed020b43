//! Decoders on one H200: peaks of steps, and what shards of blocks and output layers keep.

use super::plain;
use crate::ValidationError;
use crate::embedded::rows;
use crate::families::Figure;
use serde::Deserialize;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::memory::MemoryInputs;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::strategy::{Implementation, Recompute, States};
use stepcast_stats::mean;
use stepcast_validation_data::transformer_memory::H200 as ROWS;

/// A measured peak, or what a shard keeps.
#[derive(Debug, Deserialize)]
struct Row {
    kind: Kind,
    architecture: Architecture,
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    mlp_width: u64,
    sequence: u64,
    micro_batch: u64,
    precision: Precision,
    layers: u64,
    vocabulary: u64,
    recompute: bool,
    tensor: u64,
    bytes: f64,
    /// Of steps: what the allocator had taken from the device at most.
    reserved: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Step,
    Block,
    Head,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Architecture {
    Gpt,
    Llama,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Precision {
    Amp,
    Bf16,
}

impl Row {
    fn shape(&self) -> Transformer {
        let heads = [self.heads, self.kv_heads];
        let (layers, hidden, vocabulary) = (self.layers, self.hidden, self.vocabulary);
        match self.architecture {
            Architecture::Gpt => Transformer::gpt(layers, hidden, self.heads, vocabulary, self.sequence),
            Architecture::Llama => {
                Transformer::llama(layers, hidden, heads, self.mlp_width, vocabulary, self.sequence)
            }
        }
    }

    fn figure(&self) -> Figure {
        let shape = self.shape();
        let held = MemoryInputs {
            split: Split { tensor: self.tensor, ..Split::WHOLE },
            micro_batch: self.micro_batch,
            states: if self.precision == Precision::Amp { States::Fp32 } else { States::Bf16 },
            recompute: if self.recompute { Recompute::Layer } else { Recompute::None }.into(),
            ..plain(&shape, Implementation::Pytorch)
        };
        let (family, predicted) = match self.kind {
            Kind::Step => ("peak of a step, H200", held.rank(0).total()),
            Kind::Block => ("kept by a shard, H200", held.kept_by(false, held.recompute.what)),
            Kind::Head => ("kept by a shard, H200", held.kept_by_head()),
        };
        let name = format!(
            "{:?} {:?} h {} {:?}, {} layers, {} x {} tokens, V {}, t {}, recompute {}",
            self.kind,
            self.architecture,
            self.hidden,
            self.precision,
            self.layers,
            self.micro_batch,
            self.sequence,
            self.vocabulary,
            self.tensor,
            self.recompute
        );
        Figure { family, name: name.to_lowercase(), predicted: predicted.get(), measured: self.bytes }
    }
}

pub(super) fn figures() -> Result<Vec<Figure>, ValidationError> {
    Ok(rows::<Row>(ROWS)?.iter().map(Row::figure).collect())
}

/// What the allocator reserves beyond tensors, as a share of them: the mean over all steps.
pub(super) fn fragmentation() -> Result<f64, ValidationError> {
    let rows = rows::<Row>(ROWS)?;
    let shares: Vec<f64> =
        rows.iter().filter_map(|row| row.reserved.map(|reserved| reserved / row.bytes - 1.0)).collect();
    Ok(mean(&shares))
}
