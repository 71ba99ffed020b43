//! Files that are the old ones or the new ones, never half of them.

use crate::TraceError;
use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// Writes what `print` prints beside `path` and renames it, compressed if the name ends in `.gz`. `example` is a name for
/// who gave none.
pub(crate) fn replace(
    path: &Path,
    example: &str,
    print: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> std::result::Result<(), TraceError> {
    let Some(name) = path.file_name() else {
        let remedy = format!("give a name such as {example}");
        return Err(TraceError::new(path.display().to_string(), "it is not the name of a file", remedy));
    };
    let name = name.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written =
        write_to(&beside, print, name.ends_with(".gz")).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // The reason is what counts; that the rest could not be removed would hide it.
        let _ = std::fs::remove_file(&beside);
        TraceError::system(path, &error, "check that the folder exists and can be written to")
    })
}

fn write_to(path: &Path, print: impl FnOnce(&mut dyn Write) -> Result<()>, compress: bool) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    if compress {
        let mut encoder = GzEncoder::new(file, Compression::default());
        print(&mut encoder)?;
        file = encoder.finish()?;
    } else {
        print(&mut file)?;
    }
    file.into_inner()?.sync_all()
}
