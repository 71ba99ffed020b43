//! Published peaks: torchtitan (FSDP2) and Megatron-LM.

use super::plain;
use crate::ValidationError;
use crate::embedded::rows;
use crate::families::Figure;
use serde::Deserialize;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::memory::{Allowance, MemoryInputs};
use stepcast_core::model::transformer::{Transformer, zoo};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{Implementation, Recompute, Sharding, States};
use stepcast_validation_data::transformer_memory::PUBLISHED as ROWS;

const GIB: f64 = (1_u64 << 30) as f64;

#[derive(Debug, Deserialize)]
struct Row {
    software: Software,
    model: String,
    layers: u64,
    sequence: u64,
    micro_batch: u64,
    micro_batches: u64,
    tensor: u64,
    context: u64,
    pipeline: u64,
    data: u64,
    recompute: Recompute,
    gib: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Software {
    Torchtitan,
    Megatron,
}

impl Row {
    /// `fragmentation` is what the allocator reserves beyond tensors.
    fn figure(&self, fragmentation: f64) -> Result<Figure, ValidationError> {
        let Row { tensor, context, pipeline, data, .. } = *self;
        let model = zoo::find(&self.model)
            .ok_or_else(|| ValidationError::Data(format!("there is no model {}", self.model)))?;
        let shape = Transformer { layers: self.layers, sequence: self.sequence, ..model };
        let split = Split { tensor, sequence_parallel: tensor > 1, context, pipeline, data, ..Split::WHOLE };
        let run = |implementation| MemoryInputs {
            split,
            micro_batch: self.micro_batch,
            micro_batches: self.micro_batches,
            recompute: self.recompute.into(),
            ..plain(&shape, implementation)
        };
        let most = |held: &MemoryInputs<'_>| {
            (0..pipeline).map(|stage| held.rank(stage).total()).fold(Bytes::ZERO, Bytes::max)
        };
        let (family, predicted) = match self.software {
            Software::Torchtitan => {
                let run = run(Implementation::Pytorch);
                let tensors = most(&MemoryInputs { sharding: Sharding::Zero3, states: States::Fp32, ..run });
                let allowance = Allowance { fragmentation, fixed: Bytes::ZERO };
                ("reserved, torchtitan", allowance.with(tensors))
            }
            Software::Megatron => {
                let held = MemoryInputs { sharding: Sharding::Zero1, ..run(Implementation::Megatron) };
                ("peak, Megatron-LM", most(&held))
            }
        };
        let name = format!(
            "{} of {} layers, {} x {} tokens, t {tensor} c {context} p {pipeline} d {data}, recompute {}",
            self.model, self.layers, self.micro_batch, self.sequence, self.recompute
        );
        Ok(Figure { family, name, predicted: predicted.get(), measured: self.gib * GIB })
    }
}

pub(super) fn figures() -> Result<Vec<Figure>, ValidationError> {
    let fragmentation = super::h200::fragmentation()?;
    rows::<Row>(ROWS)?.iter().map(|row| row.figure(fragmentation)).collect()
}
