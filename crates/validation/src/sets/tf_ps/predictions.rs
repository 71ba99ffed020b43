//! Every measured run with its predictions, and their errors by method.

use super::data::{self, Measurement, Recorded};
use super::held_out::{self, Choice};
use super::testbed::Testbed;
use super::{NAME, cases, predict};
use crate::set::told;
use crate::{ErrorBounds, Errors, Progress, Reached, ValidationError, bounds};
use rayon::prelude::*;
use serde::Serialize;
use serde_with::serde_as;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::quantity::{BitsPerSec, InBaseUnits};

/// Runs with fewer workers than this are not judged: profiles were taken of them.
pub(super) const JUDGED_FROM: u32 = 2;

/// One measured run and its predictions, in samples per second.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RunPrediction {
    /// Name of the configuration.
    pub(super) configuration: String,
    /// Number of workers.
    pub(super) workers: u32,
    /// Nominal rate of every link.
    #[serde(rename = "rate_bits_per_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) rate: BitsPerSec,
    /// Number of parameters.
    pub(super) parameters: u64,
    /// Measured throughput.
    pub(super) measured: f64,
    /// Predicted by the engine: mean of the simulated runs.
    pub(super) predicted: f64,
    /// Predicted by the engine with parameters that were chosen on other configurations only.
    pub(super) held_out: Option<f64>,
    /// 90 % interval of the simulated runs.
    pub(super) interval: [f64; 2],
    /// 90 % interval of measured runs: variation from run to run and model error.
    pub(super) likely: [f64; 2],
    /// Variation from run to run: standard deviation of the logarithm over simulated runs.
    pub(super) run_spread: f64,
    /// Predicted by Cynthia.
    pub(super) cynthia: f64,
    /// Predicted by the closed queueing network.
    pub(super) lin: f64,
}

/// All predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RunPredictions {
    /// The testbed's parameters.
    pub(super) testbed: Testbed,
    /// All runs.
    pub(super) rows: Vec<RunPrediction>,
    /// Errors by method.
    pub(super) errors: Vec<Errors>,
    /// Share of the runs with two workers and more that lie in the 90 % interval of the simulated runs.
    pub(super) coverage: f64,
    /// Share of them that lie in the 90 % interval with model error.
    pub(super) likely_coverage: f64,
    /// The parameters chosen for each configuration on the others; empty unless held-out predictions are wanted.
    pub(super) choices: Vec<Choice>,
    /// Bounds of the errors of the engine.
    pub(super) bounds: ErrorBounds,
    /// Repairs of the recordings.
    pub(super) notes: Vec<String>,
    /// Configurations whose profile cannot be read, and why; a validation with any of them does not hold.
    pub(super) failed: Vec<String>,
}

/// The engine.
const SIMULATE: &str = "simulate";
/// The engine with parameters that were chosen on other configurations only.
const HELD_OUT: &str = "simulate, held out";

impl RunPredictions {
    /// Whether the engine keeps its bounds and has smaller errors than both baselines, in held-out predictions too.
    pub(super) fn holds(&self) -> bool {
        let (engine, others): (Vec<&Errors>, Vec<&Errors>) =
            self.errors.iter().partition(|errors| [SIMULATE, HELD_OUT].contains(&errors.method));
        let keeps = |engine: &&Errors| {
            self.bounds.keeps(engine) && others.iter().all(|other| engine.mean < other.mean)
        };
        self.failed.is_empty() && !engine.is_empty() && engine.iter().all(keeps)
    }
}

/// Predicts every measured run of the configurations below `folder`; with `held_out`, every configuration is predicted
/// once more with parameters that were chosen on the others only, which takes five times as long.
pub(super) fn predict(
    folder: &Path,
    held_out: bool,
    progress: &Progress<'_>,
) -> Result<RunPredictions, ValidationError> {
    let bounds = bounds::of(NAME)?;
    let configurations = data::configurations(folder)?;
    let testbed = Testbed::measure(folder, &configurations)?;
    let mut notes = Vec::new();
    let mut failed = Vec::new();
    let mut recorded = Vec::new();
    for configuration in configurations {
        let measured = configuration.measurements()?;
        match configuration.profile() {
            Ok((profile, repaired)) => {
                notes.extend(repaired.into_iter().map(|note| format!("{}: {note}", configuration.name)));
                recorded.push(Recorded { configuration, profile, measured });
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    let points: Vec<(&Recorded, &Measurement)> = recorded
        .iter()
        .flat_map(|recorded| recorded.measured.iter().map(move |measurement| (recorded, measurement)))
        .collect();
    let judged = points.iter().filter(|(_, measurement)| measurement.workers >= JUDGED_FROM).count();
    let all = points.len() + if held_out { held_out::rounds() * judged } else { 0 };
    let count = AtomicUsize::new(0);
    told(progress, Reached::Points { done: 0, of: all })?;
    let done =
        || told(progress, Reached::Points { done: count.fetch_add(1, Ordering::Relaxed) + 1, of: all });
    let mut rows = points
        .par_iter()
        .map(|(recorded, measurement)| {
            let row =
                predict::prediction(recorded, &testbed, measurement.workers, measurement.examples_per_s);
            done()?;
            Ok(row?)
        })
        .collect::<Result<Vec<RunPrediction>, ValidationError>>()?;
    cases::widen(&mut rows);
    let choices = match held_out {
        true => held_out::predict(&mut rows, &recorded, &testbed, &done)?,
        false => Vec::new(),
    };
    let judged: Vec<&RunPrediction> = rows.iter().filter(|row| row.workers >= JUDGED_FROM).collect();
    let mut by_method = vec![errors(SIMULATE, &judged, |row| row.predicted)];
    if held_out {
        by_method.push(errors(HELD_OUT, &judged, |row| row.held_out.unwrap_or(f64::NAN)));
    }
    by_method.push(errors("cynthia2019", &judged, |row| row.cynthia));
    by_method.push(errors("lin2018", &judged, |row| row.lin));
    Ok(RunPredictions {
        coverage: cases::coverage(&rows, |row| row.interval),
        likely_coverage: cases::coverage(&rows, |row| row.likely),
        errors: by_method,
        bounds,
        testbed,
        rows,
        choices,
        notes,
        failed,
    })
}

fn errors(
    method: &'static str,
    rows: &[&RunPrediction],
    predicted: impl Fn(&RunPrediction) -> f64,
) -> Errors {
    Errors::of(method, rows.iter().map(|row| predicted(row) / row.measured))
}
