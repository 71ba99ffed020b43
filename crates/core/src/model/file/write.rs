//! Converts a model back to the format of the user.

use super::{LayerFile, ModelFile, Pair};
use crate::model::cost::Cost;
use crate::model::op::{Activation, Norm, Op, Padding, Pool};
use crate::model::{Layer, LayerId, Model};

/// Name of the first input in the file.
const INPUT: &str = "input";

impl ModelFile {
    /// The layers of `model`, each with its name and inputs. Deviations of published counts from the layout are not
    /// included.
    pub fn of(model: &Model) -> Self {
        let layers = model.layers();
        let name = |id: &LayerId| match layers.get(*id as usize) {
            Some(layer) if *id > 0 => layer.name.clone(),
            _ => INPUT.to_owned(),
        };
        let write = |(id, layer): (usize, &Layer)| {
            let follows = layer.op == Op::Input || layer.inputs == [id as LayerId - 1];
            LayerFile {
                name: Some(layer.name.clone()),
                inputs: (!follows).then(|| layer.inputs.iter().map(name).collect()),
                shape: matches!(layer.op, Op::Input | Op::Counted(_)).then(|| layer.output.dims().to_vec()),
                ..LayerFile::of(&layer.op)
            }
        };
        Self {
            name: model.name.clone(),
            input: model.input().dims().to_vec(),
            layers: layers.iter().enumerate().skip(1).map(write).collect(),
        }
    }
}

impl LayerFile {
    /// An operation with its settings, without a layer name.
    pub fn of(op: &Op) -> Self {
        let plain = |op: &str| Self { op: op.to_owned(), ..Self::default() };
        match *op {
            Op::Input => plain("input"),
            Op::Conv2d(conv) => Self {
                out: Some(conv.out),
                kernel: Some(pair(conv.kernel)),
                stride: unless(conv.stride, (1, 1)).map(pair),
                padding: unless(conv.padding, Padding::Valid),
                dilation: unless(conv.dilation, (1, 1)).map(pair),
                groups: unless(conv.groups, 1),
                bias: unless(conv.bias, true),
                ..plain("conv2d")
            },
            Op::Linear { out, bias, tied } => Self {
                out: Some(out),
                bias: unless(bias, true),
                tied: unless(tied, false),
                ..plain("linear")
            },
            Op::Pool { kind, kernel, stride, padding, ceil } => Self {
                kernel: Some(pair(kernel)),
                stride: unless(stride, kernel).map(pair),
                padding: unless(padding, Padding::Valid),
                ceil: unless(ceil, false),
                ..plain(if kind == Pool::Max { "max-pool" } else { "average-pool" })
            },
            Op::AdaptivePool { kind, size: (1, 1) } => {
                plain(if kind == Pool::Max { "global-max-pool" } else { "global-average-pool" })
            }
            Op::AdaptivePool { kind, size } => Self {
                size: Some(pair(size)),
                ..plain(if kind == Pool::Max { "adaptive-max-pool" } else { "adaptive-average-pool" })
            },
            Op::Normalise(Norm::Batch { affine }) => {
                Self { affine: unless(affine, true), ..plain("batch-norm") }
            }
            Op::Normalise(Norm::Layer { affine }) => {
                Self { affine: unless(affine, true), ..plain("layer-norm") }
            }
            Op::Normalise(Norm::LocalResponse { depth }) => {
                Self { depth: Some(depth), ..plain("local-response-norm") }
            }
            Op::Activate(activation) => plain(activation_name(activation)),
            Op::Embedding { count, width, sparse } => Self {
                count: Some(count),
                width: Some(width),
                sparse: unless(sparse, false),
                ..plain("embedding")
            },
            Op::PositionEmbedding { count } => Self { count: Some(count), ..plain("position-embedding") },
            Op::ClassToken => plain("class-token"),
            Op::Attention { heads, causal } => {
                Self { heads: Some(heads), causal: unless(causal, false), ..plain("attention") }
            }
            Op::Add => plain("add"),
            Op::Multiply => plain("multiply"),
            Op::Concat => plain("concat"),
            Op::Flatten => plain("flatten"),
            Op::Dropout => plain("dropout"),
            Op::ToSequence => plain("to-sequence"),
            Op::SelectToken { index } => Self { index: unless(index, 0), ..plain("select-token") },
            Op::Shortcut { out, stride } => Self {
                out: Some(out),
                stride: unless((stride, stride), (1, 1)).map(pair),
                ..plain("shortcut")
            },
            Op::Counted(cost) => Self { cost: unless(cost, Cost::default()), ..plain("counted") },
        }
    }
}

fn activation_name(activation: Activation) -> &'static str {
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

fn pair((height, width): (u64, u64)) -> Pair {
    Pair { height, width }
}

/// The value, or none if it is the default.
fn unless<T: PartialEq>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::zoo;

    #[test]
    fn the_zoo_reads_what_is_written() {
        for name in zoo::names() {
            let model = zoo::build(name).unwrap();
            let text = toml::to_string(&ModelFile::of(&model)).unwrap();
            let again = toml::from_str::<ModelFile>(&text).unwrap().build().unwrap();
            assert_eq!(again.layers(), model.layers(), "{name}");
        }
    }
}
