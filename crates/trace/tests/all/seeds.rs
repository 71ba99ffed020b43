//! The files that fuzzing starts from and those that once broke something: imported whole, cut off and spoilt.

use crate::{gzip, root};
use std::path::{Path, PathBuf};
use stepcast_trace::{Content, Format, Options};

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
fn import(path: &Path) -> Result<Content, String> {
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
        assert_eq!(import(&file).is_ok(), whole, "{}: {:?}", file.display(), import(&file).err());
        imported += 1;
    }
    assert!(imported >= 17, "{imported}");
}

#[test]
fn seeds_and_regressions_do_no_harm_however_they_are_spoilt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for file in [files("seeds"), files("regressions")].concat() {
        let _ = import(&file);
        let whole = std::fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by((whole.len() / 60).max(29)) {
            std::fs::write(&path, &whole[..at]).unwrap();
            let _ = import(&path);
            let mut spoilt = whole.clone();
            spoilt[at] = spoilt[at].wrapping_mul(31) ^ 0xa5;
            std::fs::write(&path, &spoilt).unwrap();
            let _ = import(&path);
            spoilt.iter_mut().skip(at).step_by(101).for_each(|byte| *byte = byte.wrapping_add(at as u8));
            std::fs::write(&path, &spoilt).unwrap();
            let _ = import(&path);
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
    assert!(import(&path).unwrap_err().contains("unpacks to more than 250 times its size"));

    let packed = gzip(&text);
    std::fs::write(&path, &packed[..packed.len() - 5]).unwrap();
    let options = Options { batch: Some(32), ..Options::default() };
    let imported = stepcast_trace::import(&[path], &options).unwrap();
    assert_eq!(imported.content.into_profile().unwrap().steps.len(), 2);
}
