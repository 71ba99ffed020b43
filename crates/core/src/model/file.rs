//! Custom models: layers written in TOML by the user.
//!
//! ```toml
//! [model.custom]
//! name = "small"
//! input = [3, 32, 32]
//! layers = [
//!   { name = "conv1", op = "conv2d", out = 16, kernel = 3, padding = 1 },
//!   { op = "relu" },
//!   { name = "conv2", op = "conv2d", out = 16, kernel = 3, padding = "same" },
//!   { op = "add", inputs = ["conv1", "conv2"] },
//!   { op = "global-average-pool" },
//!   { op = "flatten" },
//!   { op = "linear", out = 10 },
//! ]
//! ```
//!
//! A layer reads the previous one unless `inputs` names others; the input of the model is called "input". All
//! operations share one flat table of optional keys, so that an error can point at the key; keys that do not belong
//! to the operation are rejected here.

use super::cost::Cost;
use super::op::{Activation, Conv2d, Norm, Op, Padding, Pool};
use super::shape::{Misfit, ShapeError};
use super::{Builder, LayerId, Model};
use crate::fault::{Fault, KeyPath};
use crate::suggest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

mod number;
mod replace;
#[cfg(test)]
mod tests;
mod write;

pub use number::Pair;

/// A model as written by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelFile {
    /// Name chosen by the user.
    #[serde(default = "custom")]
    pub name: String,
    /// Shape of one sample: `[channels, height, width]`, or `[tokens]` for a language model.
    pub input: Vec<u64>,
    /// The layers in the order of computation.
    pub layers: Vec<LayerFile>,
}

/// One layer as written by the user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LayerFile {
    /// Its name; by default the operation and the position in the list ("relu1").
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The operation.
    pub op: String,
    /// The layers it reads; by default the previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<String>>,
    /// Shape of an additional input, or of the output of a counted layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Output channels or features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<u64>,
    /// Size of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Pair>,
    /// Step of the window; by default 1 for convolutions and the window size for pooling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<Pair>,
    /// Padding of the image; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding: Option<Padding>,
    /// Distance between the elements of a window; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dilation: Option<Pair>,
    /// Groups of channels; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// Whether a bias is added; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias: Option<bool>,
    /// Whether the weight is shared with an embedding; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tied: Option<bool>,
    /// Whether a last window that only partly fits is used; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceil: Option<bool>,
    /// Height and width of the output of an adaptive pooling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Pair>,
    /// Whether a normalisation has a trained scale and shift; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affine: Option<bool>,
    /// Number of channels in a local response normalisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// Rows of an embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Width of an embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    /// Whether the gradient of an embedding consists of the rows that a batch touches; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<bool>,
    /// Heads of an attention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<u64>,
    /// Whether an attention is causal; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causal: Option<bool>,
    /// The token to select.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Operations and parameters of a counted layer; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

fn custom() -> String {
    "custom".to_owned()
}

