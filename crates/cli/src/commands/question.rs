//! What is asked: a scenario from a file, from standard input or built in, or a profile alone.

use crate::args::ScenarioFlags;
use crate::render::error::Complaint;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use stepcast_core::invalid::{Invalid, KeyPath};
use stepcast_core::method::Inapplicable;
use stepcast_core::model::ModelFile;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{
    Document, DocumentError, Files, ModelSection, Override, Scenario, ScenarioFile, StrategySection,
};
use stepcast_core::strategy::Synchronisation;
use stepcast_study::sweep::{Axis, Variants, VaryError};
use stepcast_trace::{TraceError, onnx};

/// The scenario if none is given.
const QUICK_START: &str = include_str!("../../../../examples/quickstart.toml");
const QUICK_START_NAME: &str = "quickstart.toml (built in)";

/// A scenario beyond this is a mistake.
const MAX_FILE: u64 = 16 << 20;

/// What a user asks.
pub(super) struct Question {
    document: Document,
    files: Folder,
    /// Whether a profile was given in place of a scenario: places in the document mean nothing then.
    only_profile: bool,
    overrides: Vec<Override>,
    /// The overrides as they were written.
    flags: Vec<String>,
}

impl Question {
    /// What the flags of a command ask.
    pub(super) fn of(flags: &ScenarioFlags) -> Result<Self, Complaint> {
        Self::read(flags.scenario.as_deref(), &flags.overrides)
    }

    /// Reads the text and the overrides.
    pub(super) fn read(path: Option<&str>, flags: &[String]) -> Result<Self, Complaint> {
        let overrides: Result<Vec<Override>, DocumentError> =
            flags.iter().map(|text| Override::parse(text)).collect();
        let overrides = overrides.map_err(|error| Complaint::in_document(error, flags))?;
        let profile = path.filter(|path| is_profile(path));
        let document = match profile {
            Some(path) => document_of_profile(path)?,
            None => document(path)?,
        };
        // What a scenario names lies beside it.
        let folder = match path {
            Some(path) if path != "-" && profile.is_none() => Path::new(path).parent(),
            _ => None,
        };
        let files = Folder { path: folder.map(Path::to_owned).unwrap_or_default(), ..Folder::default() };
        Ok(Self { document, files, only_profile: profile.is_some(), overrides, flags: flags.to_vec() })
    }

    /// The scenario, or what is wrong with it.
    pub(super) fn scenario(&self) -> Result<Scenario, Complaint> {
        self.document.scenario_with(&self.files, &self.overrides).map_err(|error| {
            let failed = self.files.last_error().filter(|_| self.only_profile);
            failed.map_or_else(|| self.complaint(error), Complaint::in_trace)
        })
    }

    /// The scenario at every combination of the axes' values; `flag` is what names an axis.
    pub(super) fn variants(&self, axes: Vec<Axis>, flag: &str) -> Result<Variants<'_>, Complaint> {
        Variants::new(&self.document, &self.files, &self.overrides, axes).map_err(|error| match error {
            VaryError::Axis { axis, invalid } => {
                Complaint::new(invalid.reason, invalid.remedy).at(format!("{flag} {axis}"))
            }
            VaryError::Document(error) => {
                let failed = self.files.last_error().filter(|_| self.only_profile);
                failed.map_or_else(|| self.complaint(error), Complaint::in_trace)
            }
        })
    }

    /// What a method's refusal is, with the place of what it refuses.
    pub(super) fn refused(&self, why: Inapplicable) -> Complaint {
        self.complaint(self.document.refused(why, &self.overrides))
    }

    fn complaint(&self, error: DocumentError) -> Complaint {
        let place = error.place.filter(|_| !self.only_profile);
        Complaint::in_document(DocumentError { place, ..error }, &self.flags)
    }
}

pub(super) fn is_profile(path: &str) -> bool {
    path.ends_with(".json") || path.ends_with(".json.gz")
}

/// Files beside a scenario.
#[derive(Default)]
struct Folder {
    path: PathBuf,
    /// What was said of them on standard error.
    said: Mutex<BTreeSet<String>>,
    /// The last error: it knows the place in the file.
    failed: Mutex<Option<TraceError>>,
}

