//! Models as text: the list, the totals of one, its layers.

use super::table;
use super::{Screen, count, difference, percent};
use stepcast_core::model::zoo::Entry;
use stepcast_core::model::{Activation, Conv2d, Counting, Model, Norm, Op, Padding, Pool};
use stepcast_core::quantity::{Bytes, Flops};
use stepcast_report::table::{Column, Table};

/// All models, one row each.
pub(crate) fn list(models: &[(&Entry, Model)], screen: &Screen) -> String {
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
            entry.name.to_owned(),
            count(model.parameters()),
            giga(model.forward(Counting::default())),
            count(model.gradients().len() as u64),
            model.input().to_string(),
            citation(entry.source).to_owned(),
        ]);
    }
    let note = "GFLOP/sample: forward operations, a multiply-add being two. Tensors: gradients that the \
                backward pass produces. Models called zeng2023/… are for reproducing that paper.";
    format!("{}\n{}", table::render(&table, screen), screen.paragraph(2, note))
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

/// The totals of one model, and its layers where they are wanted.
pub(crate) fn show(entry: &Entry, model: &Model, layers: bool, screen: &Screen) -> String {
    let mut sections = vec![totals(entry, model, screen), kinds(model, screen)];
    if !model.adjustments().is_empty() {
        sections.push(adjustments(model, screen));
    }
    if let Some(published) = published(model, screen) {
        sections.push(published);
    }
    if layers {
        sections.push(layer_table(model, screen));
    }
    sections.join("\n")
}

fn totals(entry: &Entry, model: &Model, screen: &Screen) -> String {
    let mut table = Table::new("", [Column::names(""), Column::numbers(""), Column::words("")]);
    let mut row =
        |name: &str, value: String, note: &str| table.row([name.to_owned(), value, note.to_owned()]);
    let size = Bytes::new(model.parameters() as f64 * 4.0);
    row("parameters", count(model.parameters()), &format!("{} in 32 bits", size.human()));
    row("weights", count(model.weights()), adjusted(model));
    row("biases", count(model.biases()), "");
    row("buffers", count(model.buffers()), "not trained");
    row("layers", count(model.layers().len() as u64), "");
    row("gradients", count(model.gradients().len() as u64), "tensors that the backward pass produces");
    row(
        "forward",
        model.forward(Counting::default()).human(),
        "for one sample, multiply-adds counted as two",
    );
    row("input", model.input().to_string(), &format!("{} for one sample", model.input_bytes().human()));
    row("activations", model.activation_bytes().human(), "kept for the backward pass of one sample");
    let names = match entry.aliases {
        [] => String::new(),
        aliases => format!(" (also {})", aliases.join(", ")),
    };
    format!(
        "{}{names}: {}\n{}{}",
        screen.strong(entry.name),
        entry.description,
        screen.paragraph(0, &format!("Source: {}.", entry.source)),
        table::render(&table, screen)
    )
}

fn adjusted(model: &Model) -> &'static str {
    let moved = model.adjustments().iter().any(|adjustment| adjustment.weights != 0);
    if moved { "with the adjustments below" } else { "" }
}

fn kinds(model: &Model, screen: &Screen) -> String {
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
    table::render(&table, screen)
}

fn adjustments(model: &Model, screen: &Screen) -> String {
    let mut table =
        Table::new("", [Column::numbers("forward"), Column::numbers("weights"), Column::words("reason")]);
    let change = |value: i64| if value == 0 { "–".to_owned() } else { difference(value) };
    for adjustment in model.adjustments() {
        table.row([change(adjustment.forward), change(adjustment.weights), adjustment.reason.to_owned()]);
    }
    let title = screen.title("Adjustments: how the published counts depart from the layout");
    format!("{title}\n{}", table::render(&table, screen))
}

