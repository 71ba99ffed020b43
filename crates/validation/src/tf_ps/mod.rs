//! Validation against real asynchronous TensorFlow training with one parameter server: from the one-worker profile of
//! each configuration to the throughput of all measured numbers of workers.
//!
//! A folder holds one folder per configuration (`config.json`, `runmetadata.tar.xz`,
//! `partition_graphs_runmetadata.pb.gz`, `run_W<k>.json.gz`, `overhead_W1.csv.gz`, `h2_W<k>_frames.csv.gz`) and
//! `bandwidth/` with iperf results. The testbed's figures are taken once from all of it, and nothing is fitted to a single
//! configuration. Two figures, and parts of the model's structure, were chosen on the runs with several workers of four
//! configurations (docs/validation.md); the two are left out of the question by [`Options::held_out`].

mod capture;
mod cases;
mod data;
mod held_out;
mod iperf;
mod predict;
mod testbed;

pub use data::{Configuration, Measurement};
pub use held_out::Choice;
pub use testbed::Testbed;

use super::{ErrorBounds, Errors};
use data::Recorded;
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{BitsPerSec, number};

/// Configurations with fewer workers than this are what profiles were taken of.
const JUDGED_FROM: u32 = 2;

/// One measured point and its predictions, in samples per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the configuration.
    pub configuration: String,
    /// Number of workers.
    pub workers: u32,
    /// Nominal rate of every link.
    #[serde(rename = "rate_bits_per_s", serialize_with = "number")]
    pub rate: BitsPerSec,
    /// Number of parameters.
    pub parameters: u64,
    /// Measured throughput.
    pub measured: f64,
    /// Predicted by the engine: mean of the simulated runs.
    pub predicted: f64,
    /// The same, with figures that were chosen on other configurations only.
    pub held_out: Option<f64>,
    /// 90 % of the simulated runs lie between these.
    pub interval: [f64; 2],
    /// A measured run should lie between these with 90 %: what varies from run to run, and what the model lacks.
    pub likely: [f64; 2],
    /// What varies from run to run: standard deviation of the logarithm over simulated runs.
    pub run_spread: f64,
    /// Predicted by Cynthia.
    pub cynthia: f64,
    /// Predicted by the closed queueing network.
    pub lin: f64,
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
    /// Share of the points with two workers and more that lie where 90 % of the simulated runs do.
    pub coverage: f64,
    /// Share of them that lie in the interval with model error.
    pub likely_coverage: f64,
    /// The figures chosen for each configuration on the others; none unless asked for.
    pub choices: Vec<Choice>,
    /// What the engine must achieve.
    pub bounds: ErrorBounds,
    /// What had to be repaired in the recordings.
    pub notes: Vec<String>,
    /// Configurations whose profile cannot be read, and why; a validation with any of them does not hold.
    pub failed: Vec<String>,
}

/// Methods, as reports name them.
const SIMULATE: &str = "simulate";
/// See [`SIMULATE`]: figures chosen on other configurations only.
const HELD_OUT: &str = "simulate, held out";

impl Report {
    /// Whether the engine keeps its bounds and beats both baselines, held out too where that was asked for.
    pub fn holds(&self) -> bool {
        let (engine, others): (Vec<&Errors>, Vec<&Errors>) =
            self.errors.iter().partition(|errors| [SIMULATE, HELD_OUT].contains(&errors.method));
        let keeps = |engine: &&Errors| {
            self.bounds.keeps(engine) && others.iter().all(|other| engine.mean < other.mean)
        };
        self.failed.is_empty() && !engine.is_empty() && engine.iter().all(keeps)
    }
}

/// How to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Predict every configuration also with figures that were chosen on the others only. Takes five times as long.
    pub held_out: bool,
}

/// Predicts everything that was measured in the configurations below `folder`; `progress` is told how many points of how
/// many are done.
pub fn run(
    folder: &Path,
    options: Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report, Fault> {
    let bounds = super::bounds::read()
        .map_err(|error| data::wrong(Path::new("validation"), error.to_string(), "correct the file"))?
        .tf_ps;
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
    let all = points.len() + if options.held_out { held_out::rounds() * judged } else { 0 };
    let count = AtomicUsize::new(0);
    progress(0, all);
    let done = || progress(count.fetch_add(1, Ordering::Relaxed) + 1, all);
    let mut rows = points
        .par_iter()
        .map(|(recorded, measurement)| {
            let row = predict::row(recorded, &testbed, measurement.workers, measurement.examples_per_s);
            done();
            row
        })
        .collect::<Result<Vec<Row>, Fault>>()?;
    cases::widen(&mut rows);
    let choices = match options.held_out {
        true => held_out::predict(&mut rows, &recorded, &testbed, &done)?,
        false => Vec::new(),
    };
    let judged: Vec<&Row> = rows.iter().filter(|row| row.workers >= JUDGED_FROM).collect();
    let mut by_method = vec![errors(SIMULATE, &judged, |row| row.predicted)];
    if options.held_out {
        by_method.push(errors(HELD_OUT, &judged, |row| row.held_out.unwrap_or(f64::NAN)));
    }
    by_method.push(errors("cynthia2019", &judged, |row| row.cynthia));
    by_method.push(errors("lin2018", &judged, |row| row.lin));
    Ok(Report {
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

fn errors(method: &'static str, rows: &[&Row], predicted: impl Fn(&Row) -> f64) -> Errors {
    Errors::of(method, rows.iter().map(|row| predicted(row) / row.measured))
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
        let report = run(&folder, Options::default(), &|_, _| ()).unwrap();
        assert_eq!(report.rows.len(), 24);
        let Testbed { spread, first_window, joining, .. } = &report.testbed;
        assert!((0.2..0.3).contains(&spread[0]) && (0.3..0.5).contains(&spread[1]), "{spread:?}");
        assert!((2e5..4e5).contains(&first_window.get()), "{first_window:?}");
        assert!((0.25..0.4).contains(joining), "{joining}");
        assert!(report.likely_coverage > 0.8, "{}", report.likely_coverage);
        assert!(report.holds(), "{:#?}", report.errors);
    }

    #[test]
    fn a_folder_without_configurations_is_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = run(&folder, Options::default(), &|_, _| ()).unwrap_err();
        assert!(error.reason.contains("no configuration"), "{error}");
    }
}
