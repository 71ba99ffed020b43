//! Imports of recordings and models in any format.

use crate::error::system_fault;
use crate::format::Format;
use crate::imported::Imported;
use crate::options::Options;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;

/// Imports the recordings at `paths`: files, folders or archives. The format is detected from the content. Several paths
/// are several workers of one job.
pub fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let Some(first) = paths.first() else {
        return Err(Fault::in_file("import", "no file was named", "name a recording"));
    };
    paths.iter().try_for_each(|path| repeatable(path))?;
    let reading = options.reading(paths);
    let format = Format::detect_with(first, &reading)?;
    for path in &paths[1..] {
        let other = Format::detect_with(path, &reading)?;
        if other != format {
            let reason = format!("it is a {}, the first file a {}", other.name(), format.name());
            return Err(Fault::in_file(path.display().to_string(), reason, "import one format at a time"));
        }
    }
    format.import(paths, options)
}

/// Refuses pipes and devices: the format is found by reading the beginning, and some formats are read twice.
fn repeatable(path: &Path) -> Result<(), Fault> {
    let kind = std::fs::metadata(path).map_err(|error| system_fault(path, &error, "check the path"))?;
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    let reason = "it is a pipe or a device, and a recording is read more than once";
    Err(Fault::in_file(path.display().to_string(), reason, "save it to a file first"))
}
