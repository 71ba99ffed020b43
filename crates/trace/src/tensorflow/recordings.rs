//! Recordings of steps: files called `.pb`, those called `step…` before all others.

use crate::source;
use crate::source::{Limits, Reading, short_name};
use std::ops::ControlFlow;
use std::path::Path;
use stepcast_core::fault::Fault;

#[derive(Debug)]
pub(super) struct Recording {
    /// The file, or the archive and its member.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Hands the recordings at `path`, which is a file, an archive of files, or a folder of files, to `take`, one at a time,
/// and whether they are named after a step; a file given directly counts as such.
pub(super) fn each(
    path: &Path,
    reading: &Reading<'_>,
    take: &mut dyn FnMut(Recording, bool) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut any = false;
    for file in source::files(path)? {
        let name = file.display().to_string();
        if path.is_dir() && !is_recording(&name) {
            continue;
        }
        of_file(&file, reading, &mut |recording| {
            any = true;
            let alone = recording.name == name && !path.is_dir();
            let is_step = alone || is_step(&recording.name);
            take(recording, is_step)
        })?;
    }
    if !any {
        let remedy = "name the files step_0000.pb, step_0001.pb, and so on";
        return Err(Fault::in_file(path.display().to_string(), "it holds no recorded steps", remedy));
    }
    Ok(())
}

pub(super) fn single(path: &Path, reading: &Reading<'_>) -> Result<Recording, Fault> {
    let mut found = None;
    let mut others = false;
    of_file(path, reading, &mut |recording| {
        others |= found.is_some();
        found = Some(recording);
        Ok(())
    })?;
    match (found, others) {
        (Some(recording), false) => Ok(recording),
        _ => Err(Fault::in_file(path.display().to_string(), "it is an archive", "give one file of it")),
    }
}

/// The file itself, or the members of an archive.
fn of_file(
    path: &Path,
    reading: &Reading<'_>,
    take: &mut dyn FnMut(Recording) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let file = path.display().to_string();
    source::visit(path, Limits::PACKED, reading, &mut |mut source| {
        let name = source.name().to_owned();
        if name == file || is_recording(&name) {
            let bytes = source.read_within(Limits::PACKED)?;
            take(Recording { name, bytes })?;
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn is_recording(name: &str) -> bool {
    let name = short_name(name);
    !name.starts_with('.') && [".pb", ".pb.gz", ".pb.xz"].iter().any(|end| name.ends_with(end))
}

fn is_step(name: &str) -> bool {
    is_recording(name) && short_name(name).starts_with("step")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Options;
    use crate::import::testing::{archive, gzip};

    fn all(path: &Path, limit: u64) -> Result<Vec<(String, Vec<u8>, bool)>, Fault> {
        let reading = Options { max_memory: Some(limit), ..Options::default() }.reading(&[]);
        let mut found = Vec::new();
        each(path, &reading, &mut |recording, is_step| {
            found.push((short_name(&recording.name).to_owned(), recording.bytes, is_step));
            Ok(())
        })?;
        Ok(found)
    }

    fn names(bytes: &[u8], limit: u64) -> Result<Vec<(String, Vec<u8>, bool)>, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        all(&path, limit)
    }

    fn one(name: &str, bytes: &[u8]) -> Vec<(String, Vec<u8>, bool)> {
        vec![(name.to_owned(), bytes.to_vec(), true)]
    }

    #[test]
    fn content_decides_what_a_file_is() {
        assert_eq!(names(b"abc", 1000).unwrap(), one("x", b"abc"));
        assert_eq!(names(&gzip(b"abc"), 1000).unwrap(), one("x", b"abc"));
        assert_eq!(names(b"", 1000).unwrap(), one("x", b""));
        let packed =
            archive(&[("README", b"no"), ("step_0.pb", b"0"), ("a/._step_0.pb", b"no"), ("graph.pb", b"no")]);
        let found = names(&gzip(&packed), 5000).unwrap();
        assert_eq!(found[..1], one("step_0.pb", b"0"));
        assert_eq!(found[1..], [("graph.pb".to_owned(), b"no".to_vec(), false)]);
        let inner = gzip(b"1");
        let packed = archive(&[("run_1.pb.gz", &inner)]);
        assert_eq!(names(&packed, 3000).unwrap(), [("run_1.pb.gz".to_owned(), b"1".to_vec(), false)]);
    }

    #[test]
    fn what_takes_too_much_memory_is_refused() {
        for bomb in [gzip(&vec![0; 100_000]), gzip(&archive(&[("step_0.pb", &vec![0; 100_000])]))] {
            assert!(bomb.len() < 1000);
            let error = names(&bomb, 100_000).unwrap_err();
            assert!(error.reason.contains("of memory"), "{error}");
            assert!(names(&bomb, 400_000).is_ok());
        }
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let packed = gzip(b"a recording of some length");
        assert!(names(&packed[..packed.len() - 9], 1000).unwrap_err().reason.contains("unpacked"));
        let packed = archive(&[("step_0.pb", &[1; 3000])]);
        assert!(names(&packed[..1500], 100_000).is_err());
    }

    #[test]
    fn a_folder_gives_its_steps() {
        let folder = tempfile::tempdir().unwrap();
        assert!(all(folder.path(), 1000).unwrap_err().reason.contains("no recorded steps"));
        for name in ["step_0001.pb", "step_0000.pb", "graph.pb", "notes.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let found = all(folder.path(), 1000).unwrap();
        let called: Vec<(&str, bool)> =
            found.iter().map(|(name, _, is_step)| (name.as_str(), *is_step)).collect();
        assert_eq!(called, [("graph.pb", false), ("step_0000.pb", true), ("step_0001.pb", true)]);
        assert!(all(&folder.path().join("absent.pb"), 1000).is_err());
    }
}
