//! ONNX models: a file's graph, without its weights, becomes a model of layers.
//!
//! `wire` skips weights while reading, `proto` declares the messages, `graph` orders the nodes; `evaluate` follows
//! shapes through the rules in `operator`, with the batch left open (`tensor`); `raise` recognises the layers that
//! exporters split into primitive operators and builds the model. `docs/import/onnx.md` describes what is counted.
//!
//! Memory is bounded by the graph, not by the weights. Nothing in a file can make this crate panic: unusable
//! content is a [`Fault`].
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod evaluate;
mod graph;
mod inputs;
mod operator;
mod proto;
mod raise;
mod tensor;
#[cfg(test)]
mod tests;
mod wire;

pub use raise::ImportedModel;

use graph::Graph;
use prost::Message;
use proto::ModelProto;
use std::collections::BTreeMap;
use std::io::Read;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use wire::WireError;

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

/// Whether a file that begins like this may be an ONNX model: its first field is the version of the format, and a text
/// or a graph follows.
pub fn recognises(head: &[u8]) -> bool {
    matches!(head, [0x08, 1..=0x7f, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42, ..])
}

/// The decoded graph may take one part in this many of the memory; the model takes the rest.
const DECODED: u64 = 2;

/// The model in a stream without the content of large tensors, as a file of the same format that gives the same model.
pub fn lean(reader: impl Read, place: &str, max_memory: u64) -> Result<Vec<u8>, Fault> {
    wire::lean(reader, max_memory / DECODED).map_err(|error| unreadable(place, error, max_memory))
}

/// Reads an ONNX model from a stream; `place` is what errors call it.
pub fn read(reader: impl Read, place: &str, options: &Options) -> Result<ImportedModel, Fault> {
    let lean = lean(reader, place, options.max_memory)?;
    let no_model = |reason: String| Fault::in_file(place, reason, "give the .onnx file of a model");
    let model = ModelProto::decode(&lean[..])
        .map_err(|error| no_model(format!("it is not an ONNX model: {error}")))?;
    drop(lean);
    if model.graph.is_none() && model.opsets.is_empty() {
        return Err(no_model("it is not an ONNX model: it holds no graph".to_owned()));
    }
    let producer = [model.producer_name.as_str(), model.producer_version.as_str()];
    let producer = producer.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join(" ");
    let source = if producer.is_empty() { "ONNX".to_owned() } else { format!("ONNX, written by {producer}") };
    let graph = Graph::new(model, place, options.max_memory / DECODED)?;
    let facts = evaluate::evaluate(&graph, options, place)?;
    let name = options.name.clone().unwrap_or_else(|| "onnx".to_owned());
    raise::model(&graph, facts, &name, &source, place)
}

fn unreadable(place: &str, error: WireError, max_memory: u64) -> Fault {
    let again = "copy or export the file again";
    match error {
        WireError::Short(at) => {
            Fault::in_file(place, format!("it ends in the middle of a message, after byte {at}"), again)
        }
        WireError::Malformed(at) => {
            let reason = format!("it is not an ONNX model: there is no field of a message at byte {at}");
            Fault::in_file(place, reason, "give the .onnx file of a model")
        }
        WireError::TooLarge => {
            let reason =
                format!("its graph takes more than {} MiB of memory even without weights", max_memory >> 20);
            Fault::in_file(
                place,
                reason,
                [
                    Remedy::advice("import a smaller part of the model"),
                    Remedy::option_to(RequestOption::MaxMemory, "to allow more"),
                ],
            )
        }
        WireError::System(error) => Fault::in_file(place, format!("it cannot be read: {error}"), again),
    }
}
