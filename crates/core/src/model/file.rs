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

use super::cost::CostKind;
use super::shape::ShapeError;
use super::{Builder, Model};
use crate::fault::Fault;
use crate::suggest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod expand;
mod formula;
mod ops;
mod write;

pub(super) use expand::{LayerFault, expand};
pub use formula::Value;
pub use ops::OPS;
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
}
