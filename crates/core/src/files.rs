//! The files that a scenario names. Reading them is for callers: this crate does no input.

use crate::fault::Fault;
use crate::model::ModelFile;
use crate::profile::Profile;
use std::collections::BTreeMap;

/// Where the files that a scenario names come from.
pub trait Files {
    /// The profile called `path` in the scenario.
    fn profile(&self, path: &str) -> Result<Profile, Fault>;

    /// The layers of the ONNX file called `path` in the scenario, open dimensions having these lengths.
    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Fault> {
        let _ = sizes;
        let reason = format!("the ONNX file \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }

    /// The text of the fitted artefact called `path` in the scenario.
    fn text(&self, path: &str) -> Result<String, Fault> {
        let reason = format!("the artefact \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }
}

/// No files can be had.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        let reason = format!("the profile \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }
}
