//! Operations of layers in a few words.

use stepcast_core::model::{Activation, Conv2d, Norm, Op, Padding, Pool};

/// The operation of a layer, such as "conv2d 3×3, stride 2".
pub fn describe(op: &Op) -> String {
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
        Op::Embedding { count, width, sparse: false } => format!("embedding {count}×{width}"),
        Op::Embedding { count, width, sparse: true } => format!("sparse embedding {count}×{width}"),
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
