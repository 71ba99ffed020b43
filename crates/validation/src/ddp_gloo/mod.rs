//! Validation against real PyTorch DDP jobs over gloo on CPUs: from the profile of one worker and a micro-benchmark of
//! all-reduces to the time of a step.
//!
//! Two figures are fitted to jobs, once for the testbed: what a byte costs a rank's only core, and how much slower a
//! loaded host computes. Every job is judged with figures fitted on jobs of other models.

mod case;
mod data;
mod testbed;

pub use testbed::{Parameters, Testbed};

use super::{ErrorBounds, Errors};
use case::Case;
use data::Data;
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{SamplesPerSec, Seconds, number};
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{self, Limit, Machines, Pace, Regime};

/// One job and its predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was trained.
    pub model: String,
    /// Samples of a rank's step.
    pub batch: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Rate of every host's link.
    pub rate: String,
    /// Cores of a rank.
    pub cores: u32,
    /// `bucket_cap_mb`.
    pub bucket_mb: f64,
    /// Share of the step in which ranks compute.
    pub computing_share: f64,
    /// Number of parameters.
    pub parameters: u64,
    /// Measured time of a step.
    #[serde(rename = "measured_s", serialize_with = "number")]
    pub measured: Seconds,
    /// Predicted with figures fitted on other models.
    #[serde(rename = "predicted_s", serialize_with = "number")]
    pub predicted: Seconds,
    /// Predicted with figures fitted on all jobs.
    #[serde(rename = "fitted_s", serialize_with = "number")]
    pub fitted: Seconds,
    /// Predicted by plain overlap, nothing fitted.
    #[serde(rename = "plain_s", serialize_with = "number")]
    pub plain: Seconds,
}

/// The whole validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What profiles and micro-benchmarks say about the testbed.
    pub testbed: Testbed,
    /// What was fitted on all jobs.
    pub parameters: Parameters,
    /// What was fitted without the jobs of each model.
    pub without: Vec<(String, Parameters)>,
    /// All jobs.
    pub rows: Vec<Row>,
    /// Leave-one-model-out, in-sample, plain overlap.
    pub errors: Vec<Errors>,
    /// What must hold under leave-one-model-out.
    pub bounds: ErrorBounds,
    /// Jobs that no profile fits.
    pub left_out: usize,
}

impl Report {
    /// Every job, predicted with figures fitted on other models.
    pub fn cases(&self) -> Vec<interval::Case> {
        let case = |row: &Row| {
            let samples = f64::from(row.batch * row.ranks);
            interval::Case {
                set: "ddp-gloo",
                group: row.model.clone(),
                method: "simulate".to_owned(),
                regime: Regime {
                    architecture: Architecture::AllReduce,
                    pace: Pace::Synchronous,
                    limit: Limit::of(row.computing_share),
                    machines: Machines::Several,
                },
                workers: row.ranks,
                bandwidth: data::rate(&row.rate),
                parameters: Some(row.parameters),
                predicted: SamplesPerSec::of(samples, row.predicted),
                measured: SamplesPerSec::of(samples, row.measured),
                run_spread: 0.0,
            }
        };
        self.rows.iter().map(case).collect()
    }

    /// Whether the bounds are kept on models that were left out of the fit.
    pub fn holds(&self) -> bool {
        let judged = self.errors.first();
        self.left_out == 0 && judged.is_some_and(|errors| self.bounds.keeps(errors))
    }
}

