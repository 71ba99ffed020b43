//! Measured steps as scenarios of names; shards of blocks, of output layers and of experts as the method computes them.

use crate::ValidationError;
use crate::judged::Judged;
use crate::priors::{LogStep, Observation};
use crate::recipe::{Recipe, words};
use crate::records::{self, Fields};
use serde_json::Value;
use std::sync::Arc;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_analytic::transformer::compute::{Parts, Shard, Software};
use stepcast_analytic::transformer::flops::Work;
use stepcast_analytic::transformer::{LayerKind, Split};
use stepcast_core::machine::{Device, catalog};
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::{Block, Delta, Experts, FeedForward, Mamba, Mixer, Transformer};
use stepcast_core::precision::Precision;
use stepcast_core::prior::Priors;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Mask;
use stepcast_fit::machine::Decoder;

/// The device of measured steps and shards.
const DEVICE: &str = "h200-sxm";

pub(in crate::sets) struct StepCase {
    /// The columns of its file.
    pub(in crate::sets) row: Value,
    pub(in crate::sets) family: String,
    pub(in crate::sets) name: String,
    pub(in crate::sets) publisher: String,
    /// The software that it ran under.
    pub(in crate::sets) framework: String,
    /// The model that it has in common with runs that are alternatives to it; empty where there are none.
    pub(in crate::sets) model: String,
    /// What is left out together with it: all figures of its model, or of its publisher.
    left_out: String,
    is_fitted: bool,
    /// Seconds.
    pub(in crate::sets) measured: f64,
    predict: LogStep,
    pub(in crate::sets) step: Option<Scenario>,
}

impl StepCase {
    /// A figure of this project's H200.
    fn own(family: &str, name: String, left_out: String, measured: f64, predict: LogStep) -> Self {
        let own = "Stepcast".to_owned();
        Self {
            row: Value::Null,
            family: family.to_owned(),
            name,
            publisher: own.clone(),
            framework: own,
            model: String::new(),
            left_out,
            is_fitted: true,
            measured,
            predict,
            step: None,
        }
    }

    /// The cases that recipes of a set turn into scenarios.
    pub(in crate::sets) fn of_set(set: &str) -> Result<Vec<Self>, ValidationError> {
        let mut cases = Vec::new();
        for recipe in &crate::find(set)?.definition()?.recipe {
            for row in recipe.cases(set)? {
                cases.push(Self::of_row(recipe, row)?);
            }
        }
        Ok(cases)
    }

    fn of_row(recipe: &Recipe, row: Value) -> Result<Self, ValidationError> {
        let scenario = recipe.scenario(&row)?;
        let publisher = words(&recipe.publisher, &row)?;
        let or_publisher = |template: &Option<String>| {
            template.as_ref().map_or_else(|| Ok(publisher.clone()), |template| words(template, &row))
        };
        Ok(Self {
            family: words(&recipe.group, &row)?,
            name: words(&recipe.name, &row)?,
            framework: or_publisher(&recipe.framework)?,
            model: words(&recipe.model, &row)?,
            left_out: or_publisher(&recipe.left_out)?,
            is_fitted: words(&recipe.fitted, &row)? != "false",
            measured: recipe.seconds(&row)?.unwrap_or(f64::NAN),
            predict: log_step(&scenario),
            step: Some(scenario),
            publisher,
            row,
        })
    }

    /// The figure without a prediction yet.
    pub(in crate::sets) fn unpredicted(&self, half_width: Option<f64>) -> Judged {
        Judged { half_width, ..Judged::new(&self.family, &self.name, f64::NAN, self.measured) }
    }

    /// The figure as the fit of constants sees it.
    pub(in crate::sets) fn observation(self) -> Observation {
        Observation {
            family: self.family,
            source: self.left_out,
            is_fitted: self.is_fitted,
            measured: self.measured.ln(),
            predict: self.predict,
        }
    }
}

fn log_step(scenario: &Scenario) -> LogStep {
    let own = scenario.clone();
    Box::new(move |priors: &Priors| {
        let moved = Scenario { priors: Arc::new(priors.clone()), ..own.clone() };
        Ok(Method.step(&moved)?.get().ln())
    })
}

pub(in crate::sets) fn all_cases() -> Result<Vec<StepCase>, ValidationError> {
    let mut cases = on_one_gpu()?;
    cases.extend(scans()?);
    cases.extend(StepCase::of_set("transformer-steps")?);
    Ok(cases)
}

