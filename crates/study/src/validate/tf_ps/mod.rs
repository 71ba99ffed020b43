//! Validation against real asynchronous TensorFlow training with one parameter server: from the one-worker profile of
//! each configuration to the throughput of all measured numbers of workers.
//!
//! A folder holds one folder per configuration (`config.json`, `runmetadata.tar.xz`,
//! `partition_graphs_runmetadata.pb.gz`, `run_W<k>.json.gz`, `overhead_W1.csv.gz`) and `bandwidth/` with iperf results.
//! Goodput of the links and cost of parsing are taken once from all of it, and nothing is fitted to a single
//! configuration. But six figures of the TCP model, and parts of its structure, were chosen on the runs with several
//! workers of four configurations: for those this is a fit, not a test (docs/validation.md).

mod data;
mod predict;
mod testbed;

pub use data::{Configuration, Measurement};
pub use testbed::Testbed;

use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_trace::TraceError;

/// One measured point and its predictions, in samples per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the configuration.
    pub configuration: String,
    /// Number of workers.
    pub workers: u32,
    /// Measured throughput.
    pub measured: f64,
    /// Predicted by the engine: mean of the simulated runs.
    pub predicted: f64,
    /// 90 % of the simulated runs lie between these.
    pub interval: [f64; 2],
    /// Predicted by Cynthia.
    pub cynthia: f64,
    /// Predicted by the closed queueing network.
    pub lin: f64,
}

/// Errors of one way to predict over the points with two workers and more, in percent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Errors {
    /// Which way.
    pub method: &'static str,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// Largest absolute error.
    pub worst: f64,
    /// Mean of the signed errors.
    pub bias: f64,
}

/// The whole validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The testbed's figures.
    pub testbed: Testbed,
    /// All points.
    pub rows: Vec<Row>,
    /// Errors by method.
    pub errors: Vec<Errors>,
    /// Share of the points with two workers and more that lie in their interval.
    pub coverage: f64,
    /// What had to be repaired in the recordings.
    pub notes: Vec<String>,
    /// Configurations whose profile cannot be read, and why; a validation with any of them does not hold.
    pub failed: Vec<String>,
}

/// Bounds that must hold: mean and worst error of the engine in percent.
pub const MEAN_BOUND: f64 = 7.0;
/// See [`MEAN_BOUND`].
pub const WORST_BOUND: f64 = 16.0;

impl Report {
    /// Whether the engine keeps its bounds and beats both baselines.
    pub fn holds(&self) -> bool {
        match self.errors.as_slice() {
            [engine, others @ ..] => {
                self.failed.is_empty()
                    && engine.mean <= MEAN_BOUND
                    && engine.worst <= WORST_BOUND
                    && others.iter().all(|other| engine.mean < other.mean)
            }
            [] => false,
        }
    }
}

/// Predicts everything that was measured in the configurations below `folder`; `progress` is told how many points of how
/// many are done.
pub fn run(folder: &Path, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Report, TraceError> {
    let configurations = data::configurations(folder)?;
    let testbed = Testbed::measure(folder, &configurations)?;
    let mut notes = Vec::new();
    let mut failed = Vec::new();
    let mut rows = Vec::new();
    let mut points = 0;
    for configuration in &configurations {
        points += configuration.measurements()?.len();
    }
    let done = AtomicUsize::new(0);
    progress(0, points);
    for configuration in &configurations {
        let (profile, repaired) = match configuration.profile() {
            Ok(imported) => imported,
            Err(error) => {
                failed.push(error.to_string());
                continue;
            }
        };
        notes.extend(repaired.into_iter().map(|note| format!("{}: {note}", configuration.name)));
        let measured = configuration.measurements()?;
        let predicted: Result<Vec<Row>, TraceError> = measured
            .par_iter()
            .map(|measurement| {
                let row = predict::row(configuration, &testbed, &profile, measurement);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, points);
                row
            })
            .collect();
        rows.extend(predicted?);
    }
    let judged: Vec<&Row> = rows.iter().filter(|row| row.workers >= 2).collect();
    let inside =
        judged.iter().filter(|row| (row.interval[0]..=row.interval[1]).contains(&row.measured)).count();
    let coverage = inside as f64 / judged.len().max(1) as f64;
    let errors = vec![
        errors("simulate", &judged, |row| row.predicted),
        errors("cynthia2019", &judged, |row| row.cynthia),
        errors("lin2018", &judged, |row| row.lin),
    ];
    Ok(Report { testbed, rows, errors, coverage, notes, failed })
}

fn errors(method: &'static str, rows: &[&Row], predicted: impl Fn(&Row) -> f64) -> Errors {
    let errors: Vec<f64> = rows.iter().map(|row| 100.0 * (predicted(row) / row.measured - 1.0)).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / errors.len().max(1) as f64;
    Errors {
        method,
        mean: mean(&mut errors.iter().map(|error| error.abs())),
        worst: errors.iter().map(|error| error.abs()).fold(0.0, f64::max),
        bias: mean(&mut errors.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_runs_are_predicted_within_the_bounds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/measured/tf_ps");
        if !folder.is_dir() {
            eprintln!("skipped: the measured TensorFlow runs are not at {}", folder.display());
            return;
        }
        let report = run(&folder, &|_, _| ()).unwrap();
        assert_eq!(report.rows.len(), 24);
        assert!(report.holds(), "{:#?}", report.errors);
    }

    #[test]
    fn a_folder_without_configurations_is_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = run(&folder, &|_, _| ()).unwrap_err();
        assert!(error.reason.contains("no configuration"), "{error}");
    }
}
