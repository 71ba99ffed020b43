//! Values that an ONNX file leaves open.

use std::collections::BTreeMap;

/// Values that an ONNX file leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Sizes of named dimensions, such as the length of a sequence; a dimension without a name goes by its input and place
    /// ("input_ids.1"). The batch needs none.
    pub sizes: BTreeMap<String, u64>,
    /// The model's name; "onnx" if left out.
    pub name: Option<String>,
    /// Most bytes of memory to use.
    pub max_memory: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { sizes: BTreeMap::new(), name: None, max_memory: 512 << 20 }
    }
}
