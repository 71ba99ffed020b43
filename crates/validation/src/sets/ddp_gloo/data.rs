//! The file: micro-benchmarks, one-worker profiles and measured jobs, one JSON object a line.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::Measured;
use stepcast_core::quantity::{BitsPerSec, Bytes, Seconds};
use stepcast_stats::mean;

/// A file beyond this is a mistake.
const MAX_FILE: u64 = 256 << 20;

/// The machines of a job: ranks, rate of every host's link, cores of every rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) ranks: u32,
    /// As the file has it: "1gbit".
    pub(super) rate: String,
    pub(super) cores: u32,
}

/// One worker alone.
#[derive(Debug, Clone)]
pub(super) struct ProfileRow {
    pub(super) model: String,
    pub(super) cores: u32,
    pub(super) forward: Vec<f64>,
    pub(super) backward: Vec<f64>,
    pub(super) optimiser: Vec<f64>,
    /// When each gradient was ready, from the start of the backward pass, and its size.
    pub(super) gradients: Vec<(Seconds, Bytes)>,
}

/// One measured job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) model: String,
    pub(super) batch: u32,
    pub(super) place: Place,
    /// `bucket_cap_mb`.
    pub(super) bucket: f64,
    pub(super) iterations: Vec<f64>,
}

/// The contents of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    pub(super) profiles: Vec<ProfileRow>,
    pub(super) jobs: Vec<Job>,
    /// Mean time of an all-reduce by size, never falling.
    pub(super) allreduce: BTreeMap<Place, Vec<(Bytes, Seconds)>>,
}

#[derive(Deserialize)]
struct Gradient {
    bytes: f64,
    ready: f64,
}

#[derive(Deserialize)]
struct Line {
    kind: String,
    #[serde(rename = "N")]
    ranks: u32,
    rate: String,
    cores_per_rank: u32,
    bytes: Option<f64>,
    times: Option<Vec<f64>>,
    model: Option<String>,
    batch: Option<u32>,
    bucket_mb: Option<f64>,
    iter: Option<Vec<f64>>,
    fwd: Option<Vec<f64>>,
    bwd: Option<Vec<f64>>,
    opt: Option<Vec<f64>>,
    grads: Option<Vec<Gradient>>,
}

/// "4gbit" as tc writes it.
pub(super) fn rate(text: &str) -> Option<BitsPerSec> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return None,
    };
    digits.parse().ok().filter(|rate: &f64| *rate > 0.0).map(|rate| BitsPerSec::new(rate * factor))
}

impl Data {
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let failed = |reason: String| {
            Fault::in_file(
                path.display().to_string(),
                reason,
                "name a file of measured jobs; docs/validation.md says what is in it",
            )
        };
        let length = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
        if length > MAX_FILE {
            return Err(failed(format!("{length} bytes are too many for measured jobs")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let mut data = Self::default();
        let mut measured: BTreeMap<Place, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |reason: String| {
                Fault::in_file(
                    format!("{}:{}", path.display(), number + 1),
                    reason,
                    "every line is a JSON object of kind allreduce, profile or ddp (docs/validation.md)",
                )
            };
            let row: Line = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if row.ranks == 0 || row.cores_per_rank == 0 {
                return Err(wrong("a job needs ranks and cores".to_owned()));
            }
            if rate(&row.rate).is_none() {
                return Err(wrong(format!("\"{}\" is no rate such as \"1gbit\"", row.rate)));
            }
            let place = Place { ranks: row.ranks, rate: row.rate, cores: row.cores_per_rank };
            let missing = |key: &str| wrong(format!("`{key}` is missing"));
            let times = |key: &str, values: Option<Vec<f64>>| {
                let values = values.ok_or_else(|| missing(key))?;
                let sound = !values.is_empty() && values.iter().all(|time| *time > 0.0 && time.is_finite());
                if sound { Ok(values) } else { Err(wrong(format!("`{key}` needs positive times"))) }
            };
            match row.kind.as_str() {
                "allreduce" => {
                    let size = row.bytes.filter(|bytes| *bytes > 0.0).ok_or_else(|| missing("bytes"))?;
                    measured
                        .entry(place)
                        .or_default()
                        .entry(size as u64)
                        .or_default()
                        .extend(times("times", row.times)?);
                }
                "profile" => data.profiles.push(ProfileRow {
                    model: row.model.ok_or_else(|| missing("model"))?,
                    cores: place.cores,
                    forward: times("fwd", row.fwd)?,
                    backward: times("bwd", row.bwd)?,
                    optimiser: times("opt", row.opt)?,
                    gradients: gradients(row.grads.ok_or_else(|| missing("grads"))?).map_err(wrong)?,
                }),
                "ddp" => data.jobs.push(Job {
                    model: row.model.ok_or_else(|| missing("model"))?,
                    batch: row.batch.unwrap_or(0),
                    place,
                    bucket: row.bucket_mb.filter(|size| *size > 0.0).ok_or_else(|| missing("bucket_mb"))?,
                    iterations: times("iter", row.iter)?,
                }),
                other => return Err(wrong(format!("\"{other}\" is no kind of row"))),
            }
        }
        if data.jobs.is_empty() || data.profiles.is_empty() {
            return Err(failed("there is no measured job, or no profile to predict it from".to_owned()));
        }
        for (place, sizes) in measured {
            let mut longest = 0.0_f64;
            let points = sizes.iter().map(|(size, times)| {
                longest = longest.max(mean(times));
                (Bytes::new(*size as f64), Seconds::new(longest))
            });
            let points: Vec<(Bytes, Seconds)> = points.collect();
            Measured::new(&points).map_err(|error| {
                failed(format!("all-reduces of {} ranks at {}: {error}", place.ranks, place.rate))
            })?;
            data.allreduce.insert(place, points);
        }
        Ok(data)
    }
}

/// In the order in which they were ready; a missing, negative or falling time is an error.
fn gradients(rows: Vec<Gradient>) -> Result<Vec<(Seconds, Bytes)>, String> {
    let mut before = 0.0;
    for (index, gradient) in rows.iter().enumerate() {
        if !(gradient.bytes > 0.0 && gradient.bytes.is_finite() && gradient.ready.is_finite()) {
            return Err(format!("gradient {index} has no size or no time"));
        }
        if gradient.ready < before {
            return Err(format!("gradient {index} is ready before the one that precedes it"));
        }
        before = gradient.ready;
    }
    if before <= 0.0 {
        return Err("no gradient has a time".to_owned());
    }
    Ok(rows.iter().map(|row| (Seconds::new(row.ready), Bytes::new(row.bytes))).collect())
}
