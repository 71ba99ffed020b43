//! Uploaded files, the only files that scenarios sent to the server can name.
//!
//! Uploads are kept in memory, models without their weights, under unguessable names that begin with the
//! names of the client's files; the oldest are removed when there are too many. During import a file lies in a folder that only this
//! process uses, under a generated name. No name sent by a client ever becomes part of a path.

use crate::problem::Problem;
use crate::work;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::model::ModelFile;
use stepcast_core::profile::Profile;
use stepcast_examples::ONE_WORKER;
use stepcast_fit::streams::measure_link;
use stepcast_report::table::folding_section;
use stepcast_report::tables::check as tables;
use stepcast_study::check::ranks::{find, read_ranks};
use stepcast_trace::{Content, Format, Imported, Options, Overview, Progress, parse_profile, print_profile};
use tempfile::TempDir;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub(crate) const LARGEST: u64 = 64 << 20;

/// Largest total size in bytes; beyond it the oldest uploads are removed.
const MOST: usize = 256 << 20;

/// Largest fitted artefact in bytes, after decompression.
const LARGEST_ARTEFACT: usize = 16 << 20;

/// Most bytes of uploads that lie on the disk at once, while they are received and imported.
const MOST_ON_DISK: u64 = 4 * LARGEST;

#[derive(Clone)]
enum UploadedFile {
    Profile(Arc<Profile>),
    Onnx(Arc<[u8]>),
    Artefact(Arc<str>),
}

struct Upload {
    name: String,
    bytes: usize,
    kept: UploadedFile,
}

pub(crate) struct Uploads {
    folder: TempDir,
    on_disk: AtomicU64,
    receiving: Arc<Semaphore>,
    entries: Mutex<VecDeque<Upload>>,
}

/// The result of an upload.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub(crate) struct UploadAnswer {
    /// Its name in scenarios; none if the scenario contains everything.
    file: Option<String>,
    /// A scenario to start from.
    scenario: String,
    /// The contents of the file, as in `stepcast import --json`.
    overview: Option<Overview>,
    /// Causes of slowness, if it has traces of several ranks.
    slow: Option<SlowRanks>,
}

/// Causes of slowness among the ranks of traces.
#[derive(Serialize, JsonSchema)]
struct SlowRanks {
    /// Summary in a sentence.
    summary: String,
    /// The table of causes as HTML.
    html: String,
}

