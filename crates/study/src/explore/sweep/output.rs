//! The file of a sweep: a line that identifies the sweep, then complete rows in order.
//!
//! Rows are written as a whole, so the file is valid whenever the program ends. If a crash of the machine leaves an
//! incomplete last line, it is cut off when the sweep is resumed.

use super::table::Format;
use super::variants::Variants;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;

/// A file that rows are appended to.
#[derive(Debug)]
pub struct Output {
    /// Its path.
    pub path: PathBuf,
    /// The format of its rows.
    pub format: Format,
    /// The writer that appends to it.
    pub writer: Writer,
}

/// Appends rows.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Number of rows in the file.
    pub rows: u64,
}

impl Writer {
    /// Appends complete rows.
    pub fn append(&mut self, lines: &[u8], rows: u64) -> io::Result<()> {
        self.file.write_all(lines)?;
        self.rows += rows;
        Ok(())
    }
}

impl Output {
    /// Creates a file, or resumes one of the same sweep.
    pub fn open(
        path: &Path,
        format: Format,
        variants: &Variants<'_>,
        fingerprint: &str,
        (resume, force): (bool, bool),
    ) -> Result<Self, Fault> {
        let wrong = |reason: &str, remedy: &str| Fault::new(reason, remedy);
        let failed = |error: io::Error| wrong(&error.to_string(), "check the path and the room on the disk");
        let header = format.header(variants, fingerprint).map_err(failed)?;
        let exists = path.exists();
        if exists && !resume && !force {
            let remedy = "choose another name, --resume to go on with it, or --force to write over it";
            return Err(wrong("it exists already", remedy));
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!resume)
            .open(path)
            .map_err(failed)?;
        let mut rows = 0;
        let begun = if resume { complete(&file, header.len(), &mut rows).map_err(failed)? } else { None };
        match begun {
            Some((found, end)) if found == header => {
                file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
            }
            Some(_) => {
                let reason =
                    "it belongs to another sweep: the scenario, the axes, the method or the version differ";
                return Err(wrong(reason, "choose another name, or --force to write over it"));
            }
            None => {
                file.set_len(0)
                    .and_then(|()| file.seek(SeekFrom::Start(0)))
                    .and_then(|_| file.write_all(&header))
                    .map_err(failed)?;
                rows = 0;
            }
        }
        Ok(Self { path: path.to_owned(), format, writer: Writer { file, rows } })
    }

    /// Number of rows in the file.
    pub fn rows(&self) -> u64 {
        self.writer.rows
    }
}

/// The first bytes of a file and the offset at which its complete lines end; `None` if it is empty.
fn complete(file: &File, header: usize, rows: &mut u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut reader = BufReader::new(file);
    let mut start = Vec::with_capacity(header);
    reader.by_ref().take(header as u64).read_to_end(&mut start)?;
    if start.is_empty() {
        return Ok(None);
    }
    let mut end = start.len() as u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        if !line.ends_with(b"\n") {
            return Ok(Some((start, end)));
        }
        end += read;
        *rows += 1;
    }
}
