//! Reading recordings from every kind of file, files that are broken, the seeds of fuzzing, and exported networks as scenario
//! files.
//!
//! The fixtures are three steps of a made-up job with one weight, and its graphs.

use crate::{gzip, root};
use std::io::Read;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::model::zoo;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::ScenarioFile;
use stepcast_trace::{Content, Format, Imported, Options, print_model, read_onnx, read_run_metadata};

const STEPS: &[u8] = include_bytes!("../fixtures/steps.tar.xz");
const GRAPHS: &[u8] = include_bytes!("../fixtures/graphs.pb.gz");

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

fn unpacked() -> Vec<u8> {
    let mut out = Vec::new();
    lzma_rust2::XzReader::new(STEPS, true).read_to_end(&mut out).unwrap();
    out
}

struct Folder {
    folder: tempfile::TempDir,
    steps: PathBuf,
}

impl Folder {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let steps = folder.path().join(name);
        std::fs::write(&steps, bytes).unwrap();
        std::fs::write(folder.path().join("graphs.pb.gz"), GRAPHS).unwrap();
        Self { folder, steps }
    }

    fn import(&self, steps: &Path) -> Result<Imported<Profile>, Fault> {
        read_run_metadata(steps, Some(&self.folder.path().join("graphs.pb.gz")), 8)
    }
}

fn import(name: &str, bytes: &[u8]) -> Result<Imported<Profile>, Fault> {
    let folder = Folder::new(name, bytes);
    folder.import(&folder.steps)
}

fn same(profile: Profile) -> (Vec<stepcast_core::profile::Operation>, Vec<stepcast_core::profile::Step>) {
    (profile.operations, profile.steps)
}

#[test]
fn every_kind_of_file_gives_the_same_profile() {
    let Imported { content: profile, notes, .. } = import("job.tar.xz", STEPS).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(
        (profile.name.as_str(), profile.source.as_str()),
        ("job", "TensorFlow RunMetadata, job.tar.xz")
    );
    assert_eq!((profile.operations.len(), profile.steps.len()), (7, 3));
    let expected = same(profile);
    assert_eq!(same(import("job.tar", &unpacked()).unwrap().content), expected);
    assert_eq!(same(import("job.tar.gz", &gzip(&unpacked())).unwrap().content), expected);

    let folder = Folder::new("notes.txt", b"");
    for entry in tar::Archive::new(&unpacked()[..]).entries().unwrap() {
        entry.unwrap().unpack_in(folder.folder.path()).unwrap();
    }
    assert_eq!(same(folder.import(folder.folder.path()).unwrap().content), expected);

    // One step, with the graphs behind it, needs no other file.
    let step = std::fs::read(folder.folder.path().join("step_0000.pb")).unwrap();
    let both = gzip(&[step, gunzip(GRAPHS)].concat());
    let alone = Folder::new("one.pb.gz", &both);
    assert_eq!(read_run_metadata(&alone.steps, None, 8).unwrap().content.operations.len(), 7);
}

#[test]
fn errors_name_the_file() {
    let folder = Folder::new("job.tar.xz", STEPS);
    let absent = folder.folder.path().join("absent.tar.xz");
    assert!(folder.import(&absent).unwrap_err().origin().ends_with("absent.tar.xz"));
    let error = read_run_metadata(&folder.steps, Some(&folder.steps), 8).unwrap_err();
    assert_eq!(error.reason, "it is an archive");
    let error = read_run_metadata(&folder.steps, None, 8).unwrap_err();
    assert!(
        error.origin().ends_with("job.tar.xz") && error.remedy.contains("output_partition_graphs"),
        "{error}"
    );
    let error = import("job.tar.xz", &STEPS[..STEPS.len() / 2]).unwrap_err();
    assert!(error.reason.contains("unpacked"), "{error}");
    let archive = unpacked();
    let first = archive.windows(3).position(|bytes| bytes == b"job").unwrap();
    let mut broken = archive.clone();
    broken[first - 2] = 0xff;
    let error = import("job.tar", &broken).unwrap_err();
    assert!(error.origin().ends_with("job.tar, step_0000.pb"), "{error}");
    assert!(import("empty.pb", b"").unwrap_err().remedy.contains("FULL_TRACE"));
    assert!(import("empty.tar", &[0; 1024]).is_err());
}

#[test]
fn the_documented_profile_can_be_read() {
    let page = include_str!("../../../../docs/profile.md");
    let example = page.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    let profile = stepcast_trace::parse_profile(example.as_bytes(), "profile.md").unwrap();
    let mut printed = Vec::new();
    stepcast_trace::print_profile(&profile, &mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed.lines().count(), example.lines().count(), "{printed}");
}

