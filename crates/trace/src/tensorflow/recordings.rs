//! Recordings of steps that are held in memory as a whole: files called `.pb`, those called `step…` before all others.

use crate::source::{self, Limits, short_name};
use std::ops::ControlFlow;
use std::path::Path;
use stepcast_core::fault::Fault;

/// One recording.
#[derive(Debug)]
pub(super) struct Recording {
    /// The file, or the archive and its member.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The recordings at `path` in order of their names: a file, an archive of files, or a folder of files. Together they
/// unpack to at most `limit` bytes.
pub(super) fn recordings(path: &Path, limit: u64) -> Result<Vec<Recording>, Fault> {
    let mut left = limit;
    let mut files = source::files(path)?;
    if path.is_dir() {
        let name = |file: &Path| file.display().to_string();
        let any_step = files.iter().any(|file| is_step(&name(file)));
        files.retain(|file| if any_step { is_step(&name(file)) } else { is_recording(&name(file)) });
    }
    let mut found = Vec::new();
    for file in files {
        found.extend(of_file(&file, &mut left)?);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if found.is_empty() {
        let remedy = "name the files step_0000.pb, step_0001.pb, and so on";
        return Err(Fault::in_file(path.display().to_string(), "it holds no recorded steps", remedy));
    }
    Ok(found)
}

/// The only recording in the file at `path`.
pub(super) fn single(path: &Path, limit: u64) -> Result<Recording, Fault> {
    let mut found = of_file(path, &mut { limit })?;
    match (found.pop(), found.is_empty()) {
        (Some(recording), true) => Ok(recording),
        _ => Err(Fault::in_file(path.display().to_string(), "it is an archive", "give one file of it")),
    }
}

/// The file itself, or the members of an archive.
fn of_file(path: &Path, left: &mut u64) -> Result<Vec<Recording>, Fault> {
    let file = path.display().to_string();
    let mut found = Vec::new();
    // Twice the limit: an archive has headers and padding too, and members that are not read.
    let limits = Limits::size(left.saturating_mul(2));
    source::visit(path, limits, &|_| (), &mut |mut source| {
        let name = source.name().to_owned();
        if name == file || is_recording(&name) {
            found.push(Recording { name, bytes: source.read_within(left)? });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if found.iter().any(|recording| recording.name != file && is_step(&recording.name)) {
        found.retain(|recording| is_step(&recording.name));
    }
    Ok(found)
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        let prefix = format!("{}/", folder.path().display());
        let found = of_file(&path, &mut { limit })?;
        Ok(found.into_iter().map(|found| (found.name.replace(&prefix, ""), found.bytes)).collect())
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
            found.iter().map(|recording| short_name(&recording.name)).collect::<Vec<_>>(),
            ["step_0000.pb", "step_0001.pb"]
        );
        assert!(recordings(&folder.path().join("absent.pb"), 100).is_err());
    }
}
