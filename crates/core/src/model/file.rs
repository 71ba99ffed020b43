//! Model files: layers written in TOML, in a scenario (`[model.custom]`) and in the zoo (`catalog/models`).
//!
//! ```toml
//! [model.custom]
//! name = "small"
//! input = [3, 32, 32]
//! layers = [
//!   { name = "conv1", op = "conv2d", out = 16, kernel = 3, padding = 1 },
//!   { op = "relu" },
//!   { block = "residual", name = "stage.{i}", repeat = 4, with = { width = 16 } },
//!   { op = "global-average-pool" },
//!   { op = "flatten" },
//!   { op = "linear", out = 10 },
//! ]
//!
//! [model.custom.blocks.residual]
//! layers = [
//!   { name = "conv", op = "conv2d", out = "width", kernel = 3, padding = 1 },
//!   { name = "add", op = "add", inputs = ["conv", "input"] },
//! ]
//! ```
//!
//! A layer reads the previous one unless `inputs` names others; the input of a model or a block is called "input".
//! `docs/scenario.md` describes blocks, repetitions and formulas. All operations share one flat table of optional
//! keys, so that an error can point at the key; keys that do not belong to the operation are rejected here.

use super::cost::{Cost, CostKind};
use super::op::{Activation, Conv2d, Norm, Op, Padding, Pool};
use super::shape::ShapeError;
use super::{Builder, Model};
use crate::fault::Fault;
use crate::suggest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod expand;
mod formula;
mod write;

pub(super) use expand::{LayerFault, expand};
pub use formula::Value;
pub use write::{Head, NoHead};

/// A model as written by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelFile {
    /// Name chosen by the user.
    #[serde(default = "custom")]
    pub name: String,
    /// Shape of one sample: `[channels, height, width]`, or `[tokens]` for a language model.
    pub input: Vec<Value>,
    /// Values that formulas use, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, Value>,
    /// The layers in the order of computation.
    pub layers: Vec<LayerFile>,
    /// Layers that are used together, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blocks: BTreeMap<String, BlockFile>,
}

/// Layers that are used together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BlockFile {
    /// Default values of the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<BTreeMap<String, Value>>,
    /// Its layers in the order of computation; the last one is its output.
    pub layers: Vec<LayerFile>,
}

fn custom() -> String {
    "custom".to_owned()
}

/// Declares [`LayerFile`] with one line for each setting of an operation.
macro_rules! layer_file {
    ($($(#[$doc:meta])* $key:ident;)*) => {
        /// One layer as written by the user, or the use of a block.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct LayerFile {
            /// Its name; by default the operation and the position in the list ("relu1").
            #[serde(skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// The operation.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            pub op: String,
            /// The layers it reads; by default the previous one.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub inputs: Option<Vec<String>>,
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<Value>,)*
            /// Operations and parameters of a counted layer; none by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cost: Option<BTreeMap<CostKind, Value>>,
            /// The block to use, in place of an operation.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub block: Option<String>,
            /// Values for the layers of the block.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub with: Option<BTreeMap<String, Value>>,
            /// How often it is repeated, each time with another `i` from 0; once by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub repeat: Option<Value>,
            /// Lists of values: it is repeated for each of them.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub each: Option<BTreeMap<String, Value>>,
            /// Whether the layer exists; true by default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub when: Option<Value>,
        }

        impl LayerFile {
            /// The settings of its operation that are given.
            fn settings(&self) -> impl Iterator<Item = (&'static str, Option<&Value>)> {
                let settings = [$((stringify!($key), self.$key.as_ref()),)*];
                let settings = settings.into_iter().filter(|(_, value)| value.is_some());
                settings.chain(self.cost.is_some().then_some(("cost", None)))
            }
        }
    };
}

layer_file! {
    /// Shape of an additional input, or of the output of a counted layer.
    shape;
    /// Output channels or features.
    out;
    /// Size of the window.
    kernel;
    /// Step of the window; by default 1 for convolutions and the window size for pooling.
    stride;
    /// Padding of the image; none by default.
    padding;
    /// Distance between the elements of a window; 1 by default.
    dilation;
    /// Groups of channels; 1 by default.
    groups;
    /// Whether a bias is added; true by default.
    bias;
    /// Whether the weight is shared with an embedding; false by default.
    tied;
    /// Whether a last window that only partly fits is used; false by default.
    ceil;
    /// Height and width of the output of an adaptive pooling.
    size;
    /// Whether a normalisation has a trained scale and shift; true by default.
    affine;
    /// Number of channels in a local response normalisation.
    depth;
    /// Rows of an embedding.
    count;
    /// Width of an embedding.
    width;
    /// Whether the gradient of an embedding consists of the rows that a batch touches; false by default.
    sparse;
    /// Heads of an attention.
    heads;
    /// Whether an attention is causal; false by default.
    causal;
    /// The token to select.
    index;
}

