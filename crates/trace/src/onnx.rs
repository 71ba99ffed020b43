//! ONNX files, plain or compressed; `stepcast_onnx` reads their content.

use crate::files::Content;
use crate::import::{Imported, Options};
use crate::overview::Summary;
use crate::source;
use crate::source::{Limits, Reading};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_onnx::ImportedModel;

pub(crate) use stepcast_onnx::recognises;

pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "models", "name one of them")?;
    let ImportedModel { model, notes } = read_within(path, options.sizes, &options.reading(paths))?;
    Ok(Imported { content: Content::Model(Box::new(model)), summary: Summary::default(), notes })
}

/// Reads the ONNX model at `path`, which may be compressed with gzip or xz; `sizes` gives the sizes of dimensions that the
/// file leaves open. Files with external weights are not opened. The model is named after the file.
pub fn read_onnx(path: &Path, sizes: &BTreeMap<String, u64>) -> Result<ImportedModel, Fault> {
    read_within(path, sizes, &Options::default().reading(&[path.to_owned()]))
}

/// The graph of an ONNX file, plain or compressed, without its weights: a smaller file of the same model.
pub fn lean_onnx(path: &Path) -> Result<Vec<u8>, Fault> {
    let reading = Options::default().reading(&[path.to_owned()]);
    source::one(path, &reading, |source| {
        let (name, most) = (source.name().to_owned(), source.memory().limit());
        stepcast_onnx::lean(BufReader::new(source), &name, most)
    })
}

fn read_within(
    path: &Path,
    sizes: &BTreeMap<String, u64>,
    reading: &Reading<'_>,
) -> Result<ImportedModel, Fault> {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = file.split(".onnx").next().unwrap_or(&file).to_owned();
    let max_memory = reading.memory.limit();
    let options = stepcast_onnx::Options { sizes: sizes.clone(), name: Some(name), max_memory };
    let place = path.display().to_string();
    if path.is_dir() {
        return Err(Fault::in_file(place, "it is a folder", "name the .onnx file in it"));
    }
    let mut imported = None;
    source::visit(path, Limits::STREAMED, reading, &mut |source| {
        let name = source.name().to_owned();
        imported = Some(stepcast_onnx::read(BufReader::new(source), &name, &options)?);
        Ok(ControlFlow::Break(()))
    })?;
    imported.ok_or_else(|| Fault::in_file(place, "it is empty", "give the .onnx file of a model"))
}
