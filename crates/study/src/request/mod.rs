//! A request: a scenario from a file, from a text or built in, or a profile alone, with all files that it names.

mod assumed;
mod folder;
pub mod launch;

use assumed::AnyPlan;
pub(crate) use assumed::catalog_prices;
pub use assumed::{Assumed, AssumedRent};
pub use folder::{Folder, Kept};

use crate::explore::sweep::{Axis, Variants, VaryError};
use crate::predict::MethodChoice;
use folder::MAX_FILE;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use stepcast_core::fault::{Fault, Note, Remedy};
use stepcast_core::files::Files;
use stepcast_core::method::Method;
use stepcast_core::prior::Priors;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{Document, Edit, ModelSection, Scenario, ScenarioFile, is_onnx};

/// Largest JSON file that may be a configuration.
const MAX_CONFIG: u64 = 1 << 20;

/// The name of the built-in scenario.
pub const QUICK_START_NAME: &str = "quickstart.toml (built in)";

/// Defaults for requests about fusion: neither a profile nor an empty scenario gives the exchange, so these use all-reduce.
pub const ALL_REDUCE: [(&str, &str); 2] =
    [("strategy.architecture", "all-reduce"), ("strategy.synchronisation", "bsp")];

/// The source of the files of a request.
pub trait Source: Files + Sync {
    /// The error of the last file that could not be read, with the position in that file.
    fn take_fault(&self) -> Option<Fault> {
        None
    }
}

/// A scenario, edits of it, and the files that it names; it is resolved once.
#[derive(Debug)]
pub struct Request<F = Folder> {
    document: Document,
    files: F,
    /// Whether the request has a profile in place of a scenario.
    only_profile: bool,
    /// Whether a transformer without a plan is given the usual one.
    gives_plan: bool,
    edits: Vec<Edit>,
    resolved: OnceLock<Resolved>,
}

/// Largest number of points of a grid that have separate default plans.
const PLANNED_POINTS: u64 = 128;

/// A resolved scenario, and its assumptions.
#[derive(Debug, Clone)]
struct Resolved {
    scenario: Arc<Scenario>,
    assumed: Assumed,
}

impl<F: Source> Request<F> {
    /// A request for a document, the files that it names, and edits.
    pub fn new(document: Document, files: F, edits: Vec<Edit>) -> Self {
        Self { document, files, only_profile: false, gives_plan: true, edits, resolved: OnceLock::new() }
    }

    /// The request for a search over plans, which needs no initial plan.
    #[must_use]
    pub fn for_planning(self) -> Self {
        Self { gives_plan: false, resolved: OnceLock::new(), ..self }
    }

    /// The scenario as written, with edits made and defaults left out.
    pub fn file(&self) -> Result<ScenarioFile, Fault> {
        self.document.file(&self.edits)
    }

    /// The resolved scenario, or its error.
    pub fn scenario(&self) -> Result<Arc<Scenario>, Fault> {
        Ok(Arc::clone(&self.resolved()?.scenario))
    }

    /// The assumptions of the scenario.
    pub fn assumed(&self) -> Result<&Assumed, Fault> {
        Ok(&self.resolved()?.assumed)
    }

