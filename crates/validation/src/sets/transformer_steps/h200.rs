//! One H200: whole steps as scenarios; shards of blocks, of output layers and of experts as the method computes them.

use super::Case;
use crate::ValidationError;
use crate::embedded::packed_rows;
use serde::Deserialize;
use std::sync::Arc;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::compute::{Parts, Shard, Software};
use stepcast_analytic::transformer::flops::Work;
use stepcast_core::machine::{Device, catalog};
use stepcast_core::model::transformer::{Experts, Transformer};
use stepcast_core::precision::Precision;
use stepcast_core::prior::Priors;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Mask;
use stepcast_fit::machine::Decoder;
use stepcast_validation_data::transformer_steps::H200 as ROWS;

pub(super) const DEVICE: &str = "h200-sxm";

#[derive(Debug, Clone, Deserialize)]
struct Row {
    kind: Kind,
    architecture: Architecture,
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    mlp_width: u64,
    layers: u64,
    sequence: u64,
    micro_batch: u64,
    vocabulary: u64,
    precision: Precision,
    recompute: bool,
    tensor: u64,
    experts: u64,
    active: u64,
    forward_ms: f64,
    backward_ms: f64,
    step_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Step,
    Block,
    Head,
    Bmm,
    Grouped,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Architecture {
    Gpt,
    Llama,
}

impl Architecture {
    /// What is left out together: all rows of an architecture and width.
    pub(super) fn model(self, hidden: u64) -> String {
        format!("H200 {self:?} of {hidden}").to_lowercase()
    }
}

impl Row {
    fn shape(&self) -> Transformer {
        let experts = (self.experts > 0).then_some(Experts {
            count: self.experts,
            active: self.active,
            width: self.mlp_width,
            shared_width: 0,
            dense_layers: 0,
            router_bias: false,
        });
        Transformer { experts, ..self.decoder().shape() }
    }

    fn decoder(&self) -> Decoder {
        Decoder {
            gpt: matches!(self.architecture, Architecture::Gpt),
            hidden: self.hidden,
            heads: [self.heads, self.kv_heads],
            mlp_width: self.mlp_width,
            layers: self.layers,
            sequence: self.sequence,
            micro_batch: self.micro_batch,
            vocabulary: self.vocabulary,
            precision: self.precision,
            recompute: self.recompute,
            tensor: self.tensor,
        }
    }

    fn name(&self) -> String {
        let Row { hidden, layers, sequence, micro_batch, precision, tensor, .. } = self;
        let again = if self.recompute { ", recomputed" } else { "" };
        format!(
            "{:?} {:?} of {hidden}, {layers} layers, {micro_batch} x {sequence} tokens, V {}, t {tensor}, {precision}{again}",
            self.architecture, self.kind, self.vocabulary
        )
    }

    /// The scenario of names, with one device for each rank.
    fn scenario(&self) -> Result<Scenario, ValidationError> {
        Ok(self.decoder().scenario(DEVICE)?)
    }

    /// What is left out together; experts by themselves.
    fn model(&self) -> String {
        let model = self.architecture.model(self.hidden);
        if self.experts > 0 { format!("{model}, experts") } else { model }
    }

    fn step(&self) -> Result<Case, ValidationError> {
        let (name, measured) = (self.name(), self.step_ms / 1e3);
        Ok(Case::step("step, H200", name, self.model(), self.scenario()?, measured))
    }

    /// A shard, behind a pause: forward and backward.
    fn shard(&self) -> Result<[Case; 2], ValidationError> {
        let family = match self.kind {
            Kind::Head => "head shard, H200",
            Kind::Bmm | Kind::Grouped => "experts, H200",
            Kind::Block | Kind::Step => "block shard, H200",
        };
        let shard = Arc::new(Alone {
            row: self.clone(),
            device: catalog::device(DEVICE)?,
            scenario: self.scenario()?,
        });
        let case = |pass: &str, index: usize, measured: f64| {
            let shard = Arc::clone(&shard);
            Case {
                family,
                name: format!("{} {pass}", self.name()),
                model: self.model(),
                is_fitted: true,
                measured: measured / 1e3,
                predict: Box::new(move |priors| Ok(shard.times(priors)?[index].ln())),
                step: None,
            }
        };
        Ok([case("forward", 0, self.forward_ms), case("backward", 1, self.backward_ms)])
    }
}

/// A shard that is computed alone.
struct Alone {
    row: Row,
    device: Device,
    scenario: Scenario,
}

impl Alone {
    /// Seconds of the forward and of the backward pass.
    fn times(&self, priors: &Priors) -> Result<[f64; 2], ValidationError> {
        let Self { row, device, scenario } = self;
        let peak = device.peak(row.precision).unwrap_or_else(|| device.fp32_peak());
        let software = Software { precision: row.precision, fused: false, compiled: false, float8: false };
        let parts = Parts::new(device, peak, 1.0, software, &priors.transformer).rested();
        let shape = row.shape();
        let damaged = || ValidationError::Data("a shard has no plan".to_owned());
        let plan = scenario.strategy.plan.as_ref().ok_or_else(damaged)?;
        let split = Split { tensor: row.tensor, ..Split::WHOLE };
        let work = Work { sequence: row.sequence, batch: row.micro_batch, mask: Mask::Causal };
        let shard = Shard::new(&shape, plan, &split, [row.experts > 0, false], None, work);
        let computed = match row.kind {
            Kind::Head => parts.head(&shard, row.vocabulary as f64 / row.tensor as f64),
            Kind::Bmm | Kind::Grouped => parts.expert_layer(&shard),
            Kind::Block | Kind::Step => parts.layer(&shard),
        };
        let backward = computed.input.device + computed.weight.device;
        Ok([computed.forward.device.get(), backward.get()])
    }
}

pub(super) fn cases() -> Result<Vec<Case>, ValidationError> {
    let mut cases = Vec::new();
    for row in packed_rows::<Row>(ROWS)? {
        match row.kind {
            Kind::Step => cases.push(row.step()?),
            _ => cases.extend(row.shard()?),
        }
    }
    Ok(cases)
}
