//! From a path to streams of bytes: plain or compressed files, members of archives, files of folders.
//!
//! Compression and archives are recognised by their first bytes, not by names. Every stream is bounded: a small file that
//! unpacks to a huge one ends in an error, not in hours of work or exhausted memory.

mod stream;
mod xz;

use crate::import::{counted, system_fault};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, Stopped};
use stream::{Bounded, Counted, unreadable};
use xz::XzReader;

pub(crate) use stream::{Excess, Limits, Memory, Reading, Source};
pub use stream::{Progress, Watch};

/// Stands between an archive and its member in the name of a source.
const ARCHIVE: &str = ", ";

/// Hands the file at `path`, the members of an archive, or the files of a folder in order of their names to `visit`, until
/// it breaks.
pub(crate) fn visit(
    path: &Path,
    limits: Limits,
    reading: &Reading<'_>,
    visit: &mut dyn FnMut(Source<'_>) -> Result<ControlFlow<()>, Fault>,
) -> Result<(), Fault> {
    for file in files(path)? {
        if visit_file(&file, limits, reading, visit)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Hands the first recording at `path` that `recognises` accepts to `read`, and notes how many others are left out.
pub(crate) fn first<T>(
    path: &Path,
    reading: &Reading<'_>,
    recognises: fn(&[u8]) -> bool,
    notes: &mut Vec<String>,
    mut read: impl FnMut(&mut Source<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut found: Option<(String, T)> = None;
    let mut others = 0_usize;
    let visited = visit(path, Limits::STREAMED, reading, &mut |mut source| {
        if recognises(source.head()) {
            match found {
                Some(_) => others += 1,
                None => found = Some((source.name().to_owned(), read(&mut source)?)),
            }
        }
        Ok(ControlFlow::Continue(()))
    });
    let Some((name, value)) = found else {
        visited?;
        return Err(Fault::in_file(path.display().to_string(), "it holds no recording", "name a recording"));
    };
    if let Err(error) = visited {
        notes.push(format!("nothing after {name} could be read: {}", error.reason));
    }
    if others > 0 {
        notes.push(format!("only {name} imported; {} ignored", counted(others, "other recording")));
    }
    Ok(value)
}

/// The only one of `paths`, for formats that are imported one file at a time; `remedy` says what to do with several.
pub(crate) fn only<'a>(paths: &'a [PathBuf], what: &str, remedy: &str) -> Result<&'a Path, Fault> {
    match paths {
        [path] => Ok(path),
        _ => {
            let place = paths.last().map(|path| path.display().to_string()).unwrap_or_default();
            Err(Fault::in_file(place, format!("{what} are imported one at a time"), remedy))
        }
    }
}

/// A source's name without its folder or archive.
pub(crate) fn short_name(name: &str) -> &str {
    let member = name.rsplit_once(ARCHIVE).map_or(name, |(_, member)| member);
    member.rsplit(['/', '\\']).next().unwrap_or(member)
}

/// The file itself, or the files of a folder that are not hidden.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Fault> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let fail = |error| system_fault(path, &error, "check the path and its permissions");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.path().is_file() && !entry.file_name().to_string_lossy().starts_with('.') {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Hands the file at `path` to `read`, without looking for an archive in it.
pub(crate) fn one<T>(
    path: &Path,
    reading: &Reading<'_>,
    read: impl FnOnce(&mut Source<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let (mut source, _) = open(path, Limits::STREAMED, reading)?;
    read(&mut source)
}

type Exceeded = Rc<Cell<Option<Excess>>>;

/// The file at `path`, unpacked as it is read.
fn open<'a>(path: &Path, limits: Limits, reading: &Reading<'a>) -> Result<(Source<'a>, Exceeded), Fault> {
    let cannot = |error: &io::Error| system_fault(path, error, "check the path");
    let file = File::open(path).map_err(|error| cannot(&error))?;
    let of = file.metadata().map_err(|error| cannot(&error))?.len();
    let read = Rc::new(Cell::new(0));
    let counted = Counted { inner: file, read: read.clone() };
    let place = path.display().to_string();
    let excess = Rc::new(Cell::new(None));
    let memory = || reading.memory.clone();
    let unpacked =
        decompress(Box::new(counted), memory()).map_err(|error| unreadable(&place, &error, excess.get()))?;
    let bounded = Bounded::new(unpacked, limits, (reading.clone(), of), read, excess.clone());
    Ok((Source::new(place, Box::new(bounded), excess.clone(), memory()), excess))
}

fn visit_file(
    path: &Path,
    limits: Limits,
    reading: &Reading<'_>,
    visit: &mut dyn FnMut(Source<'_>) -> Result<ControlFlow<()>, Fault>,
) -> Result<ControlFlow<()>, Fault> {
    let (source, excess) = open(path, limits, reading)?;
    let place = path.display().to_string();
    let fail = |error: &io::Error| unreadable(&place, error, excess.get());
    let memory = || reading.memory.clone();
    if !is_tar(source.head()) {
        return visit(source);
    }
    let mut archive = tar::Archive::new(source);
    for entry in archive.entries().map_err(|error| fail(&error))? {
        let entry = entry.map_err(|error| fail(&error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let hidden = name.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
        if !entry.header().entry_type().is_file() || hidden {
            continue;
        }
        let packed = Rc::new(Cell::new(0));
        let member = Counted { inner: entry, read: packed.clone() };
        let content = decompress(Box::new(member), memory()).map_err(|error| fail(&error))?;
        // The archive itself is watched.
        let own = Reading { watch: &|_| ControlFlow::Continue(()), memory: memory() };
        let bounded = Bounded::new(content, limits, (own, 0), packed, excess.clone());
        let name = format!("{place}{ARCHIVE}{name}");
        let source = Source::new(name, Box::new(bounded), excess.clone(), memory());
        if visit(source)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Most bytes of a file that is held as a whole, after decompression: 128 MiB.
pub const MAX_UNPACKED: u64 = 128 << 20;

/// The first bytes of a file, unpacked if it is compressed, from which its format is recognised.
pub fn head(path: &Path) -> Result<Vec<u8>, Fault> {
    one(path, &reading(), |source| Ok(source.head().to_vec()))
}

/// The content of a file, unpacked if it is compressed, at most [`MAX_UNPACKED`] bytes.
pub fn unpacked(path: &Path) -> Result<Vec<u8>, Fault> {
    one(path, &reading(), |source| source.read_within(Limits::size(MAX_UNPACKED)))
}

pub fn unpacked_while(path: &Path, wanted: &CancelCheck<'_>) -> Result<Vec<u8>, Stopped> {
    let watch = |_: Progress| wanted();
    let reading = Reading { watch: &watch, ..reading() };
    let content = one(path, &reading, |source| source.read_within(Limits::size(MAX_UNPACKED)));
    if wanted().is_break() { Err(Stopped::Cancelled) } else { Ok(content?) }
}

fn reading<'a>() -> Reading<'a> {
    Reading { watch: &|_| ControlFlow::Continue(()), memory: Memory::new(4 * MAX_UNPACKED) }
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// Where a tar header has its magic word.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Packed bytes that are fetched at once.
const FETCH: usize = 128 << 10;

pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(TAR.0..TAR.0 + TAR.1.len()) == Some(TAR.1)
}

/// The decompressed content, if the first bytes are those of gzip or xz; otherwise the unchanged content.
pub(crate) fn decompress<'a>(
    mut reader: Box<dyn Read + 'a>,
    memory: Memory,
) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = Vec::with_capacity(XZ.len());
    (&mut reader).take(XZ.len() as u64).read_to_end(&mut head)?;
    let (gzip, xz) = (head.starts_with(GZIP), head == XZ);
    let whole = Cursor::new(head).chain(reader);
    Ok(if gzip {
        Box::new(flate2::bufread::MultiGzDecoder::new(io::BufReader::with_capacity(FETCH, whole)))
    } else if xz {
        Box::new(XzReader::new(io::BufReader::with_capacity(FETCH, whole), memory))
    } else {
        Box::new(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::testing::{archive, gzip};
    use crate::source::{Memory, Progress};

    const LIMITS: Limits = Limits { unpacked: 100_000, ratio: 50, small: 10_000 };

    fn reading<'a>() -> Reading<'a> {
        Reading { watch: &|_| ControlFlow::Continue(()), memory: Memory::new(1 << 30) }
    }

    fn all(path: &Path) -> Result<Vec<(String, Vec<u8>)>, Fault> {
        let mut found = Vec::new();
        visit(path, LIMITS, &reading(), &mut |mut source| {
            let mut bytes = Vec::new();
            source.read_to_end(&mut bytes).map_err(|error| source.fault(&error))?;
            assert!(bytes.starts_with(source.head()));
            let name = source.name().rsplit('/').next().unwrap().to_owned();
            found.push((name, bytes));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    #[test]
    fn files_members_and_folders_are_visited_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let two = gzip(b"2");
        let archive = gzip(&archive(&[("b/one.json", b"1"), ("b/._one", b"no"), ("two", &two)]));
        for (name, bytes) in
            [("a.txt", b"a".to_vec()), ("c.gz", gzip(b"c")), ("b.tar.gz", archive), (".d", vec![])]
        {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let names = ["a.txt:a", "one.json:1", "b.tar.gz, two:2", "c.gz:c"];
        let found = all(folder.path()).unwrap();
        let shown = found.iter().map(|(name, bytes)| format!("{name}:{}", String::from_utf8_lossy(bytes)));
        assert_eq!(shown.collect::<Vec<_>>(), names);
        assert!(all(&folder.path().join("absent")).is_err());
    }

    #[test]
    fn the_first_recording_counts_even_if_the_rest_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar");
        let archive = archive(&["one", "two", "three"].map(|name| (name, &b"abc"[..])));
        let first_of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut notes = Vec::new();
            let read = |source: &mut Source<'_>| {
                let mut bytes = Vec::new();
                source.read_to_end(&mut bytes).map(|_| bytes).map_err(|error| source.fault(&error))
            };
            (first(&path, &reading(), |head| head == b"abc", &mut notes, read), notes)
        };
        let (found, notes) = first_of(&archive);
        assert_eq!(found.unwrap(), b"abc");
        assert!(notes.len() == 1 && notes[0].ends_with("2 other recordings ignored"), "{notes:?}");
        let (found, notes) = first_of(&archive[..1100]);
        assert_eq!(found.unwrap(), b"abc");
        assert!(notes.len() == 1 && notes[0].contains("nothing after"), "{notes:?}");
        assert!(first_of(&archive[..300]).0.is_err());
        assert!(first_of(b"x").0.unwrap_err().reason.contains("no recording"));
    }

    #[test]
    fn bombs_are_refused_and_their_size_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, gzip(&vec![b' '; 90_000])).unwrap();
        assert!(all(&path).unwrap_err().reason.contains("50 times"));
        std::fs::write(&path, vec![b' '; 100_001]).unwrap();
        assert!(all(&path).unwrap_err().reason.contains("more than 100000 bytes"));
        std::fs::write(&path, gzip(&vec![b' '; 9_000])).unwrap();
        assert_eq!(all(&path).unwrap()[0].1.len(), 9_000, "small files may be as dense as they like");
    }

    #[test]
    fn what_is_cut_short_is_said_after_what_could_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gz");
        let text: Vec<u8> = (0..4000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let packed = gzip(&text);
        std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        let mut head = 0;
        let mut read = Vec::new();
        visit(&path, LIMITS, &reading(), &mut |mut source| {
            head = source.head().len();
            let error = source.read_to_end(&mut read).unwrap_err();
            assert!(source.fault(&error).remedy.contains("cut short"));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert!(head > 1000 && read == text[..read.len()] && read.len() == head);
    }

    #[test]
    fn progress_is_that_of_the_packed_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gz");
        let packed = gzip(&vec![7; 5000]);
        std::fs::write(&path, &packed).unwrap();
        let last = Cell::new(None);
        let watch = |progress| {
            last.set(Some(progress));
            ControlFlow::Continue(())
        };
        visit(&path, LIMITS, &Reading { watch: &watch, ..reading() }, &mut |mut source| {
            io::copy(&mut source, &mut io::sink()).unwrap();
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        let size = packed.len() as u64;
        assert_eq!(last.get(), Some(Progress { read: size, of: size }));
    }

    #[test]
    fn what_is_not_wanted_any_more_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gz");
        std::fs::write(&path, gzip(&vec![7; 5000])).unwrap();
        let stopped = Reading { watch: &|_| ControlFlow::Break(()), ..reading() };
        let read = |source: &mut Source<'_>| {
            let error = io::copy(source, &mut io::sink()).unwrap_err();
            Err::<(), Fault>(source.fault(&error))
        };
        let error = first(&path, &stopped, |_| true, &mut Vec::new(), read).unwrap_err();
        assert!(error.reason.contains("stopped"), "{error}");
    }

    #[test]
    fn what_takes_too_much_memory_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, vec![b' '; 90_000]).unwrap();
        let little = Reading { memory: Memory::new(1 << 20), ..reading() };
        let read = |source: &mut Source<'_>| {
            source.memory().hold(2 << 20);
            let error = io::copy(source, &mut io::sink()).unwrap_err();
            Err::<(), Fault>(source.fault(&error))
        };
        let error = first(&path, &little, |_| true, &mut Vec::new(), read).unwrap_err();
        assert!(error.reason.contains("1 MiB of memory") && error.remedy.contains("max-memory"), "{error}");
    }
}
