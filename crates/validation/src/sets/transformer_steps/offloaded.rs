//! One H200 whose host keeps activations or optimiser states. Nothing is fitted to these steps.

use super::Case;
use super::h200::{Architecture, DEVICE};
use crate::ValidationError;
use crate::embedded::rows;
use serde::Deserialize;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::BytesPerSec;
use stepcast_core::strategy::Offload;
use stepcast_fit::machine::Decoder;
use stepcast_validation_data::transformer_steps::OFFLOADED;

/// Bytes per second in a unit of the file.
const GIGA: f64 = 1e9;

#[derive(Debug, Clone, Deserialize)]
struct Row {
    architecture: Architecture,
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    mlp_width: u64,
    layers: u64,
    sequence: u64,
    micro_batch: u64,
    vocabulary: u64,
    offload: Offload,
    host_link: f64,
    host_memory: f64,
    step_ms: f64,
}

impl Row {
    fn case(&self) -> Result<Case, ValidationError> {
        let decoder = Decoder {
            gpt: matches!(self.architecture, Architecture::Gpt),
            hidden: self.hidden,
            heads: [self.heads, self.kv_heads],
            mlp_width: self.mlp_width,
            layers: self.layers,
            sequence: self.sequence,
            micro_batch: self.micro_batch,
            vocabulary: self.vocabulary,
            precision: Precision::Bf16,
            recompute: false,
            tensor: 1,
        };
        let mut scenario = decoder.scenario(DEVICE)?;
        if let Some(plan) = &mut scenario.strategy.plan {
            plan.offload = vec![self.offload];
            plan.host_link = Some(BytesPerSec::new(self.host_link * GIGA));
            plan.host_memory = BytesPerSec::new(self.host_memory * GIGA);
        }
        let Self { architecture, hidden, layers, sequence, micro_batch, offload, .. } = self;
        let name = format!(
            "{architecture:?} of {hidden}, {layers} layers, {micro_batch} x {sequence} tokens, {offload}"
        );
        let model = architecture.model(*hidden);
        let case = Case::step("offloaded, H200", name, model, scenario, self.step_ms / 1e3);
        Ok(Case { is_fitted: false, ..case })
    }
}

pub(super) fn cases() -> Result<Vec<Case>, ValidationError> {
    rows::<Row>(OFFLOADED)?.iter().map(Row::case).collect()
}
