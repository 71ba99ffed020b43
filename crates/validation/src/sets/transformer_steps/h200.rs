//! One H200: whole steps as scenarios; shards of blocks, of output layers and of experts as the method computes them.

use super::Step;
use crate::ValidationError;
use crate::embedded::packed_rows;
use crate::families::Figure;
use serde::Deserialize;
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::compute::{Parts, Shard, Software};
use stepcast_analytic::transformer::flops::Work;
use stepcast_core::machine::catalog;
use stepcast_core::model::transformer::{Experts, Transformer};
use stepcast_core::precision::Precision;
use stepcast_core::prior::Priors;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Mask;
use stepcast_study::fit::machine::Decoder;

const ROWS: &[u8] = include_bytes!("../../../../../validation/transformer-steps/h200.csv.gz");

const DEVICE: &str = "h200-sxm";

#[derive(Debug, Deserialize)]
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
enum Architecture {
    Gpt,
    Llama,
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

    fn step(&self) -> Result<Step, ValidationError> {
        let (name, measured) = (self.name(), self.step_ms / 1e3);
        Ok(Step { family: "step, H200", name, scenario: self.scenario()?, measured })
    }

    /// A shard, behind a pause: forward and backward.
    fn shard(&self, priors: &Priors) -> Result<[Figure; 2], ValidationError> {
        let device = catalog::device(DEVICE)?;
        let peak = device.peak(self.precision).unwrap_or_else(|| device.fp32_peak());
        let software = Software { precision: self.precision, fused: false, compiled: false };
        let parts = Parts::new(&device, peak, 1.0, software, &priors.transformer).rested();
        let shape = self.shape();
        let scenario = self.scenario()?;
        let damaged = || ValidationError::Data("a shard has no plan".to_owned());
        let plan = scenario.strategy.plan.as_ref().ok_or_else(damaged)?;
        let split = Split { tensor: self.tensor, ..Split::WHOLE };
        let work = Work { sequence: self.sequence, batch: self.micro_batch, mask: Mask::Causal };
        let with_experts = self.experts > 0;
        let shard = Shard::new(&shape, plan, &split, [with_experts, false], None, work);
        let (family, computed) = match self.kind {
            Kind::Head => {
                ("head shard, H200", parts.head(&shard, self.vocabulary as f64 / self.tensor as f64))
            }
            Kind::Bmm | Kind::Grouped => ("experts, H200", parts.expert_layer(&shard)),
            Kind::Block | Kind::Step => ("block shard, H200", parts.layer(&shard)),
        };
        let figure = |pass: &str, predicted: f64, measured: f64| Figure {
            family,
            name: format!("{} {pass}", self.name()),
            predicted: predicted * 1e3,
            measured,
        };
        let backward = computed.input.device + computed.weight.device;
        Ok([
            figure("forward", computed.forward.device.get(), self.forward_ms),
            figure("backward", backward.get(), self.backward_ms),
        ])
    }
}

pub(super) fn steps() -> Result<Vec<Step>, ValidationError> {
    let rows = packed_rows::<Row>(ROWS)?;
    rows.iter().filter(|row| row.kind == Kind::Step).map(Row::step).collect()
}

pub(super) fn shards() -> Result<Vec<Figure>, ValidationError> {
    let priors = Priors::shipped().map_err(|error| ValidationError::Data(error.to_string()))?;
    let mut figures = Vec::new();
    for row in packed_rows::<Row>(ROWS)?.iter().filter(|row| row.kind != Kind::Step) {
        figures.extend(row.shard(&priors)?);
    }
    Ok(figures)
}
