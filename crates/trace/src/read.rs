//! From a path to the bytes of recordings that are read at once: plain or compressed files, folders, archives.
//!
//! Everything is read through [`Bounded`], so a small file that unpacks to a huge one ends in an error, not in exhausted
//! memory.

use crate::error::system_fault;
use crate::source::{Bounded, Excess, Limits, decompress, is_tar, unreadable};
use std::cell::Cell;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::rc::Rc;
use stepcast_core::fault::Fault;

/// Most bytes that are taken from one file, folder or archive after decompression: 2 GiB.
pub const MAX_UNPACKED: u64 = 2 << 30;

/// Stands between an archive and its member in the name of a blob.
const ARCHIVE: &str = ", ";

/// One recording.
#[derive(Debug)]
pub(crate) struct Blob {
    /// For error messages: file, or archive and member.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// The recordings at `path`: a file, an archive of files, or a folder of files.
pub(crate) fn recordings(path: &Path, limit: u64) -> Result<Vec<Blob>, Fault> {
    let mut left = limit;
    let mut blobs = if path.is_dir() { folder(path, &mut left)? } else { file(path, &mut left)? };
    blobs.sort_by(|a, b| a.name.cmp(&b.name));
    if blobs.is_empty() {
        let remedy = "name the files step_0000.pb, step_0001.pb, and so on";
        return Err(Fault::in_file(path.display().to_string(), "it holds no recorded steps", remedy));
    }
    Ok(blobs)
}

/// The only content of the file at `path`, decompressed.
pub(crate) fn single(path: &Path, limit: u64) -> Result<Blob, Fault> {
    let mut blobs = file(path, &mut { limit })?;
    match (blobs.pop(), blobs.is_empty()) {
        (Some(blob), true) => Ok(blob),
        _ => Err(Fault::in_file(path.display().to_string(), "it is an archive", "give one file of it")),
    }
}

fn folder(path: &Path, left: &mut u64) -> Result<Vec<Blob>, Fault> {
    let fail = |error| system_fault(path, &error, "check the path and its permissions");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if !entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut blobs = Vec::new();
    for name in names.iter().filter(|name| is_recording(name)) {
        if is_step(name) || !names.iter().any(|name| is_step(name)) {
            blobs.extend(file(&path.join(name), left)?);
        }
    }
    Ok(blobs)
}

/// What is told apart by: a blob's name without the folder or archive that it comes from.
pub(crate) fn short(name: &str) -> &str {
    last_part(name.rsplit_once(ARCHIVE).map_or(name, |(_, member)| member))
}

/// The file name at the end of a path.
fn last_part(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

fn is_recording(name: &str) -> bool {
    let name = last_part(name);
    !name.starts_with('.') && [".pb", ".pb.gz", ".pb.xz"].iter().any(|end| name.ends_with(end))
}

fn is_step(name: &str) -> bool {
    is_recording(name) && last_part(name).starts_with("step")
}

fn file(path: &Path, left: &mut u64) -> Result<Vec<Blob>, Fault> {
    let opened = File::open(path).map_err(|error| system_fault(path, &error, "check the path"))?;
    open(Box::new(opened), &path.display().to_string(), left)
}

/// One blob, or those of an archive.
fn open<'a>(reader: Box<dyn Read + 'a>, place: &str, left: &mut u64) -> Result<Vec<Blob>, Fault> {
    let excess = Rc::new(Cell::new(None));
    let fail = |error: &std::io::Error| unreadable(place, error, excess.get());
    let unpacked = decompress(reader).map_err(|error| fail(&error))?;
    // Twice the limit: an archive has headers and padding too, and members that are not read.
    let mut bounded = bounded(unpacked, left.saturating_mul(2), &excess);
    let mut head = Vec::with_capacity(512);
    (&mut bounded).take(512).read_to_end(&mut head).map_err(|error| fail(&error))?;
    let is_archive = is_tar(&head);
    let whole = Cursor::new(head).chain(bounded);
    if !is_archive {
        let bytes = drain(whole, left, &excess).map_err(|error| fail(&error))?;
        return Ok(vec![Blob { name: place.to_owned(), bytes }]);
    }
    let mut blobs = Vec::new();
    let mut archive = tar::Archive::new(whole);
    for entry in archive.entries().map_err(|error| fail(&error))? {
        let entry = entry.map_err(|error| fail(&error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() || !is_recording(&name) {
            continue;
        }
        let content = decompress(Box::new(entry)).map_err(|error| fail(&error))?;
        let bytes = drain(content, left, &excess).map_err(|error| fail(&error))?;
        blobs.push((is_step(&name), Blob { name: format!("{place}{ARCHIVE}{name}"), bytes }));
    }
    let any_step = blobs.iter().any(|(is_step, _)| *is_step);
    Ok(blobs.into_iter().filter(|(is_step, _)| *is_step || !any_step).map(|(_, blob)| blob).collect())
}

/// Everything, counted against `left`.
fn drain(reader: impl Read, left: &mut u64, excess: &Rc<Cell<Option<Excess>>>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bounded(reader, *left, excess).read_to_end(&mut bytes)?;
    *left = left.saturating_sub(bytes.len() as u64);
    Ok(bytes)
}

fn bounded<R: Read>(reader: R, most: u64, excess: &Rc<Cell<Option<Excess>>>) -> Bounded<R> {
    Bounded::new(reader, Limits::size(most), Rc::new(Cell::new(0)), excess.clone())
}

/// All of a file, decompressed; for text.
pub(crate) fn content(path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
    let excess = Rc::new(Cell::new(None));
    let opened = File::open(path).map_err(|error| system_fault(path, &error, "check the path"))?;
    decompress(Box::new(opened))
        .and_then(|reader| drain(reader, &mut { limit }, &excess))
        .map_err(|error| unreadable(&path.display().to_string(), &error, excess.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in members {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, name, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn names(bytes: &[u8], limit: u64) -> Result<Vec<(String, Vec<u8>)>, Fault> {
        let blobs = open(Box::new(bytes), "x", &mut { limit })?;
        Ok(blobs.into_iter().map(|blob| (blob.name, blob.bytes)).collect())
    }

    #[test]
    fn content_decides_what_a_file_is() {
        assert_eq!(names(b"abc", 10).unwrap(), [("x".to_owned(), b"abc".to_vec())]);
        assert_eq!(names(&gzip(b"abc"), 10).unwrap(), [("x".to_owned(), b"abc".to_vec())]);
        assert_eq!(names(b"", 10).unwrap(), [("x".to_owned(), Vec::new())]);
        let packed =
            archive(&[("README", b"no"), ("step_0.pb", b"0"), ("a/._step_0.pb", b"no"), ("graph.pb", b"no")]);
        assert_eq!(names(&gzip(&packed), 5000).unwrap(), [("x, step_0.pb".to_owned(), b"0".to_vec())]);
        let inner = gzip(b"1");
        let packed = archive(&[("run_1.pb.gz", &inner)]);
        assert_eq!(names(&packed, 3000).unwrap(), [("x, run_1.pb.gz".to_owned(), b"1".to_vec())]);
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        for bomb in [gzip(&vec![0; 100_000]), gzip(&archive(&[("step_0.pb", &vec![0; 100_000])]))] {
            assert!(bomb.len() < 1000);
            let error = names(&bomb, 10_000).unwrap_err();
            assert!(error.reason.contains("it unpacks to more than"), "{error}");
            assert!(names(&bomb, 100_000).is_ok());
        }
        let twice = archive(&[("step_0.pb", &[0; 3000]), ("step_1.pb", &[0; 3000])]);
        assert!(names(&twice, 5000).unwrap_err().reason.contains("unpacks to more"));
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let packed = gzip(b"a recording of some length");
        assert!(names(&packed[..packed.len() - 9], 1000).unwrap_err().reason.contains("unpacked"));
        let packed = archive(&[("step_0.pb", &[1; 3000])]);
        assert!(names(&packed[..1500], 10_000).is_err());
    }

    #[test]
    fn a_folder_gives_its_steps() {
        let folder = tempfile::tempdir().unwrap();
        assert!(recordings(folder.path(), 100).unwrap_err().reason.contains("no recorded steps"));
        for name in ["step_0001.pb", "step_0000.pb", "graph.pb", "notes.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let found = recordings(folder.path(), 100).unwrap();
        assert_eq!(
            found.iter().map(|blob| last_part(&blob.name)).collect::<Vec<_>>(),
            ["step_0000.pb", "step_0001.pb"]
        );
        assert!(recordings(&folder.path().join("absent.pb"), 100).is_err());
    }
}
