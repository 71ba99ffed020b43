//! Reading configurations, profiles and measured runs.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::profile::Profile;
use stepcast_core::quantity::{BitsPerSec, Seconds};
use stepcast_trace::{read_profile, read_run_metadata, unpacked};

/// Steps of the slowest worker after which a run was stopped, where the configuration does not say.
const USUAL_STEPS: u64 = 40;

/// Seconds after which a run was stopped at the latest, where the configuration does not say.
const USUAL_SECONDS: f64 = 75.0;

/// A profile that was imported already: read in place of the recordings.
const PROFILE: &str = "profile.json.gz";

#[derive(Debug, Clone, Deserialize)]
struct ConfigFile {
    name: String,
    #[serde(default)]
    model: String,
    batch: u32,
    /// Mbit/s.
    rate: f64,
    min_steps: Option<u64>,
    tmax: Option<f64>,
}

#[derive(Debug, Clone)]
pub(super) struct Configuration {
    pub(super) name: String,
    pub(super) batch: u32,
    /// Nominal rate of every link.
    pub(super) rate: BitsPerSec,
    /// Steps of the slowest worker after which runs were stopped.
    pub(super) steps: u64,
    /// Seconds after which runs were stopped at the latest.
    pub(super) seconds: f64,
    pub(super) queue: Seconds,
    /// Whether computing is replaced by sleeping, which needs no processor.
    pub(super) sleeps: bool,
    folder: PathBuf,
}

/// A configuration with its one-worker profile and its measured runs.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) configuration: Configuration,
    pub(super) profile: Profile,
    pub(super) measured: Vec<Measurement>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Measurement {
    #[serde(rename = "W")]
    pub(super) workers: u32,
    /// Throughput over the second half of the run.
    pub(super) examples_per_s: f64,
}

pub(super) fn wrong(path: &Path, reason: impl Into<String>, remedy: &str) -> Fault {
    Fault::in_file(path.display().to_string(), reason, remedy)
}

pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, Fault> {
    serde_json::from_slice(&unpacked(path)?).map_err(|error| {
        wrong(path, error.to_string(), "see docs/validation.md for the files of a configuration")
    })
}

pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let listed = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<PathBuf>, _>>()
    });
    let mut paths = listed.map_err(|error| wrong(folder, error.to_string(), "check the path"))?;
    paths.sort();
    Ok(paths)
}

pub(super) fn configurations(folder: &Path) -> Result<Vec<Configuration>, Fault> {
    let mut candidates = entries(folder)?;
    candidates.push(folder.to_owned());
    let mut found = Vec::new();
    for folder in candidates.into_iter().filter(|path| path.join("config.json").is_file()) {
        let file: ConfigFile = json(&folder.join("config.json"))?;
        let sound = file.rate > 0.0 && file.rate.is_finite() && file.batch > 0;
        if !sound {
            return Err(wrong(
                &folder.join("config.json"),
                "rate and batch must be positive",
                "correct them",
            ));
        }
        found.push(Configuration {
            queue: queue(&file.name),
            name: file.name,
            batch: file.batch,
            rate: BitsPerSec::new(file.rate * 1e6),
            steps: file.min_steps.unwrap_or(USUAL_STEPS),
            seconds: file.tmax.unwrap_or(USUAL_SECONDS),
            sleeps: file.model.starts_with("sleep"),
            folder,
        });
    }
    if found.is_empty() {
        return Err(wrong(
            folder,
            "there is no configuration in it",
            "give the folder that holds <config>/config.json",
        ));
    }
    Ok(found)
}

/// Names of configurations with another queue than the usual 50 ms end in `_lat<ms>`.
fn queue(name: &str) -> Seconds {
    let milliseconds = name.rsplit_once("_lat").and_then(|(_, number)| number.parse::<f64>().ok());
    Seconds::new(milliseconds.filter(|number| *number > 0.0).unwrap_or(50.0) / 1000.0)
}

impl Configuration {
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The one-worker profile, and notes on repairs of the recording.
    pub(super) fn profile(&self) -> Result<(Profile, Vec<String>), Fault> {
        let ready = self.file(PROFILE);
        if ready.is_file() {
            return Ok((Profile { name: self.name.clone(), ..read_profile(&ready)? }, Vec::new()));
        }
        let graphs = self.file("partition_graphs_runmetadata.pb.gz");
        let imported = read_run_metadata(&self.file("runmetadata.tar.xz"), Some(&graphs), self.batch)?;
        Ok((Profile { name: self.name.clone(), ..imported.content }, imported.notes))
    }

    /// The measured runs, by number of workers; the first measurement of each.
    pub(super) fn measurements(&self) -> Result<Vec<Measurement>, Fault> {
        let is_run = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with("run_W") && name.ends_with(".json.gz")
        };
        let runs = entries(&self.folder)?.into_iter().filter(is_run);
        let mut measured: Vec<Measurement> = runs.map(|path| json(&path)).collect::<Result<_, _>>()?;
        measured.sort_by_key(|measurement| measurement.workers);
        Ok(measured)
    }
}