/// "Gpt" and "Llama", as figures are named.
fn titled(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// One H200: whole steps, and shards, behind a pause, forward and backward.
pub(super) fn on_one_gpu() -> Result<Vec<StepCase>, ValidationError> {
    let mut cases = Vec::new();
    for row in records::cases("transformer-steps/h200.csv.gz")? {
        let (kind, architecture) = (row.text("kind"), row.text("architecture"));
        let damaged = |error| ValidationError::Data(format!("transformer-steps: {error}"));
        let precision: Precision = serde_json::from_value(row.field("precision").clone())
            .map_err(|error| damaged(error.to_string()))?;
        let [hidden, layers, sequence, micro_batch, vocabulary, tensor] =
            ["hidden", "layers", "sequence", "micro_batch", "vocabulary", "tensor"].map(|key| row.count(key));
        let decoder = Decoder {
            gpt: architecture == "gpt",
            hidden,
            heads: [row.count("heads"), row.count("kv_heads")],
            mlp_width: row.count("mlp_width"),
            layers,
            sequence,
            micro_batch,
            vocabulary,
            precision,
            recompute: row.is("recompute"),
            tensor,
        };
        let scenario = decoder.scenario(DEVICE)?;
        let name = format!(
            "{} {} of {hidden}, {layers} layers, {micro_batch} x {sequence} tokens, V {vocabulary}, t {tensor}, {precision}{}",
            titled(architecture),
            titled(kind),
            if row.is("recompute") { ", recomputed" } else { "" }
        );
        let experts = row.count("experts");
        let model = format!(
            "h200 {} of {hidden}{}",
            titled(architecture),
            if experts > 0 { ", experts" } else { "" }
        );
        let family = match kind {
            "step" => {
                let (measured, predict) = (row.number("step_ms") / 1e3, log_step(&scenario));
                let case = StepCase::own("step, H200", name, model, measured, predict);
                cases.push(StepCase { step: Some(scenario), ..case });
                continue;
            }
            "head" => "head shard, H200",
            "bmm" | "grouped" => "experts, H200",
            _ => "block shard, H200",
        };
        let experts = (experts > 0).then_some(Experts {
            count: experts,
            active: row.count("active"),
            width: row.count("mlp_width"),
            shared_width: 0,
            dense_layers: 0,
            every: 1,
            router_bias: false,
            shared_gate: false,
        });
        let shape = Transformer { experts, ..decoder.shape() };
        let block = shape.block(shape.layers - 1);
        let shard = Alone {
            kind: kind.to_owned(),
            decoder,
            shape,
            block,
            device: catalog::device(DEVICE)?,
            scenario,
        };
        cases.extend(shard.passes(&row, family, &name, &model));
    }
    Ok(cases)
}

/// Convolution, scan and norm of delta nets and of Mamba. Their passes over memory were counted on these rows.
fn scans() -> Result<Vec<StepCase>, ValidationError> {
    let mut cases = Vec::new();
    for row in records::cases("transformer-steps/scans.csv")? {
        let kind = row.text("kind");
        let [key_heads, heads, key_width, width, groups, state, chunk, sequence, micro_batch] = [
            "key_heads",
            "heads",
            "key_width",
            "width",
            "groups",
            "state",
            "chunk",
            "sequence",
            "micro_batch",
        ]
        .map(|key| row.count(key));
        let decoder = Decoder {
            gpt: false,
            hidden: 4096,
            heads: [32, 32],
            mlp_width: 4096,
            layers: 1,
            sequence,
            micro_batch,
            vocabulary: 32_000,
            precision: Precision::Bf16,
            recompute: false,
            tensor: 1,
        };
        let mut shape = decoder.shape();
        let convolution = 4;
        let mixer = match kind {
            "delta" => {
                let [value_heads, value_width] = [heads, width];
                shape.delta = Some(Delta { key_heads, value_heads, key_width, value_width, convolution });
                Mixer::Linear
            }
            _ => {
                let step_rank = if kind == "mamba-1" { 256 } else { 0 };
                shape.mamba = Some(Mamba {
                    heads,
                    head_width: width,
                    groups,
                    state,
                    convolution,
                    chunk,
                    step_rank,
                    step_norms: true,
                });
                Mixer::Mamba
            }
        };
        let name = format!("{kind}, {heads} heads of {width}, {micro_batch} x {sequence} tokens");
        let shard = Alone {
            kind: "scan".to_owned(),
            scenario: decoder.scenario(DEVICE)?,
            decoder,
            shape,
            block: Block { mixer, feed: FeedForward::None },
            device: catalog::device(DEVICE)?,
        };
        let passes = shard.passes(&row, "scans, H200", &name, kind);
        cases.extend(passes.map(|case| StepCase { is_fitted: false, ..case }));
    }
    Ok(cases)
}

/// A shard that is computed alone.
struct Alone {
    kind: String,
    decoder: Decoder,
    shape: Transformer,
    block: Block,
    device: Device,
    scenario: Scenario,
}

impl Alone {
    /// Its forward and its backward pass, each a figure.
    fn passes(
        self,
        row: &Value,
        family: &str,
        name: &str,
        model: &str,
    ) -> impl Iterator<Item = StepCase> + use<> {
        let shard = Arc::new(self);
        let case = |index: usize, pass: &str| {
            let shard = Arc::clone(&shard);
            let predict: LogStep = Box::new(move |priors| Ok(shard.times(priors)?[index].ln()));
            let measured = row.number(&format!("{pass}_ms")) / 1e3;
            StepCase::own(family, format!("{name} {pass}"), model.to_owned(), measured, predict)
        };
        [case(0, "forward"), case(1, "backward")].into_iter()
    }

    /// Seconds of the forward and of the backward pass.
    fn times(&self, priors: &Priors) -> Result<[f64; 2], ValidationError> {
        let Self { decoder, shape, block, device, scenario, .. } = self;
        let precision = decoder.precision;
        let peak = device.peak(precision).unwrap_or_else(|| device.fp32_peak());
        let software = Software::eager(precision);
        let parts = Parts::new(device, peak, 1.0, software, &priors.transformer).rested();
        let damaged = || ValidationError::Data("a shard has no plan".to_owned());
        let plan = scenario.strategy.plan.as_ref().ok_or_else(damaged)?;
        let split = Split { tensor: decoder.tensor, ..Split::WHOLE };
        let work = Work { sequence: decoder.sequence, batch: decoder.micro_batch, mask: Mask::Causal };
        let kind = LayerKind { block: *block, ..LayerKind::default() };
        let shard = Shard::new(shape, plan, &split, kind, false, work);
        let computed = match self.kind.as_str() {
            "head" => parts.head(&shard, decoder.vocabulary as f64 / decoder.tensor as f64),
            "bmm" | "grouped" => parts.expert_layer(&shard),
            "scan" => parts.scan(&shard),
            _ => parts.layer(&shard),
        };
        let backward = computed.input.device + computed.weight.device;
        Ok([computed.forward.device.get(), backward.get()])
    }
}
