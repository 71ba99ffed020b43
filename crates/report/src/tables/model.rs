//! Models: the zoo, one model with its layers, and operations in a few words.

use crate::format::{count, difference, percent};
use crate::table::Table;
use stepcast_core::model::zoo::ZooModel;
use stepcast_core::model::{Conv2d, Counting, LayerFile, Model, Norm, Op, Padding};
use stepcast_core::quantity::{Bytes, Flops};

pub fn list(models: &[(&ZooModel, Model)]) -> Table {
    let mut table = Table::new("", ["name", "#parameters", "#GFLOP/sample", "#tensors", "input", "~source"]);
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

fn giga(operations: Flops) -> String {
    format!("{:.3}", operations.get() / 1e9)
}

/// The tables of one model: totals, operations by kind, published figures; its layers on request.
pub fn all(model: &Model, layers: bool) -> Vec<Table> {
    let mut tables = vec![totals(model), kinds(model), adjustments(model), published(model)];
    if layers {
        tables.push(self::layers(model));
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn totals(model: &Model) -> Table {
    let mut table = Table::new("", ["", "#", "~"]);
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
    let mut table = Table::new("", ["forward by kind", "#operations", "#share", "~counted"]);
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
        ["#forward", "#weights", "~reason"],
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
    let mut table = Table::new("As the paper states", ["", "#", "~"]);
    for (name, value, explanation) in rows {
        if let Some(value) = value {
            table.figure(name, count(value), explanation);
        }
    }
    table
}

fn layers(model: &Model) -> Table {
    let mut table = Table::new("", ["layer", "~operation", "output", "#operations", "#parameters"]);
    let or_dash = |value: u64| if value == 0 { "–".to_owned() } else { count(value) };
    for layer in model.layers() {
        table.row([
            layer.name.clone(),
            describe(&layer.op),
            layer.output.to_string(),
            or_dash(layer.cost.forward(Counting::ALL)),
            or_dash(layer.cost.weights.saturating_add(layer.cost.biases)),
        ]);
    }
    table.note = "Operations of all kinds, for one sample.".to_owned();
    table
}

/// The operation of a layer, such as "conv2d 3×3, stride 2".
pub fn describe(op: &Op) -> String {
    let name = LayerFile::from_op(op).op;
    match op {
        Op::Conv2d(conv) => convolution(conv),
        Op::Linear { bias, tied, .. } => {
            with(&name, [(!bias).then_some("no bias"), tied.then_some("tied")].into_iter().flatten())
        }
        Op::Pool { kernel, stride, padding, ceil, .. } => {
            let stride = (stride != kernel).then(|| format!("stride {}", square(*stride)));
            let parts = [stride, surroundings(*padding), ceil.then(|| "ceil".to_owned())];
            with(&format!("{name} {}", window(*kernel)), parts.into_iter().flatten())
        }
        Op::AdaptivePool { size, .. } if *size != (1, 1) => format!("{name} to {}", window(*size)),
        Op::Normalise(Norm::Batch { affine } | Norm::Layer { affine }) => {
            with(&name, (!affine).then_some("not affine"))
        }
        Op::Normalise(Norm::LocalResponse { depth }) => format!("{name}, depth {depth}"),
        Op::Embedding { count, width, sparse: false } => format!("{name} {count}×{width}"),
        Op::Embedding { count, width, sparse: true } => format!("sparse {name} {count}×{width}"),
        Op::PositionEmbedding { count } => format!("{name}, {count} rows"),
        Op::Attention { heads, causal } => {
            with(&format!("{name}, {heads} heads"), causal.then_some("causal"))
        }
        Op::SelectToken { index } => format!("{name} {index}"),
        Op::Shortcut { stride, .. } => with(&name, (*stride != 1).then(|| format!("stride {stride}"))),
        _ => name,
    }
}

fn convolution(conv: &Conv2d) -> String {
    let strided = |name: &str, pair: (u64, u64)| (pair != (1, 1)).then(|| format!("{name} {}", square(pair)));
    let parts = [
        strided("stride", conv.stride),
        surroundings(conv.padding),
        strided("dilation", conv.dilation),
        (conv.groups != 1).then(|| format!("{} groups", conv.groups)),
        (!conv.bias).then(|| "no bias".to_owned()),
    ];
    with(&format!("conv2d {}", window(conv.kernel)), parts.into_iter().flatten())
}

fn with(name: &str, parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    parts.into_iter().fold(name.to_owned(), |text, part| text + ", " + part.as_ref())
}

fn window((height, width): (u64, u64)) -> String {
    format!("{height}×{width}")
}

fn square(pair: (u64, u64)) -> String {
    if pair.0 == pair.1 { pair.0.to_string() } else { window(pair) }
}

fn surroundings(padding: Padding) -> Option<String> {
    match padding {
        Padding::Valid | Padding::Explicit { top: 0, bottom: 0, left: 0, right: 0 } => None,
        Padding::Same => Some("padding same".to_owned()),
        Padding::Explicit { top, bottom, left, right } if top == bottom && left == right => {
            Some(format!("padding {}", square((top, left))))
        }
        Padding::Explicit { top, bottom, left, right } => {
            Some(format!("padding {top},{bottom},{left},{right}"))
        }
    }
}
