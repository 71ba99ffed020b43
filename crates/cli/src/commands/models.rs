//! `stepcast models`: the zoo, and one model of it in detail.

use super::json;
use crate::Answer;
use crate::args::Models;
use crate::render::screen::Screen;
use crate::render::{answers, table};
use serde::Serialize;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{Parameters, Transformer, TransformerSection};
use stepcast_core::model::zoo::{self, ZooModel};
use stepcast_core::model::{Counting, Layer, Model};

pub(super) fn run(command: Option<&Models>, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    match command {
        None => list(as_json, screen),
        Some(Models::Show { name, layers }) => show(name, *layers, as_json, screen),
    }
}

/// The only command that builds the whole zoo.
fn list(as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let build = |entry: &'static ZooModel| {
        entry.build().map(|model| (entry, model)).map_err(|error| broken(entry, &error))
    };
    let models: Vec<(&ZooModel, Model)> = zoo::entries().map(build).collect::<Result<_, _>>()?;
    if as_json {
        return json(&models.iter().map(|(entry, model)| Totals::of(entry, model)).collect::<Vec<_>>());
    }
    Ok(table::section(&stepcast_report::tables::model::list(&models), screen).into())
}

fn show(name: &str, layers: bool, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let entry = zoo::find(name)
        .ok_or_else(|| Fault::new(format!("there is no model \"{name}\" in the zoo"), zoo::remedy(name)))?;
    let built = entry.build().map_err(|error| broken(entry, &error))?;
    if as_json {
        let layers = layers.then(|| built.layers().iter().map(LayerRow::of).collect());
        let transformer = entry.shape().map(|shape| Shape::of(&entry.name, &shape));
        let (totals, by_kind) = (Totals::of(entry, &built), Kinds::of(&built));
        return json(&Details { totals, by_kind, transformer, layers });
    }
    Ok(answers::model(entry, &built, layers, screen).into())
}

fn broken(entry: &ZooModel, error: &impl std::fmt::Display) -> Fault {
    Fault::new(format!("the zoo's {} is broken: {error}", entry.name), "")
}

/// One model for programs.
#[derive(Serialize)]
struct Totals<'a> {
    name: &'a str,
    aliases: &'a [String],
    description: &'a str,
    source: &'a str,
    input: &'a [u64],
    parameters: u64,
    weights: u64,
    biases: u64,
    buffers: u64,
    /// Multiply-adds, two operations each, with the adjustments of a paper.
    forward_flop: f64,
    gradient_tensors: usize,
    gradient_bytes: u64,
    input_bytes: f64,
    activation_bytes: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    adjustments: Vec<AdjustmentRow<'a>>,
}

impl<'a> Totals<'a> {
    fn of(entry: &'a ZooModel, model: &'a Model) -> Self {
        let adjustments = model.adjustments().iter().map(|adjustment| AdjustmentRow {
            reason: &adjustment.reason,
            forward_flop: adjustment.forward,
            weights: adjustment.weights,
        });
        Self {
            name: &entry.name,
            aliases: &entry.aliases,
            description: &entry.description,
            source: &entry.source,
            input: model.input().dims(),
            parameters: model.parameters(),
            weights: model.weights(),
            biases: model.biases(),
            buffers: model.buffers(),
            forward_flop: model.forward(Counting::default()).get(),
            gradient_tensors: model.gradients().len(),
            gradient_bytes: model.parameters().saturating_mul(4),
            input_bytes: model.input_bytes().get(),
            activation_bytes: model.activation_bytes().get(),
            adjustments: adjustments.collect(),
        }
    }
}

#[derive(Serialize)]
struct AdjustmentRow<'a> {
    reason: &'a str,
    forward_flop: i64,
    weights: i64,
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(flatten)]
    totals: Totals<'a>,
    /// Forward operations of the layout, without adjustments, by kind.
    by_kind: Kinds,
    #[serde(skip_serializing_if = "Option::is_none")]
    transformer: Option<Shape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<LayerRow<'a>>>,
}

#[derive(Serialize)]
struct Kinds {
    multiply_add: u64,
    bias: u64,
    activation: u64,
    pooling: u64,
    normalisation: u64,
    elementwise: u64,
}

impl Kinds {
    fn of(model: &Model) -> Self {
        let cost = model.cost();
        Self {
            multiply_add: cost.multiply_add,
            bias: cost.bias,
            activation: cost.activation,
            pooling: cost.pooling,
            normalisation: cost.normalisation,
            elementwise: cost.elementwise,
        }
    }
}

/// A transformer by its shape.
#[derive(Serialize)]
struct Shape {
    /// As `[model.transformer]` has it.
    shape: TransformerSection,
    active_parameters: u64,
    parts: Vec<PartRow>,
}

impl Shape {
    fn of(name: &str, shape: &Transformer) -> Self {
        let parts = shape.parts();
        let single = |part, parameters| PartRow::of(part, "model", parameters, 1);
        let mut rows = vec![single("embedding", parts.embedding)];
        for (kind, (layer, count)) in [("dense layer", &parts.dense), ("expert layer", &parts.expert)] {
            rows.extend(layer.iter().map(|part| PartRow::of(part.name, kind, part.parameters, *count)));
        }
        rows.extend([single("final norm", parts.final_norm), single("output", parts.output)]);
        rows.retain(|row| row.count > 0 && row.parameters > 0);
        Self { shape: shape.section(name), active_parameters: shape.active_parameters(), parts: rows }
    }
}

#[derive(Serialize)]
struct PartRow {
    part: &'static str,
    of: &'static str,
    /// Of one such part.
    parameters: u64,
    count: u64,
    /// Divided by tensor parallelism.
    tensor: u64,
    /// Divided by tensor parallelism in whole key-value heads.
    key_value: u64,
    /// Divided by expert parallelism.
    expert: u64,
    /// On every rank.
    every: u64,
}

impl PartRow {
    fn of(part: &'static str, of: &'static str, parameters: Parameters, count: u64) -> Self {
        let Parameters { tensor, key_value, expert, every } = parameters;
        Self { part, of, parameters: parameters.total(), count, tensor, key_value, expert, every }
    }
}

#[derive(Serialize)]
struct LayerRow<'a> {
    name: &'a str,
    op: String,
    inputs: &'a [u32],
    output: &'a [u64],
    /// Operations of all kinds.
    forward_flop: u64,
    parameters: u64,
}

impl<'a> LayerRow<'a> {
    fn of(layer: &'a Layer) -> Self {
        Self {
            name: &layer.name,
            op: stepcast_report::tables::model::describe(&layer.op),
            inputs: &layer.inputs,
            output: layer.output.dims(),
            forward_flop: layer.cost.forward(Counting::ALL),
            parameters: layer.cost.weights.saturating_add(layer.cost.biases),
        }
    }
}