#[test]
fn models_can_be_written_and_read_again() {
    let folder = root("crates/onnx/tests/models");
    let mut read = 0;
    for file in folder.read_dir().unwrap().map(|file| file.unwrap().path()) {
        let Some(network) = file.file_name().unwrap().to_str().unwrap().strip_suffix(".onnx.gz") else {
            continue;
        };
        let sizes = match zoo::build(network.split('.').next().unwrap()).unwrap().input().dims() {
            [tokens] => [("sequence".to_owned(), *tokens)].into(),
            _ => Default::default(),
        };
        let model = read_onnx(&file, &sizes).unwrap().model;
        assert_eq!(model.name, network);
        let mut text = Vec::new();
        print_model(&model, &mut text).unwrap();
        let scenario: ScenarioFile = toml::from_str(std::str::from_utf8(&text).unwrap()).unwrap();
        let again = scenario.model.custom.unwrap().build().unwrap();
        assert_eq!(again.layers(), model.layers(), "{network}");
        read += 1;
    }
    assert_eq!(read, 21);
}

// The files that fuzzing starts from and those that once broke something: imported whole, cut off and spoilt.

fn files(kind: &str) -> Vec<PathBuf> {
    let folder = root("fuzz").join(kind);
    let mut files = Vec::new();
    for target in folder.read_dir().into_iter().flatten() {
        files.extend(target.unwrap().path().read_dir().unwrap().map(|file| file.unwrap().path()));
    }
    files.sort();
    files
}

/// A profile that can be used, a model, or an error that says what to do.
fn import_any(path: &Path) -> Result<Content, String> {
    let options = Options { batch: Some(32), ..Options::default() };
    match stepcast_trace::import(&[path.to_owned()], &options) {
        Ok(imported) => {
            if let Content::Profile(profile) = &imported.content {
                profile.check().unwrap();
            }
            Ok(imported.content)
        }
        Err(error) => {
            assert!(!error.origin().is_empty() && !error.reason.is_empty() && !error.remedy.is_empty());
            Err(error.to_string())
        }
    }
}

#[test]
fn seeds_are_of_the_format_that_they_stand_for() {
    let mut imported = 0;
    for file in files("seeds") {
        let target = file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let expected = match target.as_str() {
            "run_metadata" => Format::RunMetadata,
            "chakra" => Format::Chakra,
            "horovod" => Format::Horovod,
            "tensorflow_timeline" => Format::TensorFlowTimeline,
            "layers" => Format::Layers,
            "kineto" => Format::Kineto,
            "onnx" => Format::Onnx,
            "timeline" => Format::Timeline,
            _ => continue,
        };
        assert_eq!(Format::detect(&file).unwrap(), expected, "{}", file.display());
        let name = file.file_name().unwrap().to_str().unwrap();
        let whole = !["step_alone.pb", "without_sizes.json"].contains(&name);
        assert_eq!(import_any(&file).is_ok(), whole, "{}: {:?}", file.display(), import_any(&file).err());
        imported += 1;
    }
    assert!(imported >= 17, "{imported}");
}

#[test]
fn seeds_and_regressions_do_no_harm_however_they_are_spoilt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for file in [files("seeds"), files("regressions")].concat() {
        let _ = import_any(&file);
        let whole = std::fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by((whole.len() / 60).max(29)) {
            std::fs::write(&path, &whole[..at]).unwrap();
            let _ = import_any(&path);
            let mut spoilt = whole.clone();
            spoilt[at] = spoilt[at].wrapping_mul(31) ^ 0xa5;
            std::fs::write(&path, &spoilt).unwrap();
            let _ = import_any(&path);
            spoilt.iter_mut().skip(at).step_by(101).for_each(|byte| *byte = byte.wrapping_add(at as u8));
            std::fs::write(&path, &spoilt).unwrap();
            let _ = import_any(&path);
        }
    }
}

#[test]
fn streams_that_unpack_to_too_much_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.json.gz");
    let text = std::fs::read(root("fuzz/seeds/horovod/three_steps.json")).unwrap();
    let bomb = [&text[..text.len() - 1], &vec![b' '; 80 << 20]].concat();
    std::fs::write(&path, gzip(&bomb)).unwrap();
    assert!(import_any(&path).unwrap_err().contains("unpacks to more than 250 times its size"));

    let packed = gzip(&text);
    std::fs::write(&path, &packed[..packed.len() - 5]).unwrap();
    let options = Options { batch: Some(32), ..Options::default() };
    let imported = stepcast_trace::import(&[path], &options).unwrap();
    assert_eq!(imported.content.into_profile().unwrap().steps.len(), 2);
}
