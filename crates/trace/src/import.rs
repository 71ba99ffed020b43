//! Imports of recordings and models in any format.

use crate::format::Format;
use crate::imported::Imported;
use crate::options::Options;
use std::path::PathBuf;
use stepcast_core::fault::Fault;

/// Imports the recordings at `paths`: files, folders or archives. The format is detected from the content. Several paths
/// are several workers of one job.
pub fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let Some(first) = paths.first() else {
        return Err(Fault::in_file("import", "no file was named", "name a recording"));
    };
    let format = Format::detect(first)?;
    for path in &paths[1..] {
        let other = Format::detect(path)?;
        if other != format {
            let reason = format!("it is a {}, the first file a {}", other.name(), format.name());
            return Err(Fault::in_file(path.display().to_string(), reason, "import one format at a time"));
        }
    }
    format.import(paths, options)
}
