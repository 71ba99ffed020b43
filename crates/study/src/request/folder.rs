//! Files beside a scenario, each read once and kept; and a request as one self-contained text that can be processed elsewhere:
//! the scenario and the files that it names.

use super::{Request, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use stepcast_core::fault::{Fault, Note, Remedy};
use stepcast_core::files::Files;
use stepcast_core::model::ModelFile;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::Document;
use stepcast_trace::read_onnx;

/// Largest text file that is read; larger ones are mistakes.
pub(super) const MAX_FILE: u64 = 16 << 20;

/// The files that were read, by the names that scenarios use for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
    /// By path and sizes of open dimensions.
    #[serde(default)]
    models: BTreeMap<String, ModelFile>,
    #[serde(default)]
    texts: BTreeMap<String, String>,
}

/// The folder that file names in a scenario are relative to.
#[derive(Debug, Default)]
pub struct Folder {
    /// `None` if only the kept files are available.
    path: Option<PathBuf>,
    kept: Mutex<Kept>,
    /// Notes of importers that have not been taken yet.
    notes: Mutex<Vec<Note>>,
    /// The last error, which has the position in the file.
    failed: Mutex<Option<Fault>>,
}

impl Folder {
    /// The folder at `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path: Some(path), ..Self::default() }
    }

    /// A source with only the kept files.
    pub fn from_kept(kept: Kept) -> Self {
        Self { kept: Mutex::new(kept), ..Self::default() }
    }

    /// The folder, with a profile that takes precedence over its files.
    pub fn with_profile(mut self, name: &str, profile: Profile) -> Self {
        if let Ok(kept) = self.kept.get_mut() {
            kept.profiles.insert(name.to_owned(), profile);
        }
        self
    }

    /// All files that were read so far.
    pub fn kept(&self) -> Kept {
        self.kept.lock().map(|kept| kept.clone()).unwrap_or_default()
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn take_notes(&self) -> Vec<Note> {
        self.notes.lock().map(|mut notes| std::mem::take(&mut *notes)).unwrap_or_default()
    }

    pub(super) fn note(&self, note: impl Into<Note>) {
        let note = note.into();
        if let Ok(mut notes) = self.notes.lock()
            && !notes.contains(&note)
        {
            notes.push(note);
        }
    }

    fn place(&self, path: &str) -> Result<PathBuf, Fault> {
        let folder = self.path.as_ref().ok_or_else(|| {
            let reason = format!("the file \"{path}\" cannot be read from here");
            Fault::new(reason, "give the scenario as a file, or name the folder that the file is in")
        })?;
        Ok(folder.join(path))
    }

    /// The entry kept under `name`, or the result of `read`, which is then kept.
    fn once<T: Clone>(
        &self,
        of: fn(&mut Kept) -> &mut BTreeMap<String, T>,
        name: &str,
        read: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let known = self.kept.lock().ok().and_then(|mut kept| of(&mut kept).get(name).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let found = read()?;
        if let Ok(mut kept) = self.kept.lock() {
            of(&mut kept).insert(name.to_owned(), found.clone());
        }
        Ok(found)
    }
}

impl Source for Folder {
    fn take_fault(&self) -> Option<Fault> {
        self.failed.lock().ok()?.take()
    }
}

impl Files for Folder {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        self.once(
            |kept| &mut kept.profiles,
            path,
            || {
                read_profile(&self.place(path)?).map_err(|error| {
                    let reason = format!("{}: {}", error.origin(), error.reason);
                    let fault = Fault::new(reason, error.remedy.clone());
                    if let Ok(mut failed) = self.failed.lock() {
                        *failed = Some(error);
                    }
                    fault
                })
            },
        )
    }

    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Fault> {
        let read = || {
            let imported = read_onnx(&self.place(path)?, sizes)
                .map_err(|error| Fault::new(format!("{}: {}", error.origin(), error.reason), error.remedy))?;
            for note in imported.notes {
                let note: String = note.chars().filter(|c| !c.is_control()).collect();
                self.note(format!("{path}: {note}"));
            }
            Ok(ModelFile::from_model(&imported.model))
        };
        self.once(|kept| &mut kept.models, &format!("{path} {sizes:?}"), read)
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        let read = || {
            let path = self.place(path)?;
            let wrong = |error: io::Error| {
                let reason = format!("{}: {error}", path.display());
                Fault::new(reason, Remedy::NameArtefact { fits: Vec::new() })
            };
            let mut text = String::new();
            File::open(&path)
                .and_then(|file| file.take(MAX_FILE).read_to_string(&mut text))
                .map_err(wrong)?;
            Ok(text)
        };
        self.once(|kept| &mut kept.texts, path, read)
    }
}

fn read_profile(path: &Path) -> Result<Profile, Fault> {
    if path.is_dir() {
        let remedy = [Remedy::advice("name a profile"), Remedy::ImportRecording];
        return Err(Fault::in_file(path.display().to_string(), "it is a folder", remedy));
    }
    stepcast_trace::read_profile(path)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, Deserialize)]
struct Packed {
    stepcast: String,
    scenario: String,
    files: Kept,
    only_profile: bool,
    unwritten: bool,
}

/// The part of a packed text that identifies the program that packed it.
#[derive(Deserialize)]
struct Label {
    stepcast: String,
}

impl Request {
    /// The request as a text, independent of comments and layout. Only files that were read are packed: call
    /// [`scenario`](Self::scenario) or [`variants`](Self::variants) first.
    pub fn packed(&self) -> Result<String, Fault> {
        let cannot = |error: String| {
            Fault::in_file("scenario", format!("it cannot be packed: {error}"), "report this")
        };
        let packed = Packed {
            stepcast: VERSION.to_owned(),
            scenario: toml::to_string(&self.file()?).map_err(|error| cannot(error.to_string()))?,
            files: self.files.kept(),
            only_profile: self.only_profile,
            unwritten: !self.document.is_written(),
        };
        serde_json::to_string(&packed).map_err(|error| cannot(error.to_string()))
    }

    /// Restores the request from the text that [`packed`](Self::packed) made.
    pub fn unpack(text: &str) -> Result<Self, Fault> {
        let damaged = |error: serde_json::Error| {
            Fault::in_file(
                "packed scenario",
                format!("it is damaged: {error}"),
                "make it again from its file",
            )
        };
        let label: Label = serde_json::from_str(text).map_err(damaged)?;
        if label.stepcast != VERSION {
            let reason = format!("it is of version {}, and this is {VERSION}", label.stepcast);
            let remedy = "make it again from its file, or install the same version everywhere";
            return Err(Fault::in_file("packed scenario", reason, remedy));
        }
        let packed: Packed = serde_json::from_str(text).map_err(damaged)?;
        let document = Document::new("packed scenario", packed.scenario);
        let document = match packed.unwritten {
            true => Document::from_file("packed scenario", document.file(&[])?),
            false => document,
        };
        let request = Self::new(document, Folder::from_kept(packed.files), Vec::new());
        Ok(Self { only_profile: packed.only_profile, ..request })
    }
}