impl Folder {
    fn last_error(&self) -> Option<TraceError> {
        self.failed.lock().ok()?.take()
    }
}

impl Files for Folder {
    fn profile(&self, path: &str) -> Result<Profile, Invalid> {
        read_profile(&self.path.join(path)).map_err(|error| {
            let reason = format!("{}: {}", error.place, error.reason);
            let invalid = Invalid::new(KeyPath::root(), reason, error.remedy.clone());
            if let Ok(mut failed) = self.failed.lock() {
                *failed = Some(error);
            }
            invalid
        })
    }

    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Invalid> {
        let options = onnx::Options { sizes: sizes.clone(), name: None };
        let imported = onnx::onnx(&self.path.join(path), &options).map_err(|error| {
            Invalid::new(KeyPath::root(), format!("{}: {}", error.place, error.reason), error.remedy)
        })?;
        for note in imported.notes {
            let note: String = note.chars().filter(|c| !c.is_control()).collect();
            if self.said.lock().is_ok_and(|mut said| said.insert(note.clone())) {
                // Nobody can be told that nobody can be told.
                let _ = writeln!(io::stderr(), "{path}: {note}");
            }
        }
        Ok(ModelFile::of(&imported.model))
    }

    fn text(&self, path: &str) -> Result<String, Invalid> {
        let path = self.path.join(path);
        let wrong = |error: io::Error| {
            let reason = format!("{}: {error}", path.display());
            Invalid::new(KeyPath::root(), reason, "name a file that `stepcast fit` has written")
        };
        let mut text = String::new();
        File::open(&path).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text)).map_err(wrong)?;
        Ok(text)
    }
}

fn read_profile(path: &Path) -> Result<Profile, TraceError> {
    if path.is_dir() {
        let (reason, remedy) =
            ("it is a folder", "name a profile; `stepcast import` makes one of recordings");
        let place = path.display().to_string();
        return Err(TraceError { place, reason: reason.to_owned(), remedy: remedy.to_owned() });
    }
    stepcast_trace::read_profile(path)
}

/// A scenario of nothing but a profile: asynchronous training with a parameter server.
fn document_of_profile(path: &str) -> Result<Document, Complaint> {
    let file = ScenarioFile {
        model: ModelSection { profile: Some(path.to_owned()), ..ModelSection::default() },
        strategy: StrategySection {
            synchronisation: Some(Synchronisation::Async),
            ..StrategySection::default()
        },
        ..ScenarioFile::default()
    };
    let text = toml::to_string(&file)
        .map_err(|error| Complaint::new(error.to_string(), "give the file another name").at(path))?;
    Ok(Document::new(path, text))
}

/// The scenario's text: a file, standard input, or the quick start.
fn document(path: Option<&str>) -> Result<Document, Complaint> {
    let (name, text) = match path {
        None => (QUICK_START_NAME, QUICK_START.to_owned()),
        Some("-") => ("<stdin>", text("<stdin>", io::stdin().lock())?),
        Some(path) => {
            let cannot = |error: io::Error| {
                let remedy = "check the path; `stepcast predict` alone runs the built-in quick start";
                Complaint::new(format!("cannot read the scenario: {error}"), remedy).at(path)
            };
            if fs::metadata(path).map_err(cannot)?.is_dir() {
                let remedy = "name a file in it";
                return Err(Complaint::new("the scenario is a directory", remedy).at(path));
            }
            (path, text(path, File::open(path).map_err(cannot)?)?)
        }
    };
    Ok(Document::new(name, text))
}

fn text(name: &str, reader: impl Read) -> Result<String, Complaint> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| {
        Complaint::new(format!("cannot read the scenario: {error}"), "check the file").at(name)
    })?;
    if bytes.len() as u64 > MAX_FILE {
        let reason = format!("the scenario is larger than {} MiB", MAX_FILE >> 20);
        return Err(Complaint::new(reason, "a scenario has a few dozen lines: check the file").at(name));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count();
        Complaint::new("the scenario is not UTF-8 text", "save it as UTF-8").at(format!("{name}:{line}"))
    })
}
