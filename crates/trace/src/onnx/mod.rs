//! ONNX: a model's graph, without its weights, becomes a model of layers.
//!
//! `wire` passes over weights while reading, `proto` declares the messages, `graph` orders the nodes; `evaluate` follows
//! shapes through the rules in `operator`, with the batch left open (`size`); `raise` recognises the layers that
//! exporters take apart and builds the model. What an import does is described in `docs/import/onnx.md`.

mod evaluate;
mod functions;
mod graph;
mod inputs;
mod operator;
mod proto;
mod raise;
mod size;
mod tensor;
#[cfg(test)]
mod tests;
mod wire;

use crate::Summary;
use crate::import::{self, Imported};
use crate::source::{self, Limits};
use graph::Graph;
use prost::Message;
use proto::ModelProto;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::model::Model;
use wire::WireError;

/// What an ONNX file leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Lengths of named dimensions, such as that of a sequence; a dimension without a name goes by its input and place
    /// ("input_ids.1"). The batch needs none.
    pub sizes: BTreeMap<String, u64>,
    /// What the model is to be called; the name of the file if left out.
    pub name: Option<String>,
}

/// A model, and what had to be left out or guessed to get it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedModel {
    /// The model, its counts for one sample.
    pub model: Model,
    /// One sentence each, for people to read; those about work that is not counted start with "warning".
    pub notes: Vec<String>,
}

/// How many samples one pass of the graph takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Samples {
    /// Any number: the batch is open.
    Open,
    /// This many.
    Fixed(i64),
}

/// Whether a file that begins like this may be an ONNX model: its first field is the version of the format, and a text
/// or a graph follows.
pub(crate) fn recognises(head: &[u8]) -> bool {
    matches!(head, [0x08, 1..=0x7f, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42, ..])
}

/// Imports one model.
pub(crate) fn of_paths(paths: &[PathBuf], options: &import::Options<'_>) -> Result<Imported<Model>, Fault> {
    let [path] = paths else {
        let place = paths.last().map(|path| path.display().to_string()).unwrap_or_default();
        return Err(Fault::in_file(place, "models are imported one at a time", "name one file"));
    };
    let options = Options { sizes: options.sizes.clone(), name: None };
    let ImportedModel { model, notes } = onnx(path, &options)?;
    Ok(Imported { found: model, summary: Summary::default(), notes })
}

/// Reads the ONNX model at `path`, which may be compressed with gzip or xz. Files with external weights are not opened.
pub fn onnx(path: &Path, options: &Options) -> Result<ImportedModel, Fault> {
    let named = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = named.split(".onnx").next().unwrap_or(&named).to_owned();
    let options = Options { name: options.name.clone().or(Some(name)), ..options.clone() };
    let place = path.display().to_string();
    if path.is_dir() {
        return Err(Fault::in_file(place, "it is a folder", "name the .onnx file in it"));
    }
    let mut imported = None;
    source::visit(path, Limits::STREAMED, &|_| (), &mut |source| {
        let name = source.name().to_owned();
        imported = Some(from_onnx(BufReader::new(source), &name, &options)?);
        Ok(ControlFlow::Break(()))
    })?;
    imported.ok_or_else(|| Fault::in_file(place, "it is empty", "give the .onnx file of a model"))
}

/// Reads an ONNX model from a stream; `place` is what errors call it.
pub fn from_onnx(reader: impl Read, place: &str, options: &Options) -> Result<ImportedModel, Fault> {
    let lean = wire::lean(reader).map_err(|error| unreadable(place, error))?;
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
    let graph = Graph::new(model, place)?;
    let facts = evaluate::evaluate(&graph, options, place)?;
    let name = options.name.clone().unwrap_or_else(|| "onnx".to_owned());
    raise::model(&graph, facts, &name, &source, place)
}

fn unreadable(place: &str, error: WireError) -> Fault {
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
            let reason = "its graph takes more than 1 GiB of memory even without weights";
            Fault::in_file(place, reason, "import a smaller part of the model")
        }
        WireError::System(error) => Fault::in_file(place, format!("it cannot be read: {error}"), again),
    }
}
