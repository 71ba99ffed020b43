//! What is asked: a scenario from a file, a text or built in, or a profile alone, with all that it names.

mod folder;
mod packed;

pub use folder::{Folder, Kept};

use crate::explore::sweep::{Axis, Variants, VaryError};
use folder::MAX_FILE;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{Document, ModelSection, Override, Scenario, ScenarioFile};
use stepcast_core::strategy::StrategySection;
use stepcast_core::strategy::Synchronisation;

/// The scenario if none is given.
const QUICK_START: &str = include_str!("../../../../examples/quickstart.toml");

/// What the built-in scenario is called.
pub const QUICK_START_NAME: &str = "quickstart.toml (built in)";

/// A profile, or nothing, does not say how gradients are summed; who asks about fusion means this.
pub const ALL_REDUCE: [&str; 2] = ["strategy.architecture=all-reduce", "strategy.synchronisation=bsp"];

/// What a user asks.
#[derive(Debug)]
pub struct Question {
    document: Document,
    files: Folder,
    /// Whether a profile was given in place of a scenario: places in the document mean nothing then.
    only_profile: bool,
    overrides: Vec<Override>,
}

impl Question {
    /// A document, the files that it names, and changes to it.
    pub fn new(document: Document, files: Folder, overrides: Vec<Override>) -> Self {
        Self { document, files, only_profile: false, overrides }
    }

    /// The built-in scenario.
    pub fn quick_start(overrides: Vec<Override>) -> Self {
        let folder = Folder::new(Path::new("").to_owned());
        Self::new(Document::new(QUICK_START_NAME, QUICK_START), folder, overrides)
    }

    /// What lies at `path`: a scenario, or a profile. What a scenario names lies beside it.
    pub fn open(path: &str, overrides: Vec<Override>) -> Result<Self, Fault> {
        if is_profile(path) {
            let document = document_of_profile(path)?;
            let files = Folder::new(Path::new("").to_owned());
            return Ok(Self { document, files, only_profile: true, overrides });
        }
        let cannot = |error: io::Error| {
            let remedy = "check the path; `stepcast predict` alone runs the built-in quick start";
            Fault::in_file(path, format!("cannot read the scenario: {error}"), remedy)
        };
        if fs::metadata(path).map_err(cannot)?.is_dir() {
            return Err(Fault::in_file(path, "the scenario is a directory", "name a file in it"));
        }
        let text = text(path, File::open(path).map_err(cannot)?)?;
        let folder = Path::new(path).parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self::new(Document::new(path, text), Folder::new(folder), overrides))
    }

    /// The scenario that `reader` has, called `name` in errors; what it names is relative to where one is.
    pub fn from_reader(name: &str, reader: impl Read, overrides: Vec<Override>) -> Result<Self, Fault> {
        let document = Document::new(name, text(name, reader)?);
        Ok(Self::new(document, Folder::new(Path::new("").to_owned()), overrides))
    }

    /// A profile alone, as if it lay at `path`.
    pub fn of_profile(path: &str, profile: Profile, overrides: Vec<Override>) -> Result<Self, Fault> {
        let files = Folder::default().with_profile(path, profile);
        Ok(Self { document: document_of_profile(path)?, files, only_profile: true, overrides })
    }

    /// The same with further changes; files are read again.
    pub fn changed(&self, overrides: impl IntoIterator<Item = Override>) -> Self {
        let files = match self.files.path() {
            Some(path) => Folder::new(path.to_owned()),
            None => Folder::of_kept(self.files.kept()),
        };
        let overrides = self.overrides.iter().cloned().chain(overrides).collect();
        Self { document: self.document.clone(), files, only_profile: self.only_profile, overrides }
    }

    /// The question about fusion: a profile alone is trained by all-reduce, unless changes say otherwise.
    pub fn about_fusion(&self) -> Result<Self, Fault> {
        let mut question = self.changed([]);
        if self.only_profile {
            let usual: Result<Vec<Override>, _> =
                ALL_REDUCE.iter().map(|text| Override::parse(text)).collect();
            question.overrides.splice(0..0, usual?);
        }
        Ok(question)
    }

    /// The scenario as it is written, changes made and defaults left out.
    pub fn file(&self) -> Result<ScenarioFile, Fault> {
        self.document.file(&self.overrides)
    }

    /// The scenario, or what is wrong with it.
    pub fn scenario(&self) -> Result<Scenario, Fault> {
        let scenario = self.document.scenario_with(&self.files, &self.overrides);
        scenario.map_err(|error| self.explained(error))
    }

    /// The scenario at every combination of the axes' values.
    pub fn variants(&self, axes: Vec<Axis>) -> Result<Variants<'_>, VaryError> {
        Variants::new(&self.document, &self.files, &self.overrides, axes).map_err(|error| match error {
            VaryError::Document(error) => VaryError::Document(self.explained(error)),
            error @ VaryError::Axis { .. } => error,
        })
    }

    /// What a method's refusal is, with the place of what it refuses.
    pub fn refused(&self, why: Fault) -> Fault {
        self.placed(self.document.located(why, &self.overrides))
    }

    /// What importers said of files that were read since this was last asked.
    pub fn take_notes(&self) -> Vec<String> {
        self.files.take_notes()
    }

    /// A profile that cannot be read says itself where.
    fn explained(&self, error: Fault) -> Fault {
        let failed = self.files.take_error().filter(|_| self.only_profile);
        failed.unwrap_or_else(|| self.placed(error))
    }

    /// Without the place in the document where nobody wrote one.
    fn placed(&self, mut fault: Fault) -> Fault {
        if let Some(place) = fault.place.as_mut().filter(|_| self.only_profile) {
            place.excerpt = None;
        }
        fault
    }
}

/// Whether a path is that of a profile.
pub fn is_profile(path: &str) -> bool {
    path.ends_with(".json") || path.ends_with(".json.gz")
}

/// A scenario of nothing but a profile: asynchronous training with a parameter server.
fn document_of_profile(path: &str) -> Result<Document, Fault> {
    let file = ScenarioFile {
        model: ModelSection { profile: Some(path.to_owned()), ..ModelSection::default() },
        strategy: StrategySection {
            synchronisation: Some(Synchronisation::Async),
            ..StrategySection::default()
        },
        ..ScenarioFile::default()
    };
    let text = toml::to_string(&file)
        .map_err(|error| Fault::in_file(path, error.to_string(), "give the file another name"))?;
    Ok(Document::new(path, text))
}

fn text(name: &str, reader: impl Read) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| {
        Fault::in_file(name, format!("cannot read the scenario: {error}"), "check the file")
    })?;
    if bytes.len() as u64 > MAX_FILE {
        let reason = format!("the scenario is larger than {} MiB", MAX_FILE >> 20);
        return Err(Fault::in_file(name, reason, "a scenario has a few dozen lines: check the file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count();
        Fault::in_file(format!("{name}:{line}"), "the scenario is not UTF-8 text", "save it as UTF-8")
    })
}
