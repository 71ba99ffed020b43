//! Importers: an import ends, with a profile or a model that can be used or with one error.

use super::path;
use stepcast_core::fault::Fault;
use stepcast_core::model::ModelFile;
use stepcast_core::pass::Recorded;
use stepcast_core::profile::Profile;
use stepcast_trace::{Content, Format, Options};

/// Imports a file that is of this format, as far as its beginning tells.
pub(crate) fn of(format: Format, data: &[u8]) {
    if Format::recognise(data) == Some(format) {
        any(data);
    }
}

/// Imports a file, compressed or an archive or plain.
pub(crate) fn any(data: &[u8]) {
    let path = path("");
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
                    ModelFile::from_model(&model).build().expect("a model can be written and read again");
                }
            }
        }
        Err(error) => complete(&error),
    }
}

/// Reads a profile.
pub(crate) fn profile(data: &[u8]) {
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