/// Predicts every job of the file at `path`.
pub fn run(path: &Path) -> Result<Report, Fault> {
    let unreadable =
        |error: super::ValidationError| Fault::in_file("validation", error.to_string(), "correct the file");
    let bounds = super::bounds::read().map_err(unreadable)?.ddp_gloo;
    let data = Data::read(path)?;
    let testbed = Testbed::measure(&data);
    let cases: Vec<Case> = data.jobs.iter().filter_map(|job| Case::new(&data, &testbed, job)).collect();
    let mut models: Vec<&str> = cases.iter().map(|case| case.job.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    let all = || cases.iter().collect::<Vec<_>>();
    let fits: Vec<Parameters> = models
        .iter()
        .map(Some)
        .chain([None])
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|left_out| match left_out {
            // With a single model there is nothing else to fit on.
            Some(_) if models.len() == 1 => Parameters::fit(&all()),
            Some(model) => {
                Parameters::fit(&cases.iter().filter(|case| case.job.model != *model).collect::<Vec<_>>())
            }
            None => Parameters::fit(&all()),
        })
        .collect();
    let parameters = fits[models.len()];
    let without =
        |model: &str| models.iter().position(|other| *other == model).map_or(parameters, |index| fits[index]);
    let row = |case: &Case| {
        let predicted = case.predict(&without(&case.job.model));
        Row {
            model: case.job.model.clone(),
            batch: case.job.batch,
            ranks: case.job.place.ranks,
            rate: case.job.place.rate.clone(),
            cores: case.job.place.cores,
            bucket_mb: case.job.bucket,
            measured: case.measured(),
            computing_share: case.computing() / predicted,
            parameters: case.parameters(),
            predicted,
            fitted: case.predict(&parameters),
            plain: case.plain(),
        }
    };
    let rows: Vec<Row> = cases.iter().map(row).collect();
    let errors = |method, predicted: fn(&Row) -> Seconds| {
        Errors::of(method, rows.iter().map(|row| predicted(row) / row.measured))
    };
    let errors = vec![
        errors("other models' fit", |row| row.predicted),
        errors("own fit", |row| row.fitted),
        errors("plain overlap", |row| row.plain),
    ];
    Ok(Report {
        testbed,
        parameters,
        without: models.iter().zip(&fits).map(|(model, fit)| ((*model).to_owned(), *fit)).collect(),
        bounds,
        left_out: data.jobs.len() - rows.len(),
        rows,
        errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/ddp-gloo/ddp_gloo.jsonl")
    }

    #[test]
    fn real_jobs_are_predicted_within_the_bounds() {
        let report = run(&file()).unwrap();
        assert_eq!(report.rows.len(), 36);
        assert!(report.holds(), "{:#?}", report.errors);
        // Worth its two parameters.
        assert!(report.errors[0].mean < 0.5 * report.errors[2].mean, "{:#?}", report.errors);
    }

    #[test]
    fn broken_files_are_refused_with_their_line() {
        let folder = std::env::temp_dir().join(format!("stepcast-ddp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = |text: &str| {
            let path = folder.join("jobs.jsonl");
            std::fs::write(&path, text).unwrap();
            let error = run(&path).unwrap_err();
            format!("{}: {}", error.origin(), error.reason)
        };
        assert!(refused("").contains("no measured job"));
        assert!(refused("{").contains(":1"));
        let place = "\"N\": 2, \"rate\": \"1gbit\", \"cores_per_rank\": 1";
        assert!(refused(&format!("{{\"kind\": \"x\", {place}}}")).contains("no kind of row"));
        assert!(
            refused("{\"kind\": \"ddp\", \"N\": 0, \"rate\": \"1gbit\", \"cores_per_rank\": 1}")
                .contains("ranks")
        );
        assert!(
            refused("{\"kind\": \"ddp\", \"N\": 2, \"rate\": \"fast\", \"cores_per_rank\": 1}")
                .contains("rate")
        );
        let profile = |gradients: &str| {
            format!(
                "{{\"kind\": \"profile\", {place}, \"model\": \"m\", \"fwd\": [1], \"bwd\": [1], \"opt\": [1], \"grads\": {gradients}}}"
            )
        };
        let unsorted = "[{\"bytes\": 4, \"ready\": 2}, {\"bytes\": 4, \"ready\": 1}]";
        assert!(refused(&profile(unsorted)).contains("before the one that precedes it"));
        assert!(refused(&profile("[]")).contains("no gradient has a time"));
        assert!(
            refused(&format!("{{\"kind\": \"allreduce\", {place}, \"bytes\": 4, \"times\": [-1]}}"))
                .contains("positive")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
