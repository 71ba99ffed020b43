//! Models of the zoo: the list, the totals of one, its layers.

use super::operation;
use crate::format::{count, difference, percent};
use crate::table::{Column, Table};
use stepcast_core::model::zoo::ZooModel;
use stepcast_core::model::{Counting, Model};
use stepcast_core::quantity::{Bytes, Flops};

/// All models, one row each.
pub fn list(models: &[(&ZooModel, Model)]) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::names("name"),
            Column::numbers("parameters"),
            Column::numbers("GFLOP/sample"),
            Column::numbers("tensors"),
            Column::names("input"),
            Column::words("source"),
        ],
    );
    for (entry, model) in models {
        table.row([
            entry.name.clone(),
            count(model.parameters()),
            giga(model.forward(Counting::default())),
            count(model.gradients().len() as u64),
            model.input().to_string(),
            citation(&entry.source).to_owned(),
        ]);
    }
    table.note = "GFLOP/sample: operations of the forward pass, a multiply-add counted as two. Tensors: gradients of the \
                  backward pass. Models named zeng2023/… reproduce that paper."
        .to_owned();
    table
}

/// The authors and the year; `show` has the rest.
fn citation(source: &str) -> &str {
    let first = source.split([',', ';']).next().unwrap_or(source);
    first.strip_prefix("layout of ").unwrap_or(first)
}

/// Billions of operations.
fn giga(operations: Flops) -> String {
    format!("{:.3}", operations.get() / 1e9)
}

/// The tables of one model: totals, operations by kind, what a paper says; its layers if they are wanted.
pub fn all(model: &Model, layers: bool) -> Vec<Table> {
    let mut tables = vec![totals(model), kinds(model), adjustments(model), published(model)];
    if layers {
        tables.push(self::layers(model));
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn totals(model: &Model) -> Table {
    let mut table = Table::new("", [Column::names(""), Column::numbers(""), Column::words("")]);
    let size = Bytes::new(model.parameters() as f64 * 4.0);
    let adjusted = model.adjustments().iter().any(|adjustment| adjustment.weights != 0);
    table.figure("parameters", count(model.parameters()), format!("{} in 32 bits", size.human()));
    table.figure("weights", count(model.weights()), if adjusted { "with the adjustments below" } else { "" });
    table.figure("biases", count(model.biases()), "");
    table.figure("buffers", count(model.buffers()), "not trained");
    table.figure("layers", count(model.layers().len() as u64), "");
    table.figure("gradients", count(model.gradients().len() as u64), "tensors of the backward pass");
    let forward = model.forward(Counting::default());
    table.figure("forward", forward.human(), "for one sample, a multiply-add counted as two");
    let input = format!("{} for one sample", model.input_bytes().human());
    table.figure("input", model.input().to_string(), input);
    let activations = model.activation_bytes();
    table.figure("activations", activations.human(), "kept for the backward pass of one sample");
    table
}

fn kinds(model: &Model) -> Table {
    let cost = model.cost();
    let all = cost.forward(Counting::ALL) as f64;
    let mut table = Table::new(
        "",
        [
            Column::names("forward by kind"),
            Column::numbers("operations"),
            Column::numbers("share"),
            Column::words("counted"),
        ],
    );
    let kinds = [
        ("multiply-add", cost.multiply_add, "always"),
        ("bias", cost.bias, "with count = [\"bias\"]"),
        ("activation", cost.activation, "with count = [\"activation\"]"),
        ("pooling", cost.pooling, "with count = [\"pooling\"]"),
        ("normalisation", cost.normalisation, "with count = [\"normalisation\"]"),
        ("elementwise", cost.elementwise, "with count = [\"elementwise\"]"),
    ];
    for (name, operations, counted) in kinds.into_iter().filter(|(_, operations, _)| *operations > 0) {
        let share = percent(operations as f64 / all);
        table.row([name.to_owned(), count(operations), share, counted.to_owned()]);
    }
    table
}

fn adjustments(model: &Model) -> Table {
    let mut table = Table::new(
        "Adjustments: how the published counts differ from the layout",
        [Column::numbers("forward"), Column::numbers("weights"), Column::words("reason")],
    );
    let change = |value: i64| if value == 0 { "–".to_owned() } else { difference(value) };
    for adjustment in model.adjustments() {
        table.row([change(adjustment.forward), change(adjustment.weights), adjustment.reason.clone()]);
    }
    table
}

/// Figures that a paper states besides the layout.
fn published(model: &Model) -> Table {
    let published = model.published();
    let rows = [
        ("pushes", published.pushes.map(u64::from), "in one iteration, instead of one for each gradient"),
        ("parameters shipped", published.shipped, "in one push or pull"),
        ("forward", published.forward, "operations of one sample outside Table 1"),
    ];
    let mut table =
        Table::new("As the paper states", [Column::names(""), Column::numbers(""), Column::words("")]);
    for (name, value, explanation) in rows {
        if let Some(value) = value {
            table.figure(name, count(value), explanation);
        }
    }
    table
}

fn layers(model: &Model) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::names("layer"),
            Column::words("operation"),
            Column::names("output"),
            Column::numbers("operations"),
            Column::numbers("parameters"),
        ],
    );
    let or_dash = |value: u64| if value == 0 { "–".to_owned() } else { count(value) };
    for layer in model.layers() {
        table.row([
            layer.name.clone(),
            operation::describe(&layer.op),
            layer.output.to_string(),
            or_dash(layer.cost.forward(Counting::ALL)),
            or_dash(layer.cost.weights.saturating_add(layer.cost.biases)),
        ]);
    }
    table.note = "Operations of all kinds, for one sample.".to_owned();
    table
}
