//! The file: micro-benchmarks, one-worker profiles and measured jobs, one JSON object a line.

use crate::records::lines;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::Measured;
use stepcast_core::quantity::{BitsPerSec, Bytes, Seconds};
use stepcast_stats::mean;

/// The machines of a job: ranks, rate of every host's link, cores of every rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Place {
    #[serde(rename = "N")]
    pub(super) ranks: u32,
    /// As the file has it: "1gbit".
    pub(super) rate: String,
    #[serde(rename = "cores_per_rank")]
    pub(super) cores: u32,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct WorkerProfile {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) model: String,
    #[serde(rename = "fwd")]
    pub(super) forward: Vec<f64>,
    #[serde(rename = "bwd")]
    pub(super) backward: Vec<f64>,
    #[serde(rename = "opt")]
    pub(super) optimiser: Vec<f64>,
    #[serde(rename = "grads")]
    pub(super) gradients: Vec<Gradient>,
}

/// A gradient: its size, and when it was ready, in seconds from the start of the backward pass.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Gradient {
    pub(super) bytes: f64,
    pub(super) ready: f64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Job {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) model: String,
    #[serde(default)]
    pub(super) batch: u32,
    /// `bucket_cap_mb`.
    #[serde(rename = "bucket_mb")]
    pub(super) bucket: f64,
    #[serde(rename = "iter")]
    pub(super) iterations: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct TimedAllReduce {
    #[serde(flatten)]
    place: Place,
    bytes: f64,
    times: Vec<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    AllReduce(TimedAllReduce),
    Profile(WorkerProfile),
    Ddp(Job),
}

impl Line {
    fn check(&self) -> Result<(), String> {
        let (place, times, size) = match self {
            Self::AllReduce(row) => (&row.place, vec![&row.times], row.bytes),
            Self::Profile(row) => (&row.place, vec![&row.forward, &row.backward, &row.optimiser], 1.0),
            Self::Ddp(row) => (&row.place, vec![&row.iterations], row.bucket),
        };
        let is_positive = |value: &f64| *value > 0.0 && value.is_finite();
        if place.ranks == 0 || place.cores == 0 {
            return Err("a job needs ranks and cores".to_owned());
        }
        if rate(&place.rate).is_none() {
            return Err(format!("\"{}\" is no rate such as \"1gbit\"", place.rate));
        }
        if !is_positive(&size) || times.iter().any(|times| times.is_empty() || !times.iter().all(is_positive))
        {
            return Err("times and sizes must be positive".to_owned());
        }
        let Self::Profile(WorkerProfile { gradients, .. }) = self else { return Ok(()) };
        let mut before = 0.0;
        for (index, gradient) in gradients.iter().enumerate() {
            if !is_positive(&gradient.bytes) || !gradient.ready.is_finite() {
                return Err(format!("gradient {index} has no size or no time"));
            }
            if gradient.ready < before {
                return Err(format!("gradient {index} is ready before the one that precedes it"));
            }
            before = gradient.ready;
        }
        if before > 0.0 { Ok(()) } else { Err("no gradient has a time".to_owned()) }
    }
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

#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) profiles: Vec<WorkerProfile>,
    pub(super) jobs: Vec<Job>,
    /// Mean time of an all-reduce by size, never falling.
    pub(super) allreduce: BTreeMap<Place, Vec<(Bytes, Seconds)>>,
}

impl Data {
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let failed = |reason: String| {
            let remedy = "name a file of measured jobs; docs/validation.md says what is in it";
            Fault::in_file(path.display().to_string(), reason, remedy)
        };
        let mut data = Self::default();
        let mut measured: BTreeMap<Place, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for line in lines(path, Line::check)? {
            match line {
                Line::AllReduce(row) => {
                    measured
                        .entry(row.place)
                        .or_default()
                        .entry(row.bytes as u64)
                        .or_default()
                        .extend(row.times);
                }
                Line::Profile(row) => data.profiles.push(row),
                Line::Ddp(row) => data.jobs.push(row),
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
