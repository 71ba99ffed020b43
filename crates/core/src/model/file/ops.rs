//! Operations as files write them: one row for each, from which its keys, its reader and its writer follow.

use super::LayerFile;
use super::formula::Value;
use crate::model::cost::{Cost, CostKind};
use crate::model::op::{Activation, Conv2d, Norm, Op, Padding, Pool};
use crate::model::shape::ShapeError;
use std::collections::BTreeMap;

/// What holds without a key, if anything does.
macro_rules! usual {
    ($op:literal, $key:ident) => {
        return Err(missing($op, stringify!($key)))
    };
    ($op:literal, $key:ident, $usual:expr) => {
        $usual
    };
}

/// The setting of a key that is written, or nothing where it is the usual one.
macro_rules! written {
    ($key:ident) => {
        Some($key.into())
    };
    ($key:ident, $usual:expr) => {
        ($key != $usual).then(|| $key.into())
    };
}

/// Declares operations: the name of each, what it is with its settings, and for every setting how it is read and what holds
/// without it.
macro_rules! ops {
    ($($name:literal ($($op:tt)*) $({ $($key:ident: $read:ident $(= $usual:expr)?),* })?;)*) => {
        /// The operations and their keys, besides `name`, `op` and `inputs`.
        pub const OPS: &[(&str, &[&str])] = &[
            ("input", &["shape"]),
            $(($name, &[$($(stringify!($key)),*)?]),)*
            ("counted", &["shape", "cost"]),
        ];

        impl LayerFile {
            /// The operation `op` with all defaults filled in; `evaluate` turns formulas into values.
            pub(super) fn operation(&self, op: &str, evaluate: Evaluate<'_>) -> Result<Op, ShapeError> {
                Ok(match op {
                    $($name => {
                        $($(let $key = match self.$key.as_ref().map(evaluate).transpose()? {
                            Some(value) => $read(stringify!($key), &value)?,
                            None => usual!($name, $key $(, $usual)?),
                        };)*)?
                        $($op)*
                    })*
                    "counted" => {
                        let mut cost = Cost::default();
                        for (kind, value) in self.cost.iter().flatten() {
                            *cost.count_mut(*kind) = number("cost", &evaluate(value)?)?;
                        }
                        Op::Counted(cost)
                    }
                    _ => {
                        let reason = format!("there is no operation \"{op}\"");
                        return Err(ShapeError::in_field("op", reason, "see the list"));
                    }
                })
            }

            /// An operation with its settings, without a layer name.
            pub fn from_op(op: &Op) -> Self {
                let op = *op;
                let mut file = match op {
                    Op::Counted(cost) => {
                        let counts = CostKind::ALL.map(|kind| (kind, cost.count(kind)));
                        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
                        let counts: BTreeMap<_, _> = counts.map(|(kind, count)| (kind, count.into())).collect();
                        let cost = Some(counts).filter(|counts| !counts.is_empty());
                        Self { op: "counted".to_owned(), cost, ..Self::default() }
                    }
                    _ => Self { op: "input".to_owned(), ..Self::default() },
                };
                // The last that fits: pooling to one pixel is global.
                $(if let $($op)* = op {
                    file = Self {
                        op: $name.to_owned(),
                        $($($key: written!($key $(, $usual)?),)*)?
                        ..Self::default()
                    };
                })*
                file
            }
        }
    };
}