/// The operations and their keys, besides `name`, `op` and `inputs`.
pub const OPS: &[(&str, &[&str])] = &[
    ("input", &["shape"]),
    ("conv2d", &["out", "kernel", "stride", "padding", "dilation", "groups", "bias"]),
    ("linear", &["out", "bias", "tied"]),
    ("max-pool", &["kernel", "stride", "padding", "ceil"]),
    ("average-pool", &["kernel", "stride", "padding", "ceil"]),
    ("adaptive-max-pool", &["size"]),
    ("adaptive-average-pool", &["size"]),
    ("global-max-pool", &[]),
    ("global-average-pool", &[]),
    ("batch-norm", &["affine"]),
    ("layer-norm", &["affine"]),
    ("local-response-norm", &["depth"]),
    ("sigmoid", &[]),
    ("tanh", &[]),
    ("relu", &[]),
    ("relu6", &[]),
    ("gelu", &[]),
    ("silu", &[]),
    ("hardswish", &[]),
    ("softmax", &[]),
    ("embedding", &["count", "width", "sparse"]),
    ("position-embedding", &["count"]),
    ("class-token", &[]),
    ("attention", &["heads", "causal"]),
    ("add", &[]),
    ("multiply", &[]),
    ("concat", &[]),
    ("flatten", &[]),
    ("dropout", &[]),
    ("to-sequence", &[]),
    ("select-token", &["index"]),
    ("shortcut", &["out", "stride"]),
    ("counted", &["shape", "cost"]),
];

/// Operations without settings.
const PLAIN: [(&str, Op); 15] = [
    ("sigmoid", Op::Activate(Activation::Sigmoid)),
    ("tanh", Op::Activate(Activation::Tanh)),
    ("relu", Op::Activate(Activation::Relu)),
    ("relu6", Op::Activate(Activation::Relu6)),
    ("gelu", Op::Activate(Activation::Gelu)),
    ("silu", Op::Activate(Activation::Silu)),
    ("hardswish", Op::Activate(Activation::Hardswish)),
    ("softmax", Op::Activate(Activation::Softmax)),
    ("class-token", Op::ClassToken),
    ("add", Op::Add),
    ("multiply", Op::Multiply),
    ("concat", Op::Concat),
    ("flatten", Op::Flatten),
    ("dropout", Op::Dropout),
    ("to-sequence", Op::ToSequence),
];

impl ModelFile {
    /// Checks and counts the layers. Paths of errors are relative to the table that contains the model.
    pub fn build(&self) -> Result<Model, Fault> {
        if self.layers.is_empty() {
            return Err(Fault::in_key(
                "layers",
                "the model has no layers",
                "list at least one, such as { op = \"linear\", out = 10 }",
            ));
        }
        let mut builder = Builder::new(&self.name, "the scenario");
        expand(&mut builder, (&self.input, &self.layers), &self.blocks, &self.with).map_err(
            |LayerFault { path, error }| {
                let reason = if path == "input" { error.reason.clone() } else { error.to_string() };
                Fault::in_key(path, reason, error.remedy)
            },
        )?;
        builder.finish().map_err(|error| Fault::in_key("layers", error.reason, error.remedy))
    }
}

impl LayerFile {
    /// Its name as written, or the operation and its position in the list.
    fn plain_name(&self, index: usize) -> String {
        let kind = self.block.as_ref().unwrap_or(&self.op);
        self.name.clone().unwrap_or_else(|| format!("{kind}{index}"))
    }

    fn gives(&self, field: &str) -> bool {
        match field {
            "op" => !self.op.is_empty(),
            "name" => self.name.is_some(),
            "inputs" => self.inputs.is_some(),
            "block" => self.block.is_some(),
            "repeat" => self.repeat.is_some(),
            "each" => self.each.is_some(),
            "when" => self.when.is_some(),
            _ => self.settings().any(|(key, _)| key == field),
        }
    }

    /// Rejects an unknown operation and keys that do not belong to it.
    fn check_keys(&self, name: &str) -> Result<(), ShapeError> {
        let Some((op, allowed)) = OPS.iter().find(|(op, _)| *op == name) else {
            let names = OPS.iter().map(|(op, _)| *op);
            let list = names.clone().collect::<Vec<_>>().join(", ");
            return Err(ShapeError::in_field(
                "op",
                format!("there is no operation \"{name}\""),
                suggest::remedy(name, names, format!("the operations are {list}")).to_string(),
            ));
        };
        let stray = self.settings().map(|(key, _)| key).find(|key| !allowed.contains(key));
        stray.map_or(Ok(()), |key| {
            let remedy = match allowed {
                [] => format!("{op} has no settings: remove {key}"),
                _ => format!("{op} takes {}", allowed.join(", ")),
            };
            Err(ShapeError::in_field(key, format!("{key} does not belong to {op}"), remedy))
        })
    }