impl Uploads {
    /// Keeps uploads, and receives at most `receiving` at once.
    pub(crate) fn new(receiving: usize) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("stepcast-").tempdir()?;
        let receiving = Arc::new(Semaphore::new(receiving));
        Ok(Self { folder, on_disk: AtomicU64::new(0), receiving, entries: Mutex::new(VecDeque::new()) })
    }

    /// The place of a file that is being received; none are free while too many come at once.
    pub(crate) fn turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.receiving).try_acquire_owned().map_err(|_| Problem::busy())
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Upload>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path for a file that is being received.
    pub(crate) fn place(&self) -> Result<PathBuf, Problem> {
        Ok(self.folder.path().join(random()?))
    }

    /// Counts bytes that are about to be written; too many at once are refused.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), Problem> {
        let before = self.on_disk.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MOST_ON_DISK {
            self.release(bytes);
            return Err(Problem::busy());
        }
        Ok(())
    }

    /// Counts bytes that are no longer on the disk.
    pub(crate) fn release(&self, bytes: u64) {
        self.on_disk.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        // It may be gone already; nothing can be done about one that stays.
        let _ = std::fs::remove_dir_all(self.folder.path());
    }

    fn keep(&self, stem: &str, ending: &str, bytes: usize, kept: UploadedFile) -> Result<String, Problem> {
        let stem = if stem.is_empty() { "upload" } else { stem };
        let name = format!("{stem}-{}{ending}", random()?);
        let mut entries = self.entries();
        entries.push_back(Upload { name: name.clone(), bytes, kept });
        while entries.len() > 1 && entries.iter().map(|entry| entry.bytes).sum::<usize>() > MOST {
            entries.pop_front();
        }
        Ok(name)
    }

    fn find(&self, name: &str) -> Option<UploadedFile> {
        self.entries().iter().find(|entry| entry.name == name).map(|entry| entry.kept.clone())
    }

    /// Imports the file at `place` so that scenarios can name it.
    pub(crate) fn take(
        &self,
        place: PathBuf,
        name: &str,
        batch: Option<u32>,
        token: &CancellationToken,
    ) -> Result<UploadAnswer, Problem> {
        let name = shown(name);
        let stem = stem(&name);
        let head = stepcast_trace::head(&place).map_err(Problem::upload)?;
        if let Some(text) = artefact(&place, &head)? {
            let file = self.keep(&stem, ".toml", text.len(), UploadedFile::Artefact(text.into()))?;
            let scenario = "[model]\nzoo = \"resnet50\"\n".to_owned();
            return Ok(UploadAnswer { file: Some(file), scenario, overview: None, slow: None });
        }
        if head.windows(16).take(256).any(|window| window == b"stepcast-profile") {
            let bytes = stepcast_trace::unpacked(&place).map_err(Problem::upload)?;
            let mut profile = parse_profile(&bytes, "upload")?;
            profile.name = shown(&profile.name);
            let imported = Imported {
                content: Content::Profile(profile),
                summary: Default::default(),
                notes: Vec::new(),
            };
            return self.imported(imported, None, &stem);
        }
        let onnx = Format::detect(&place).map_err(Problem::upload)? == Format::Onnx;
        let lean = onnx.then(|| stepcast_trace::lean_onnx(&place)).transpose().map_err(Problem::upload)?;
        let watch = |_: Progress| work::check(token);
        let options = Options { batch, watch: &watch, ..Options::default() };
        let mut imported =
            stepcast_trace::import(std::slice::from_ref(&place), &options).map_err(Problem::upload)?;
        measure_link(&mut imported);
        if !name.is_empty() {
            match &mut imported.content {
                Content::Profile(profile) => profile.name = name,
                Content::Model(model) => model.name = name,
            }
        }
        let has_ranks = imported.summary.tables.iter().any(|table| table.key == "ranks");
        let slow = has_ranks.then(|| slowness(&place)).transpose()?;
        Ok(UploadAnswer { slow, ..self.imported(imported, lean, &stem)? })
    }

    fn imported(
        &self,
        imported: Imported,
        onnx: Option<Vec<u8>>,
        stem: &str,
    ) -> Result<UploadAnswer, Problem> {
        let (file, scenario) = match (&imported.content, onnx) {
            (Content::Profile(profile), _) => {
                let mut text = Vec::new();
                print_profile(profile, &mut text).map_err(Problem::fault)?;
                let kept = UploadedFile::Profile(Arc::new(profile.clone()));
                let file = self.keep(stem, ".json", text.len(), kept)?;
                // PyTorch and Horovod sum gradients; TensorFlow's recordings come from parameter servers.
                let sums = ["PyTorch", "Horovod"].iter().any(|who| profile.source.starts_with(who));
                let strategy = match sums {
                    true => "architecture = \"all-reduce\"\nsynchronisation = \"bsp\"",
                    false => "synchronisation = \"async\"",
                };
                let network = match profile.link_rate {
                    Some(_) => "",
                    None => "[cluster]\nnetwork = \"10gbe\"\n\n",
                };
                let scenario = format!(
                    "[model]\nprofile = \"{file}\"\n\n[[cluster.workers]]\ncount = 4\n\n{network}[strategy]\n{strategy}\n"
                );
                (Some(file), scenario)
            }
            (Content::Model(_), Some(bytes)) => {
                let file = self.keep(stem, ".onnx", bytes.len(), UploadedFile::Onnx(bytes.into()))?;
                let scenario = format!("[model]\nonnx = \"{file}\"\n");
                (Some(file), scenario)
            }
            (Content::Model(model), None) => {
                let mut text = Vec::new();
                stepcast_trace::print_model(model, &mut text).map_err(Problem::fault)?;
                (None, String::from_utf8_lossy(&text).into_owned())
            }
        };
        let overview = Some(Overview::new(&imported, file.clone()));
        Ok(UploadAnswer { file, scenario, overview, slow: None })
    }

    /// An upload as a file, for downloading it with a scenario that names it.
    pub(crate) fn text(&self, name: &str) -> Result<Vec<u8>, Problem> {
        let mut text = Vec::new();
        match self.find(name) {
            Some(UploadedFile::Profile(profile)) => {
                print_profile(&profile, &mut text).map_err(Problem::fault)?;
            }
            Some(UploadedFile::Onnx(bytes)) => text.extend_from_slice(&bytes),
            Some(UploadedFile::Artefact(artefact)) => text.extend_from_slice(artefact.as_bytes()),
            None if name == ONE_WORKER.0 => text.extend_from_slice(ONE_WORKER.1.as_bytes()),
            None => {
                let reason = "there is no such upload, or it was forgotten";
                return Err(Problem::new(StatusCode::NOT_FOUND, "not-found", reason, "upload it again"));
            }
        }
        Ok(text)
    }
}

