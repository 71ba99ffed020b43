//! What must hold for every file, whatever is in it: an import ends, with a profile or a model that can be used or with one
//! error that says what to do.

use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::model::ModelFile;
use stepcast_core::pass::Recorded;
use stepcast_core::profile::Profile;
use stepcast_trace::{Format, Content, Options};

/// Imports a file that is of this format, as far as its beginning tells.
pub fn import(format: Format, data: &[u8]) {
    if Format::recognise(data) == Some(format) {
        import_any(data);
    }
}

/// Imports a file, compressed or an archive or plain.
pub fn import_any(data: &[u8]) {
    let path = path();
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let options = Options { batch: Some(32), ..Options::default() };
    match stepcast_trace::import(&[path], &options) {
        Ok(imported) => {
            assert!(imported.notes.iter().all(|note| !note.is_empty()));
            match imported.content {
                Content::Profile(profile) => hold(&profile),
                Content::Model(model) => {
                    ModelFile::of(&model).build().expect("a model can be written and read again");
                }
            }
        }
        Err(error) => complete(&error),
    }
}

/// Reads a profile.
pub fn profile(data: &[u8]) {
    match stepcast_trace::parse_profile(data, "profile.json") {
        Ok(profile) => hold(&profile),
        Err(error) => complete(&error),
    }
}

/// A profile can be used, and is the same after being written and read.
fn hold(profile: &Profile) {
    profile.check().expect("a profile that was imported can be used");
    if let Ok(recorded) = Recorded::new(profile) {
        let passes = recorded.steps(1.0).take(3);
        assert!(passes.into_iter().all(|pass| pass.computing().get() >= 0.0));
    }
    let mut text = Vec::new();
    stepcast_trace::print_profile(profile, &mut text).expect("memory takes all");
    let again = stepcast_trace::parse_profile(&text, "again").expect("what was written can be read");
    assert!(again == *profile, "a profile is the same after being written and read");
}

fn complete(error: &Fault) {
    assert!(!error.origin().is_empty() && !error.reason.is_empty() && !error.remedy.is_empty(), "{error:?}");
}

/// A file of this process, in memory where there is such a folder.
fn path() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("stepcast-fuzz-{}", std::process::id()))
}