    /// The operation `op` with all defaults filled in; `evaluate` turns formulas into values.
    fn operation(&self, op: &str, evaluate: Evaluate<'_>) -> Result<Op, ShapeError> {
        let given = |key: &'static str| {
            let value = self.settings().find(|(name, _)| *name == key).and_then(|(_, value)| value);
            value.map(evaluate).transpose()
        };
        let need = |key: &'static str| given(key)?.ok_or_else(|| missing(op, key));
        let count = |key| number(key, &need(key)?);
        let switch = |key, usual| given(key)?.map_or(Ok(usual), |value| truth(key, &value));
        let size = |key| given(key)?.map(|value| pair(key, &value)).transpose();
        let sized = |key| pair(key, &need(key)?);
        let padding = || given("padding")?.map_or(Ok(Padding::Valid), |value| padding(&value));
        if let Some((_, plain)) = PLAIN.iter().find(|(name, _)| *name == op) {
            return Ok(*plain);
        }
        let kind = if op.contains("max") { Pool::Max } else { Pool::Average };
        Ok(match op {
            "conv2d" => Op::Conv2d(Conv2d {
                out: count("out")?,
                kernel: sized("kernel")?,
                stride: size("stride")?.unwrap_or((1, 1)),
                padding: padding()?,
                dilation: size("dilation")?.unwrap_or((1, 1)),
                groups: given("groups")?.map_or(Ok(1), |groups| number("groups", &groups))?,
                bias: switch("bias", true)?,
            }),
            "linear" => {
                Op::Linear { out: count("out")?, bias: switch("bias", true)?, tied: switch("tied", false)? }
            }
            "max-pool" | "average-pool" => {
                let kernel = sized("kernel")?;
                let stride = size("stride")?.unwrap_or(kernel);
                Op::Pool { kind, kernel, stride, padding: padding()?, ceil: switch("ceil", false)? }
            }
            "adaptive-max-pool" | "adaptive-average-pool" => Op::AdaptivePool { kind, size: sized("size")? },
            "global-max-pool" | "global-average-pool" => Op::AdaptivePool { kind, size: (1, 1) },
            "batch-norm" => Op::Normalise(Norm::Batch { affine: switch("affine", true)? }),
            "layer-norm" => Op::Normalise(Norm::Layer { affine: switch("affine", true)? }),
            "local-response-norm" => Op::Normalise(Norm::LocalResponse { depth: count("depth")? }),
            "embedding" => Op::Embedding {
                count: count("count")?,
                width: count("width")?,
                sparse: switch("sparse", false)?,
            },
            "position-embedding" => Op::PositionEmbedding { count: count("count")? },
            "attention" => Op::Attention { heads: count("heads")?, causal: switch("causal", false)? },
            "select-token" => {
                Op::SelectToken { index: given("index")?.map_or(Ok(0), |index| number("index", &index))? }
            }
            "shortcut" => match size("stride")?.unwrap_or((1, 1)) {
                (height, width) if height == width => Op::Shortcut { out: count("out")?, stride: height },
                (height, width) => {
                    let reason = format!("a shortcut has one stride, not {height}×{width}");
                    return Err(ShapeError::in_field("stride", reason, "give one number"));
                }
            },
            "counted" => {
                let mut cost = Cost::default();
                for (kind, value) in self.cost.iter().flatten() {
                    *cost.count_mut(*kind) = number("cost", &evaluate(value)?)?;
                }
                Op::Counted(cost)
            }
            _ => {
                return Err(ShapeError::in_field(
                    "op",
                    format!("there is no operation \"{op}\""),
                    "see the list",
                ));
            }
        })
    }
}

/// Turns a value as written into one without formulas.
type Evaluate<'a> = &'a dyn Fn(&Value) -> Result<Value, ShapeError>;

/// A key that the operation requires.
fn missing(op: &str, key: &str) -> ShapeError {
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

fn number(key: &'static str, value: &Value) -> Result<u64, ShapeError> {
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

fn padding(value: &Value) -> Result<Padding, ShapeError> {
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
            _ => return Err(unfit("padding", expected, value)),
        },
        _ => return Err(unfit("padding", expected, value)),
    })
}
