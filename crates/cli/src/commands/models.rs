//! `stepcast models`: the zoo, and one model of it in detail.

use crate::answer::{Answer, Output};
use crate::render::{answers, table};
use clap::Subcommand;
use serde_json::{Value, json};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{Parameters, Transformer};
use stepcast_core::model::zoo::{self, ZooModel};
use stepcast_core::model::{Adjustment, Counting, Layer, Model};
use stepcast_core::suggest;
use stepcast_report::tables::model;

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Show one model: parameters, operations, gradients
    #[command(after_help = include_str!("examples/models-show.txt"))]
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
    let totals: Vec<_> = models.iter().map(|(entry, model)| totals(entry, model)).collect();
    output.answer(&totals, |screen| table::section(&model::list(&models), screen))
}

pub(super) fn show(name: &str, layers: bool, output: &Output) -> Result<Answer, Fault> {
    let entry = zoo::find(name)
        .ok_or_else(|| Fault::new(format!("there is no model \"{name}\" in the zoo"), zoo::remedy(name)))?;
    let model = build(entry)?;
    let mut details = totals(entry, &model);
    let cost = model.cost();
    // Forward operations of the layout, without adjustments.
    details["by_kind"] = json!({
        "multiply_add": cost.multiply_add,
        "bias": cost.bias,
        "activation": cost.activation,
        "pooling": cost.pooling,
        "normalisation": cost.normalisation,
        "elementwise": cost.elementwise,
    });
    if let Some(shape) = entry.shape() {
        details["transformer"] = json!({
            "shape": shape.section(&entry.name),
            "active_parameters": shape.active_parameters(),
            "parts": parts(&shape),
        });
    }
    if layers {
        details["layers"] = model.layers().iter().map(layer).collect();
    }
    output.answer(&details, |screen| answers::model(entry, &model, layers, screen))
}

fn build(entry: &ZooModel) -> Result<Model, Fault> {
    entry.build().map_err(|error| Fault::new(format!("the zoo's {} is broken: {error}", entry.name), ""))
}

fn totals(entry: &ZooModel, model: &Model) -> Value {
    let mut totals = json!({
        "name": entry.name,
        "aliases": entry.aliases,
        "description": entry.description,
        "source": entry.source,
        "input": model.input().dims(),
        "parameters": model.parameters(),
        "weights": model.weights(),
        "biases": model.biases(),
        "buffers": model.buffers(),
        // Multiply-adds, two operations each, with the adjustments of a paper.
        "forward_flop": model.forward(Counting::default()).get(),
        "gradient_tensors": model.gradients().len(),
        "gradient_bytes": model.parameters().saturating_mul(4),
        "input_bytes": model.input_bytes().get(),
        "activation_bytes": model.activation_bytes().get(),
    });
    let adjustment = |own: &Adjustment| json!({ "reason": own.reason, "forward_flop": own.forward, "weights": own.weights });
    if !model.adjustments().is_empty() {
        totals["adjustments"] = model.adjustments().iter().map(adjustment).collect();
    }
    totals
}

/// Parameters of one part of each kind, by how ranks divide them: `key_value` in whole heads, `every` not at all.
fn parts(shape: &Transformer) -> Vec<Value> {
    let row = |part: &str, of: &str, parameters: Parameters, count: u64| {
        let Parameters { tensor, key_value, expert, every } = parameters;
        let one = parameters.total();
        (count > 0 && one > 0).then(|| {
            json!({
                "part": part, "of": of, "parameters": one, "count": count,
                "tensor": tensor, "key_value": key_value, "expert": expert, "every": every,
            })
        })
    };
    let parts = shape.parts();
    let mut rows = vec![row("embedding", "model", parts.embedding, 1)];
    for own in &parts.layers {
        let block = own.block.to_string();
        rows.extend(own.parts.iter().map(|part| row(part.name, &block, part.parameters, own.count)));
    }
    rows.extend([row("final norm", "model", parts.final_norm, 1), row("output", "model", parts.output, 1)]);
    rows.into_iter().flatten().collect()
}

fn layer(layer: &Layer) -> Value {
    json!({
        "name": layer.name,
        "op": model::describe(&layer.op),
        "inputs": layer.inputs,
        "output": layer.output.dims(),
        "forward_flop": layer.cost.forward(Counting::ALL),
        "parameters": layer.cost.weights.saturating_add(layer.cost.biases),
    })
}