fn slowness(place: &Path) -> Result<SlowRanks, Problem> {
    let slow = find(&read_ranks(place).map_err(Problem::upload)?.unwrap_or_default());
    let html = folding_section(&tables::slowness(&slow));
    Ok(SlowRanks { summary: tables::slow_verdict(&slow), html })
}

/// The text of a fitted artefact; none if the file is something else.
fn artefact(place: &Path, head: &[u8]) -> Result<Option<String>, Problem> {
    // A text may be cut within a character.
    let is_text = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    if !is_text || !head.windows(4).any(|window| window == b"kind") {
        return Ok(None);
    }
    let bytes = stepcast_trace::unpacked(place).map_err(Problem::upload)?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= LARGEST_ARTEFACT);
    Ok(text.filter(|text| Artefact::from_toml(text).is_ok()))
}

fn random() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Problem::fault)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The beginning of the name of an upload: letters, digits and `-_` of the client's name.
fn stem(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(40).collect()
}

/// Sanitises a client's name for a file; it is only displayed.
fn shown(name: &str) -> String {
    let stem = name.rsplit(['/', '\\']).next().unwrap_or_default().split('.').next().unwrap_or_default();
    stem.chars().filter(|c| !c.is_control()).take(60).collect()
}

fn absent(what: &str, name: &str) -> Fault {
    let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
    let reason =
        format!("there is no {what} \"{name}\" among the uploads: they are lost when the server ends");
    Fault::new(reason, "upload the file again; other files are not read")
}

impl Files for Uploads {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        match self.find(path) {
            Some(UploadedFile::Profile(profile)) => Ok(Profile::clone(&profile)),
            _ if path == ONE_WORKER.0 => parse_profile(ONE_WORKER.1.as_bytes(), ONE_WORKER.0)
                .map_err(|error| Fault::new(error.reason, error.remedy)),
            _ => Err(absent("profile", path)),
        }
    }

    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Fault> {
        let Some(UploadedFile::Onnx(bytes)) = self.find(path) else { return Err(absent("ONNX file", path)) };
        let options = stepcast_onnx::Options { sizes: sizes.clone(), ..Default::default() };
        let imported = stepcast_onnx::read(Cursor::new(bytes), "upload", &options)
            .map_err(|error| Fault::new(error.reason, error.remedy))?;
        Ok(ModelFile::from_model(&imported.model))
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        match self.find(path) {
            Some(UploadedFile::Artefact(text)) => Ok(text.to_string()),
            _ => Err(absent("artefact", path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_uploads_can_be_read() {
        let uploads = Uploads::new(1).unwrap();
        for path in
            ["/etc/passwd", "../../examples/one-worker.json", "examples/one-worker.json", "", "Cargo.toml"]
        {
            assert!(uploads.profile(path).is_err(), "{path}");
            assert!(uploads.onnx(path, &BTreeMap::new()).is_err(), "{path}");
            assert!(Files::text(&uploads, path).is_err(), "{path}");
            assert!(uploads.text(path).is_err(), "{path}");
        }
        assert!(uploads.profile("one-worker.json").is_ok());
    }

    #[test]
    fn the_oldest_go_first() {
        let uploads = Uploads::new(1).unwrap();
        let keep = || uploads.keep("x", ".toml", MOST / 2 + 1, UploadedFile::Artefact("x".into())).unwrap();
        let (first, second) = (keep(), keep());
        assert!(Files::text(&uploads, &first).is_err());
        assert_eq!(Files::text(&uploads, &second).unwrap(), "x");
    }

    #[test]
    fn names_of_clients_are_only_shown() {
        assert_eq!(shown("../../etc/passwd"), "passwd");
        assert_eq!(shown("C:\\traces\\resnet.pt.trace.json"), "resnet");
        assert_eq!(shown("a\nb.json"), "ab");
        assert_eq!(stem("my trace (2)"), "my-trace--2-");
    }
}