    fn resolved(&self) -> Result<&Resolved, Fault> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let file = self.file().map_err(|fault| self.explained(fault))?;
        let located = |fault| self.explained(self.document.located(fault, &self.edits));
        let plain = AnyPlan::new(file, &self.files).map_err(located)?;
        let plan = if self.gives_plan { plain.usual_plan() } else { None };
        let assumed = plain.assumed(plan.as_ref());
        let scenario = match self.gives_plan {
            true => plain.with_plan(plan).and_then(AnyPlan::divided),
            false => plain.for_planning(),
        };
        let scenario = scenario.map_err(located)?;
        Ok(self.resolved.get_or_init(|| Resolved { scenario: Arc::new(scenario), assumed }))
    }

    /// Puts corrected priors in place of those of the scenario.
    pub fn correct(&mut self, priors: Arc<Priors>) -> Result<(), Fault> {
        let Resolved { scenario, assumed } = self.resolved()?.clone();
        let scenario = Arc::new(Scenario { priors, ..Arc::unwrap_or_clone(scenario) });
        self.resolved = OnceLock::from(Resolved { scenario, assumed });
        Ok(())
    }

    /// The method that predicts the scenario.
    pub fn method(&self, choice: MethodChoice) -> Result<&'static dyn Method, Fault> {
        choice.method(&*self.scenario()?).map_err(|refusal| self.refused(refusal))
    }

    /// The scenario at every combination of the axes' values. If the plan of a transformer is assumed, each point has its own
    /// plan if there are few points; otherwise all have the plan of the scenario.
    pub fn variants(&self, axes: Vec<Axis>) -> Result<Variants<'_>, VaryError> {
        let mut edits = self.edits.clone();
        let varies_plan = axes.iter().any(|axis| assumed::divides(&axis.key));
        let explained = |error| match error {
            VaryError::Document(fault) => VaryError::Document(self.explained(fault)),
            error @ VaryError::Axis { .. } => error,
        };
        let points: u64 = axes.iter().map(|axis| axis.values.len()).fold(1, u64::saturating_mul);
        if !varies_plan && let Ok(Resolved { scenario, assumed }) = self.resolved() {
            if assumed.plan && points <= PLANNED_POINTS {
                let resolver = assumed::resolve_with_usual_plan;
                let one_by_one = Variants::one_by_one(&self.document, &self.files, &edits, axes, resolver);
                return one_by_one.map_err(explained);
            }
            let batch = "strategy.batch";
            let each = axes.iter().any(|axis| axis.key == batch)
                || self.file().is_ok_and(|file| file.strategy.batch.is_some());
            let plan = scenario.strategy.plan.as_ref().filter(|_| assumed.plan);
            edits.extend(plan.and_then(|plan| assumed::edit(plan, !each)));
        }
        Variants::new(&self.document, &self.files, &edits, axes).map_err(explained)
    }

    /// A method's refusal, with the position of the refused key.
    pub fn refused(&self, refusal: Fault) -> Fault {
        self.document.located(refusal, &self.edits)
    }

    /// For a profile alone, replaces the error by the profile's, which has the position in that file.
    fn explained(&self, fault: Fault) -> Fault {
        self.files.take_fault().filter(|_| !self.document.is_written()).unwrap_or(fault)
    }
}

impl Request {
    /// The built-in scenario.
    pub fn quick_start(edits: Vec<Edit>) -> Self {
        let folder = Folder::new(Path::new("").to_owned());
        Self::new(Document::new(QUICK_START_NAME, stepcast_examples::QUICK_START), folder, edits)
    }

