//! `stepcast models`: the zoo, and one model of it in detail.

use crate::answer::{Answer, Output};
use crate::render::{answers, table};
use clap::Subcommand;
use serde::Serialize;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{Parameters, Part, Transformer, TransformerSection};
use stepcast_core::model::zoo::{self, ZooModel};
use stepcast_core::model::{Counting, Layer, Model};
use stepcast_core::suggest;
use stepcast_report::tables::model;

pub(super) const EXAMPLES: &str = include_str!("examples/models.txt");

const SHOW_EXAMPLES: &str = include_str!("examples/models-show.txt");

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Show one model: parameters, operations, gradients
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Name or alias
        name: String,

        /// One row for each layer
        #[arg(long)]
        layers: bool,
    },
}

/// The only command that builds the whole zoo, or the part of it that a name is in.
pub(super) fn list(name: Option<&str>, output: &Output) -> Result<Answer, Fault> {
    let wanted = |entry: &&ZooModel| {
        name.is_none_or(|name| suggest::normal(&entry.name).contains(&suggest::normal(name)))
    };
    let models: Vec<(&ZooModel, Model)> = zoo::entries()
        .filter(wanted)
        .map(|entry| Ok((entry, build(entry)?)))
        .collect::<Result<_, Fault>>()?;
    if let (Some(name), true) = (name, models.is_empty()) {
        return Err(Fault::new(format!("there is no model \"{name}\" in the zoo"), zoo::remedy(name)));
    }
    let totals: Vec<ModelTotals<'_>> =
        models.iter().map(|(entry, model)| ModelTotals::from_model(entry, model)).collect();
    output.answer(&totals, |screen| table::section(&model::list(&models), screen))
}

pub(super) fn show(name: &str, layers: bool, output: &Output) -> Result<Answer, Fault> {
    let entry = zoo::find(name)
        .ok_or_else(|| Fault::new(format!("there is no model \"{name}\" in the zoo"), zoo::remedy(name)))?;
    let model = build(entry)?;
    let details = ModelDetails {
        totals: ModelTotals::from_model(entry, &model),
        by_kind: OperationCounts::from_model(&model),
        transformer: entry.shape().map(|shape| TransformerShape::from_transformer(&entry.name, &shape)),
        layers: layers.then(|| model.layers().iter().map(LayerRow::from_layer).collect()),
    };
    output.answer(&details, |screen| answers::model(entry, &model, layers, screen))
}

fn build(entry: &ZooModel) -> Result<Model, Fault> {
    entry.build().map_err(|error| Fault::new(format!("the zoo's {} is broken: {error}", entry.name), ""))
}

#[derive(Serialize)]
struct ModelTotals<'a> {
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

impl<'a> ModelTotals<'a> {
    fn from_model(entry: &'a ZooModel, model: &'a Model) -> Self {
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
struct ModelDetails<'a> {
    #[serde(flatten)]
    totals: ModelTotals<'a>,
    /// Forward operations of the layout, without adjustments, by kind.
    by_kind: OperationCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    transformer: Option<TransformerShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<LayerRow<'a>>>,
}

#[derive(Serialize)]
struct OperationCounts {
    multiply_add: u64,
    bias: u64,
    activation: u64,
    pooling: u64,
    normalisation: u64,
    elementwise: u64,
}

impl OperationCounts {
    fn from_model(model: &Model) -> Self {
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

#[derive(Serialize)]
struct TransformerShape {
    /// As `[model.transformer]` has it.
    shape: TransformerSection,
    active_parameters: u64,
    parts: Vec<PartRow>,
}

impl TransformerShape {
    fn from_transformer(name: &str, shape: &Transformer) -> Self {
        let parts = shape.parts();
        let single = |part, parameters| PartRow::new(part, "model", parameters, 1);
        let mut rows = vec![single("embedding", parts.embedding)];
        for own in &parts.layers {
            let row =
                |part: &Part| PartRow::new(part.name, &own.block.to_string(), part.parameters, own.count);
            rows.extend(own.parts.iter().map(row));
        }
        rows.extend([single("final norm", parts.final_norm), single("output", parts.output)]);
        rows.retain(|row| row.count > 0 && row.parameters > 0);
        Self { shape: shape.section(name), active_parameters: shape.active_parameters(), parts: rows }
    }
}

#[derive(Serialize)]
struct PartRow {
    part: &'static str,
    of: String,
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
    fn new(part: &'static str, of: &str, parameters: Parameters, count: u64) -> Self {
        let Parameters { tensor, key_value, expert, every } = parameters;
        Self {
            part,
            of: of.to_owned(),
            parameters: parameters.total(),
            count,
            tensor,
            key_value,
            expert,
            every,
        }
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
    fn from_layer(layer: &'a Layer) -> Self {
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