ops! {
    "conv2d" (Op::Conv2d(Conv2d { out, kernel, stride, padding, dilation, groups, bias })) {
        out: number, kernel: pair, stride: pair = (1, 1), padding: padding = Padding::Valid, dilation: pair = (1, 1),
        groups: number = 1, bias: truth = true
    };
    "linear" (Op::Linear { out, bias, tied }) { out: number, bias: truth = true, tied: truth = false };
    "max-pool" (Op::Pool { kind: Pool::Max, kernel, stride, padding, ceil }) {
        kernel: pair, stride: pair = kernel, padding: padding = Padding::Valid, ceil: truth = false
    };
    "average-pool" (Op::Pool { kind: Pool::Average, kernel, stride, padding, ceil }) {
        kernel: pair, stride: pair = kernel, padding: padding = Padding::Valid, ceil: truth = false
    };
    "adaptive-max-pool" (Op::AdaptivePool { kind: Pool::Max, size }) { size: pair };
    "adaptive-average-pool" (Op::AdaptivePool { kind: Pool::Average, size }) { size: pair };
    "global-max-pool" (Op::AdaptivePool { kind: Pool::Max, size: (1, 1) });
    "global-average-pool" (Op::AdaptivePool { kind: Pool::Average, size: (1, 1) });
    "batch-norm" (Op::Normalise(Norm::Batch { affine })) { affine: truth = true };
    "layer-norm" (Op::Normalise(Norm::Layer { affine })) { affine: truth = true };
    "local-response-norm" (Op::Normalise(Norm::LocalResponse { depth })) { depth: number };
    "sigmoid" (Op::Activate(Activation::Sigmoid));
    "tanh" (Op::Activate(Activation::Tanh));
    "relu" (Op::Activate(Activation::Relu));
    "relu6" (Op::Activate(Activation::Relu6));
    "gelu" (Op::Activate(Activation::Gelu));
    "silu" (Op::Activate(Activation::Silu));
    "hardswish" (Op::Activate(Activation::Hardswish));
    "softmax" (Op::Activate(Activation::Softmax));
    "embedding" (Op::Embedding { count, width, sparse }) { count: number, width: number, sparse: truth = false };
    "position-embedding" (Op::PositionEmbedding { count }) { count: number };
    "class-token" (Op::ClassToken);
    "attention" (Op::Attention { heads, causal }) { heads: number, causal: truth = false };
    "add" (Op::Add);
    "multiply" (Op::Multiply);
    "concat" (Op::Concat);
    "flatten" (Op::Flatten);
    "dropout" (Op::Dropout);
    "to-sequence" (Op::ToSequence);
    "select-token" (Op::SelectToken { index }) { index: number = 0 };
    "shortcut" (Op::Shortcut { out, stride }) { out: number, stride: square = 1 };
}

/// Turns a value as written into one without formulas.
type Evaluate<'a> = &'a dyn Fn(&Value) -> Result<Value, ShapeError>;

/// A key that the operation requires.
pub(super) fn missing(op: &str, key: &str) -> ShapeError {
    ShapeError::new(format!("{op} needs {key}"), format!("add {key} to the layer"))
}

fn unfit(key: &'static str, expected: &str, value: &Value) -> ShapeError {
    let found = match value {
        Value::Text(text) => format!("\"{text}\""),
        Value::Truth(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::List(values) => format!("a list of {}", values.len()),
    };
    ShapeError::in_field(key, format!("{key} is {found}, not {expected}"), format!("give {expected}"))
}

pub(super) fn number(key: &'static str, value: &Value) -> Result<u64, ShapeError> {
    match value {
        Value::Number(number) => Ok(*number),
        _ => Err(unfit(key, "a number", value)),
    }
}

fn truth(key: &'static str, value: &Value) -> Result<bool, ShapeError> {
    match value {
        Value::Truth(truth) => Ok(*truth),
        _ => Err(unfit(key, "true or false", value)),
    }
}

fn pair(key: &'static str, value: &Value) -> Result<(u64, u64), ShapeError> {
    match value {
        Value::Number(size) => Ok((*size, *size)),
        Value::List(sizes) => match sizes[..] {
            [Value::Number(height), Value::Number(width)] => Ok((height, width)),
            _ => Err(unfit(key, "a number, or a pair [height, width]", value)),
        },
        _ => Err(unfit(key, "a number, or a pair [height, width]", value)),
    }
}

/// One number for height and width.
fn square(key: &'static str, value: &Value) -> Result<u64, ShapeError> {
    match pair(key, value)? {
        (height, width) if height == width => Ok(height),
        (height, width) => {
            let reason = format!("a shortcut has one stride, not {height}×{width}");
            Err(ShapeError::in_field(key, reason, "give one number"))
        }
    }
}

fn padding(key: &'static str, value: &Value) -> Result<Padding, ShapeError> {
    let expected =
        "a number, a pair [height, width], four numbers [top, bottom, left, right], \"same\" or \"valid\"";
    Ok(match value {
        Value::Text(word) if word == "same" => Padding::Same,
        Value::Text(word) if word == "valid" => Padding::Valid,
        Value::Number(size) => Padding::all(*size),
        Value::List(sizes) => match sizes[..] {
            [Value::Number(height), Value::Number(width)] => {
                Padding::Explicit { top: height, bottom: height, left: width, right: width }
            }
            [Value::Number(top), Value::Number(bottom), Value::Number(left), Value::Number(right)] => {
                Padding::Explicit { top, bottom, left, right }
            }
            _ => return Err(unfit(key, expected, value)),
        },
        _ => return Err(unfit(key, expected, value)),
    })
}

impl From<Padding> for Value {
    fn from(padding: Padding) -> Self {
        match padding {
            Padding::Valid => Self::Text("valid".to_owned()),
            Padding::Same => Self::Text("same".to_owned()),
            Padding::Explicit { top, bottom, left, right } if top != bottom || left != right => {
                [top, bottom, left, right][..].into()
            }
            Padding::Explicit { top, left, .. } => (top, left).into(),
        }
    }
}