/// What a paper states besides the layout, if it does.
fn published(model: &Model, screen: &Screen) -> Option<String> {
    let published = model.published();
    let rows = [
        ("pushes", published.pushes.map(u64::from), "in one iteration, instead of one for each gradient"),
        ("parameters shipped", published.shipped, "in one push or pull"),
        ("forward", published.forward, "operations of one sample outside Table 1"),
    ];
    let mut table = Table::new("", [Column::names(""), Column::numbers(""), Column::words("")]);
    for (name, value, note) in rows {
        if let Some(value) = value {
            table.row([name.to_owned(), count(value), note.to_owned()]);
        }
    }
    let any = rows.iter().any(|(_, value, _)| value.is_some());
    any.then(|| format!("{}\n{}", screen.title("As the paper states"), table::render(&table, screen)))
}

fn layer_table(model: &Model, screen: &Screen) -> String {
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
    let quiet = |value: u64| if value == 0 { "–".to_owned() } else { count(value) };
    for layer in model.layers() {
        table.row([
            layer.name.clone(),
            operation(&layer.op),
            layer.output.to_string(),
            quiet(layer.cost.forward(Counting::ALL)),
            quiet(layer.cost.weights.saturating_add(layer.cost.biases)),
        ]);
    }
    let note = "Operations of all kinds, for one sample.";
    format!("{}\n{}", table::render(&table, screen), screen.paragraph(2, note))
}

/// An operation in a few words: "conv2d 3×3, stride 2".
pub(crate) fn operation(op: &Op) -> String {
    match op {
        Op::Input => "input".to_owned(),
        Op::Conv2d(conv) => convolution(conv),
        Op::Linear { bias, tied, .. } => {
            with("linear", [(!bias).then_some("no bias"), tied.then_some("tied")].into_iter().flatten())
        }
        Op::Pool { kind, kernel, stride, padding, ceil } => {
            let name = format!("{}-pool {}", pool(*kind), window(*kernel));
            let stride = (stride != kernel).then(|| format!("stride {}", square(*stride)));
            let parts = [stride, surroundings(*padding), ceil.then(|| "ceil".to_owned())];
            with(&name, parts.into_iter().flatten())
        }
        Op::AdaptivePool { kind, size: (1, 1) } => format!("global-{}-pool", pool(*kind)),
        Op::AdaptivePool { kind, size } => format!("adaptive-{}-pool to {}", pool(*kind), window(*size)),
        Op::Normalise(Norm::Batch { affine }) => with("batch-norm", (!affine).then_some("not affine")),
        Op::Normalise(Norm::Layer { affine }) => with("layer-norm", (!affine).then_some("not affine")),
        Op::Normalise(Norm::LocalResponse { depth }) => format!("local-response-norm, depth {depth}"),
        Op::Activate(activation) => non_linearity(*activation).to_owned(),
        Op::Embedding { count, width } => format!("embedding {count}×{width}"),
        Op::PositionEmbedding { count } => format!("position-embedding, {count} rows"),
        Op::ClassToken => "class-token".to_owned(),
        Op::Attention { heads, causal } => {
            with(&format!("attention, {heads} heads"), causal.then_some("causal"))
        }
        Op::Add => "add".to_owned(),
        Op::Multiply => "multiply".to_owned(),
        Op::Concat => "concat".to_owned(),
        Op::Flatten => "flatten".to_owned(),
        Op::Dropout => "dropout".to_owned(),
        Op::ToSequence => "to-sequence".to_owned(),
        Op::SelectToken { index } => format!("select-token {index}"),
        Op::Shortcut { stride, .. } => with("shortcut", (*stride != 1).then(|| format!("stride {stride}"))),
        Op::Counted(_) => "counted".to_owned(),
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

fn pool(kind: Pool) -> &'static str {
    match kind {
        Pool::Max => "max",
        Pool::Average => "average",
    }
}

fn non_linearity(activation: Activation) -> &'static str {
    match activation {
        Activation::Sigmoid => "sigmoid",
        Activation::Tanh => "tanh",
        Activation::Relu => "relu",
        Activation::Relu6 => "relu6",
        Activation::Gelu => "gelu",
        Activation::Silu => "silu",
        Activation::Hardswish => "hardswish",
        Activation::Softmax => "softmax",
    }
}