    /// The scenario, profile, model or launch file at `path`, told apart by their content. Files that a scenario names are relative to its folder.
    pub fn open(path: &str, edits: Vec<Edit>) -> Result<Self, Fault> {
        if is_profile(path) {
            if let Some(text) = small_json(path) {
                if let Some(request) = Self::from_launch(path, &text, &edits)? {
                    return Ok(request);
                }
                if launch::is_config(&text) {
                    return Ok(Self::from_model(path, edits));
                }
            }
            let files = Folder::new(Path::new("").to_owned());
            return Self::from_profile_file(path, files, edits);
        }
        if is_onnx(path) {
            return Ok(Self::from_model(path, edits));
        }
        let cannot = |error: io::Error| {
            let remedy = [Remedy::advice("check the path"), Remedy::RunQuickStart];
            Fault::in_file(path, format!("cannot read the scenario: {error}"), remedy)
        };
        if fs::metadata(path).map_err(cannot)?.is_dir() {
            return Err(Fault::in_file(path, "the scenario is a directory", "name a file in it"));
        }
        let text = text(path, File::open(path).map_err(cannot)?)?;
        if let Some(request) = Self::from_launch(path, &text, &edits)? {
            return Ok(request);
        }
        if [".sh", ".yaml", ".yml", ".py"].iter().any(|end| path.ends_with(end)) {
            let reason = "no launch file of Megatron-LM, NeMo, torchtitan, DeepSpeed or Accelerate";
            return Err(Fault::in_file(path, reason, "name one of these, or a scenario (.toml)"));
        }
        let folder = Path::new(path).parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self::new(Document::new(path, text), Folder::new(folder), edits))
    }

    /// The scenario read from `reader`, called `name` in errors; files are relative to the working directory.
    pub fn from_reader(name: &str, reader: impl Read, edits: Vec<Edit>) -> Result<Self, Fault> {
        let text = text(name, reader)?;
        if let Some(request) = Self::from_launch(name, &text, &edits)? {
            return Ok(request);
        }
        let document = Document::new(name, text);
        Ok(Self::new(document, Folder::new(Path::new("").to_owned()), edits))
    }

    /// A profile alone, as if it were at `path`.
    pub fn from_profile(path: &str, profile: Profile, edits: Vec<Edit>) -> Result<Self, Fault> {
        Self::from_profile_file(path, Folder::default().with_profile(path, profile), edits)
    }

    /// The profile at `path` among `files` alone.
    fn from_profile_file(path: &str, files: Folder, edits: Vec<Edit>) -> Result<Self, Fault> {
        files.profile(path).map_err(|fault| files.take_fault().unwrap_or(fault))?;
        let model = ModelSection { profile: Some(path.to_owned()), ..ModelSection::default() };
        let document = Document::from_file(path, ScenarioFile { model, ..ScenarioFile::default() });
        Ok(Self { only_profile: true, ..Self::new(document, files, edits) })
    }

    /// The scenario with this number of workers: groups keep their proportions.
    pub fn resized(&self, number: u32) -> Result<Self, Fault> {
        let cluster = self.file()?.cluster;
        if cluster.beside.is_some() {
            return self.with_machines_beside(number);
        }
        if cluster.workers.map_or(0, |groups| groups.len()) < 2 {
            return Ok(self.changed([Edit::set("cluster.workers.count", number)]));
        }
        let shares = self.scenario()?.cluster.shares(number);
        let edit = |(group, share): (usize, u32)| match share {
            0 => Edit::from_form(&format!("cluster.workers.{group}"), None),
            share => Edit::set(format!("cluster.workers.{group}.count"), share),
        };
        // From the last, so that places stay valid while groups are removed.
        Ok(self.changed(shares.into_iter().enumerate().rev().map(edit)))
    }

    /// The scenario with this number of workers on whole machines of both kinds.
    fn with_machines_beside(&self, number: u32) -> Result<Self, Fault> {
        let cluster = &self.scenario()?.cluster;
        let each = cluster.workers_per_node();
        match cluster.shares(number)[..] {
            [own, beside] if own > 0 && beside > 0 && own % each == 0 && beside % each == 0 => {
                let machines = [("cluster.machines", own), ("cluster.beside.machines", beside)];
                Ok(self.changed(machines.map(|(key, workers)| Edit::set(key, workers / each))))
            }
            _ => {
                let reason = format!("{number} workers do not fill whole machines of both kinds");
                let remedy = format!("give a multiple of {}", 2 * each);
                Err(Fault::in_key("cluster.beside", reason, remedy))
            }
        }
    }

    /// The request with further edits; files are read again.
    pub fn changed(&self, edits: impl IntoIterator<Item = Edit>) -> Self {
        let edits = self.edits.iter().cloned().chain(edits).collect();
        Self {
            only_profile: self.only_profile,
            gives_plan: self.gives_plan,
            ..Self::new(self.document.clone(), self.files_again(), edits)
        }
    }

    /// A request for `edits` alone, with the files of this one.
    pub(crate) fn alone(&self, edits: Vec<Edit>) -> Self {
        Self::new(Document::new("a kept run", ""), self.files_again(), edits)
    }

    fn files_again(&self) -> Folder {
        match self.files.path() {
            Some(path) => Folder::new(path.to_owned()),
            None => Folder::from_kept(self.files.kept()),
        }
    }

    /// The request for a study of fusion: a profile alone is trained by all-reduce unless edits say otherwise.
    pub fn about_fusion(&self) -> Self {
        let mut request = self.changed([]);
        if self.only_profile {
            request.edits.splice(0..0, ALL_REDUCE.map(|(key, value)| Edit::set(key, value)));
        }
        request
    }

    /// Notes of importers about files that were read since the last call.
    pub fn take_notes(&self) -> Vec<Note> {
        self.files.take_notes()
    }
}

/// Whether a file is a launch file of Megatron-LM, torchtitan, DeepSpeed or Accelerate. Pipes, which can be read only
/// once, are not looked into.
pub fn is_launch(path: &str) -> bool {
    if !Path::new(path).is_file() {
        return false;
    }
    let text = match is_profile(path) {
        true => small_json(path),
        false => File::open(path).ok().and_then(|file| text(path, file).ok()),
    };
    text.is_some_and(|text| launch::recognises(&text))
}

/// The text of a JSON file that is no larger than a configuration.
fn small_json(path: &str) -> Option<String> {
    let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let small = path.ends_with(".json") && file.len() <= MAX_CONFIG;
    small.then(|| fs::read_to_string(path).ok()).flatten()
}

/// Whether a path names a profile.
pub fn is_profile(path: &str) -> bool {
    path.ends_with(".json") || path.ends_with(".json.gz")
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
