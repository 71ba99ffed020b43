//! Access to the files that a scenario names. Callers read them, because this crate performs no input or output.

use crate::fault::Fault;
use crate::model::ModelFile;
use crate::profile::Profile;
use std::collections::BTreeMap;

pub trait Files {
    /// The profile called `path` in the scenario.
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        let reason = format!("the profile \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }

    /// The layers of the ONNX file called `path` in the scenario; `sizes` gives the lengths of its open dimensions.
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

/// A source without any files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {}
