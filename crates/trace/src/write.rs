//! Files that are there whole or not at all.

use crate::error::system_fault;
use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use stepcast_core::fault::Fault;

/// Writes `text` to `path`.
pub fn write_text(path: &Path, text: &str) -> Result<(), Fault> {
    write_whole(path, |file| file.write_all(text.as_bytes()))
}

/// Writes what `print` prints to `path`, compressed if the name ends in `.gz`: beside it first, then renamed, so that
/// `path` never holds half of it.
pub(crate) fn write_whole(
    path: &Path,
    print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Fault> {
    let Some(name) = path.file_name() else {
        let remedy = "give the name of a file";
        return Err(Fault::in_file(path.display().to_string(), "it is not the name of a file", remedy));
    };
    let name = name.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written =
        write_to(&beside, print, name.ends_with(".gz")).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // The reason is what counts; that the rest could not be removed would hide it.
        let _ = std::fs::remove_file(&beside);
        system_fault(path, &error, "check that the folder exists and can be written to")
    })
}

fn write_to(
    path: &Path,
    print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    compress: bool,
) -> io::Result<()> {
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