/// The operations and their keys, besides `name`, `op` and `inputs`.
const OPS: &[(&str, &[&str])] = &[
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

impl ModelFile {
    /// Checks and counts the layers. Paths of errors are relative to the table that contains the model.
    pub fn build(&self) -> Result<Model, Fault> {
        let mut builder = Builder::new(&self.name, "the scenario");
        let at_input = |error: ShapeError| Fault::in_key("input", error.reason, error.remedy);
        let input = builder.input("input", &self.input).map_err(at_input)?;
        let mut ids = HashMap::from([("input".to_owned(), input)]);
        let mut last = input;
        for (index, layer) in self.layers.iter().enumerate() {
            let name = self.layer_name(index);
            last = self.add(&mut builder, &ids, last, layer, &name).map_err(|misfit| {
                let path = KeyPath::of("layers").index(index);
                let path = match misfit.field {
                    Some(field) if layer.gives(field) => path.key(field),
                    _ => path,
                };
                Fault::in_key(path, format!("layer \"{name}\": {}", misfit.reason), misfit.remedy)
            })?;
            ids.insert(name, last);
        }
        if self.layers.is_empty() {
            return Err(Fault::in_key(
                "layers",
                "the model has no layers",
                "list at least one, such as { op = \"linear\", out = 10 }",
            ));
        }
        builder.finish().map_err(|error| Fault::in_key("layers", error.reason, error.remedy))
    }

    /// The name of the layer at `index`.
    fn layer_name(&self, index: usize) -> String {
        let layer = &self.layers[index];
        layer.name.clone().unwrap_or_else(|| format!("{}{index}", layer.op))
    }

    fn add(
        &self,
        builder: &mut Builder,
        ids: &HashMap<String, LayerId>,
        last: LayerId,
        layer: &LayerFile,
        name: &str,
    ) -> Result<LayerId, Misfit> {
        layer.check_keys()?;
        let added = if layer.op == "input" {
            if layer.inputs.is_some() {
                return Err(Misfit::input("an input reads no other layer", "remove inputs"));
            }
            builder.input(name, need("input", "shape", layer.shape.as_deref())?)
        } else {
            let inputs = match &layer.inputs {
                None => vec![last],
                Some(names) => names.iter().map(|name| self.find(name, ids)).collect::<Result<_, _>>()?,
            };
            match layer.operation()? {
                Op::Counted(cost) => {
                    let shape = need("counted", "shape", layer.shape.as_deref())?;
                    builder.counted(name, &inputs, shape, cost)
                }
                op => builder.add(name, op, &inputs),
            }
        };
        added.map_err(|error| Misfit { field: error.field, reason: error.reason, remedy: error.remedy })
    }

    /// The layer with this name among those already added.
    fn find(&self, name: &str, ids: &HashMap<String, LayerId>) -> Result<LayerId, Misfit> {
        ids.get(name).copied().ok_or_else(|| {
            if self.layers.iter().any(|layer| layer.name.as_deref() == Some(name)) {
                return Misfit::input(
                    format!("it reads \"{name}\", which does not come before it"),
                    "list the layers in the order in which they compute; a model has no cycles",
                );
            }
            let mut known: Vec<&str> = ids.keys().map(String::as_str).collect();
            known.sort_unstable();
            Misfit::input(
                format!("there is no layer \"{name}\""),
                suggest::remedy(name, known, "inputs are the names of layers before this one").to_string(),
            )
        })
    }
}

impl LayerFile {
    /// The keys besides `name` and `op`, and whether each is given.
    fn keys(&self) -> [(&'static str, bool); 21] {
        [
            ("inputs", self.inputs.is_some()),
            ("shape", self.shape.is_some()),
            ("out", self.out.is_some()),
            ("kernel", self.kernel.is_some()),
            ("stride", self.stride.is_some()),
            ("padding", self.padding.is_some()),
            ("dilation", self.dilation.is_some()),
            ("groups", self.groups.is_some()),
            ("bias", self.bias.is_some()),
            ("tied", self.tied.is_some()),
            ("ceil", self.ceil.is_some()),
            ("size", self.size.is_some()),
            ("affine", self.affine.is_some()),
            ("depth", self.depth.is_some()),
            ("count", self.count.is_some()),
            ("width", self.width.is_some()),
            ("sparse", self.sparse.is_some()),
            ("heads", self.heads.is_some()),
            ("causal", self.causal.is_some()),
            ("index", self.index.is_some()),
            ("cost", self.cost.is_some()),
        ]
    }

    fn gives(&self, field: &str) -> bool {
        field == "op"
            || (field == "name" && self.name.is_some())
            || self.keys().iter().any(|(key, given)| *key == field && *given)
    }

    /// Rejects an unknown operation and keys that do not belong to it.
    fn check_keys(&self) -> Result<(), Misfit> {
        let Some((op, allowed)) = OPS.iter().find(|(op, _)| *op == self.op) else {
            let names = OPS.iter().map(|(op, _)| *op);
            let list = names.clone().collect::<Vec<_>>().join(", ");
            return Err(Misfit::of(
                "op",
                format!("there is no operation \"{}\"", self.op),
                suggest::remedy(&self.op, names, format!("the operations are {list}")).to_string(),
            ));
        };
        let keys = self.keys();
        let stray = keys.iter().find(|(key, given)| *given && *key != "inputs" && !allowed.contains(key));
        stray.map_or(Ok(()), |(key, _)| {
            let remedy = match allowed {
                [] => format!("{op} has no settings: remove {key}"),
                _ => format!("{op} takes {}", allowed.join(", ")),
            };
            Err(Misfit::of(key, format!("{key} does not belong to {op}"), remedy))
        })
    }

    /// The operation with all defaults filled in.
    fn operation(&self) -> Result<Op, Misfit> {
        let op = self.op.as_str();
        let affine = self.affine.unwrap_or(true);
        Ok(match op {
            "conv2d" => Op::Conv2d(Conv2d {
                out: need(op, "out", self.out)?,
                kernel: need(op, "kernel", self.kernel)?.into(),
                stride: self.stride.map_or((1, 1), Into::into),
                padding: self.padding.unwrap_or(Padding::Valid),
                dilation: self.dilation.map_or((1, 1), Into::into),
                groups: self.groups.unwrap_or(1),
                bias: self.bias.unwrap_or(true),
            }),
            "linear" => Op::Linear {
                out: need(op, "out", self.out)?,
                bias: self.bias.unwrap_or(true),
                tied: self.tied.unwrap_or(false),
            },
            "max-pool" => self.pool(Pool::Max)?,
            "average-pool" => self.pool(Pool::Average)?,
            "adaptive-max-pool" => {
                Op::AdaptivePool { kind: Pool::Max, size: need(op, "size", self.size)?.into() }
            }
            "adaptive-average-pool" => {
                Op::AdaptivePool { kind: Pool::Average, size: need(op, "size", self.size)?.into() }
            }
            "global-max-pool" => Op::AdaptivePool { kind: Pool::Max, size: (1, 1) },
            "global-average-pool" => Op::AdaptivePool { kind: Pool::Average, size: (1, 1) },
            "batch-norm" => Op::Normalise(Norm::Batch { affine }),
            "layer-norm" => Op::Normalise(Norm::Layer { affine }),
            "local-response-norm" => {
                Op::Normalise(Norm::LocalResponse { depth: need(op, "depth", self.depth)? })
            }
            "sigmoid" => Op::Activate(Activation::Sigmoid),
            "tanh" => Op::Activate(Activation::Tanh),
            "relu" => Op::Activate(Activation::Relu),
            "relu6" => Op::Activate(Activation::Relu6),
            "gelu" => Op::Activate(Activation::Gelu),
            "silu" => Op::Activate(Activation::Silu),
            "hardswish" => Op::Activate(Activation::Hardswish),
            "softmax" => Op::Activate(Activation::Softmax),
            "embedding" => Op::Embedding {
                count: need(op, "count", self.count)?,
                width: need(op, "width", self.width)?,
                sparse: self.sparse.unwrap_or(false),
            },
            "position-embedding" => Op::PositionEmbedding { count: need(op, "count", self.count)? },
            "class-token" => Op::ClassToken,
            "attention" => {
                Op::Attention { heads: need(op, "heads", self.heads)?, causal: self.causal.unwrap_or(false) }
            }
            "add" => Op::Add,
            "multiply" => Op::Multiply,
            "concat" => Op::Concat,
            "flatten" => Op::Flatten,
            "dropout" => Op::Dropout,
            "to-sequence" => Op::ToSequence,
            "select-token" => Op::SelectToken { index: self.index.unwrap_or(0) },
            "shortcut" => Op::Shortcut { out: need(op, "out", self.out)?, stride: self.square_stride()? },
            "counted" => Op::Counted(self.cost.unwrap_or_default()),
            _ => return Err(Misfit::of("op", format!("there is no operation \"{op}\""), "see the list")),
        })
    }

    fn pool(&self, kind: Pool) -> Result<Op, Misfit> {
        let kernel = need(&self.op, "kernel", self.kernel)?;
        Ok(Op::Pool {
            kind,
            kernel: kernel.into(),
            stride: self.stride.unwrap_or(kernel).into(),
            padding: self.padding.unwrap_or(Padding::Valid),
            ceil: self.ceil.unwrap_or(false),
        })
    }

    fn square_stride(&self) -> Result<u64, Misfit> {
        match self.stride.map(<(u64, u64)>::from) {
            None => Ok(1),
            Some((height, width)) if height == width => Ok(height),
            Some((height, width)) => Err(Misfit::of(
                "stride",
                format!("a shortcut has one stride, not {height}×{width}"),
                "give one number",
            )),
        }
    }
}

/// A key that the operation requires.
fn need<T>(op: &str, key: &str, value: Option<T>) -> Result<T, Misfit> {
    value.ok_or_else(|| Misfit {
        field: None,
        reason: format!("{op} needs {key}"),
        remedy: format!("add {key} to the layer"),
    })
}
