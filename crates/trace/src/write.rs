//! Files that are there whole or not at all.

use crate::TraceError;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `text` to `path`.
pub fn write_text(path: &Path, text: &str) -> Result<(), TraceError> {
    write_whole(path, |file| file.write_all(text.as_bytes()))
}

/// Writes what `print` prints to `path`: beside it first, then renamed, so that `path` never holds half of it.
pub(crate) fn write_whole(
    path: &Path,
    print: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), TraceError> {
    let Some(name) = path.file_name() else {
        let remedy = "give the name of a file";
        return Err(TraceError::new(path.display().to_string(), "it is not the name of a file", remedy));
    };
    let beside = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    let write = || {
        let mut file = BufWriter::new(File::create(&beside)?);
        print(&mut file)?;
        file.into_inner()?.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|error| {
        // The reason is what counts; that the rest could not be removed would hide it.
        let _ = std::fs::remove_file(&beside);
        TraceError::system(path, &error, "check that the folder exists and can be written to")
    })
}
