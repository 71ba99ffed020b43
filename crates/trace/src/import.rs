//! Importing whatever lies at a path: options in, a profile or a model out, with what was found on the way.

use crate::Summary;
use crate::format::Format;
use crate::source::Watch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::model::Model;
use stepcast_core::profile::Profile;

/// What an import may need to be told.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Samples of one step, where the recording does not tell.
    pub batch: Option<u32>,
    /// TensorFlow's recording with the partition graphs.
    pub graphs: Option<&'a Path>,
    /// Lengths of dimensions that a model leaves open.
    pub sizes: &'a BTreeMap<String, u64>,
    /// Is told how much has been read.
    pub watch: Watch<'a>,
}

static NO_SIZES: BTreeMap<String, u64> = BTreeMap::new();

impl Default for Options<'_> {
    fn default() -> Self {
        Self { batch: None, graphs: None, sizes: &NO_SIZES, watch: &|_| () }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Measured steps; they have passed `Profile::check`.
    Profile(Profile),
    /// A network.
    Model(Box<Model>),
}

/// What a recording gave, and what had to be done to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported<T = Found> {
    /// The profile or the model.
    pub found: T,
    /// Figures of the recording that the profile or model does not hold.
    pub summary: Summary,
    /// What was repaired, left out or looks odd: one sentence each, for people to read.
    pub notes: Vec<String>,
}

impl<T> Imported<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Imported<U> {
        Imported { found: change(self.found), summary: self.summary, notes: self.notes }
    }
}

/// Imports the recordings at `paths`, whose format their content tells: files, folders or archives. Several paths are
/// several workers of one job.
pub fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let Some(first) = paths.first() else {
        return Err(Fault::in_file("import", "no file was named", "name a recording"));
    };
    let format = Format::detect(first)?;
    for path in &paths[1..] {
        let other = Format::detect(path)?;
        if other != format {
            let reason = format!("it is a {}, the first file a {}", other.name(), format.name());
            return Err(Fault::in_file(path.display().to_string(), reason, "import one format at a time"));
        }
    }
    format.import(paths, options)
}

/// What to say when a step's number of samples is missing.
pub(crate) fn needs_batch(place: &str) -> Fault {
    Fault::in_file(place, "it does not tell how many samples a step has", "say it: --batch 32")
}
