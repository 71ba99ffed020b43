//! Every job with its predictions, and their errors.

use super::NAME;
use super::data::{self, Data};
use super::prepared::PreparedJob;
use super::testbed::{Parameters, Testbed};
use crate::{ErrorBounds, Errors, Progress, ValidationError, bounds};
use rayon::prelude::*;
use serde::Serialize;
use serde_with::serde_as;
use std::path::Path;
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

/// One job and its predictions.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct JobPrediction {
    /// What was trained.
    pub(super) model: String,
    /// Samples of a rank's step.
    pub(super) batch: u32,
    /// Number of ranks.
    pub(super) ranks: u32,
    /// Rate of every host's link.
    pub(super) rate: String,
    /// Cores of a rank.
    pub(super) cores: u32,
    /// `bucket_cap_mb`.
    pub(super) bucket_mb: f64,
    /// Share of the step in which ranks compute.
    pub(super) computing_share: f64,
    /// Number of parameters.
    pub(super) parameters: u64,
    /// Measured time of a step.
    #[serde(rename = "measured_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) measured: Seconds,
    /// Predicted with parameters fitted on other models.
    #[serde(rename = "predicted_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) predicted: Seconds,
    /// Predicted with parameters fitted on all jobs.
    #[serde(rename = "fitted_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) fitted: Seconds,
    /// Predicted by plain overlap, without fitted parameters.
    #[serde(rename = "plain_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) plain: Seconds,
}

/// All predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct JobPredictions {
    /// Parameters from profiles and micro-benchmarks.
    pub(super) testbed: Testbed,
    /// Parameters fitted on all jobs.
    pub(super) parameters: Parameters,
    /// Parameters fitted without the jobs of each model.
    pub(super) without: Vec<(String, Parameters)>,
    /// All jobs.
    pub(super) rows: Vec<JobPrediction>,
    /// Errors with the fit of other models, with the fit of all models, and of plain overlap.
    pub(super) errors: Vec<Errors>,
    /// Bounds of the errors with the fit of other models.
    pub(super) bounds: ErrorBounds,
    /// Number of jobs without a profile of their model.
    pub(super) left_out: usize,
}

impl JobPredictions {
    /// Every job, predicted with parameters fitted on other models.
    pub(super) fn cases(&self) -> Vec<Case> {
        let case = |row: &JobPrediction| {
            let samples = f64::from(row.batch * row.ranks);
            Case {
                set: NAME,
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
                predicted: SamplesPerSec::from_time(samples, row.predicted),
                measured: SamplesPerSec::from_time(samples, row.measured),
                run_spread: 0.0,
            }
        };
        self.rows.iter().map(case).collect()
    }

    /// Whether the bounds are kept with the fit of other models.
    pub(super) fn holds(&self) -> bool {
        let judged = self.errors.first();
        self.left_out == 0 && judged.is_some_and(|errors| self.bounds.keeps(errors))
    }
}

/// Predicts every job of the file at `path`.
pub(super) fn predict(path: &Path, progress: &Progress<'_>) -> Result<JobPredictions, ValidationError> {
    let bounds = bounds::of(NAME)?;
    let data = Data::read(path)?;
    let testbed = Testbed::measure(&data);
    let cases: Vec<PreparedJob> =
        data.jobs.iter().filter_map(|job| PreparedJob::new(&data, &testbed, job)).collect();
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
            Some(_) if models.len() == 1 => Parameters::fit(&all(), progress),
            Some(model) => Parameters::fit(
                &cases.iter().filter(|case| case.job.model != *model).collect::<Vec<_>>(),
                progress,
            ),
            None => Parameters::fit(&all(), progress),
        })
        .collect::<Result<_, ValidationError>>()?;
    let parameters = fits[models.len()];
    let without =
        |model: &str| models.iter().position(|other| *other == model).map_or(parameters, |index| fits[index]);
    let row = |case: &PreparedJob| {
        let predicted = case.predict(&without(&case.job.model));
        JobPrediction {
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
    let rows: Vec<JobPrediction> = cases.iter().map(row).collect();
    let errors = |method, predicted: fn(&JobPrediction) -> Seconds| {
        Errors::of(method, rows.iter().map(|row| predicted(row) / row.measured))
    };
    let errors = vec![
        errors("other models' fit", |row| row.predicted),
        errors("own fit", |row| row.fitted),
        errors("plain overlap", |row| row.plain),
    ];
    Ok(JobPredictions {
        testbed,
        parameters,
        without: models.iter().zip(&fits).map(|(model, fit)| ((*model).to_owned(), *fit)).collect(),
        bounds,
        left_out: data.jobs.len() - rows.len(),
        rows,
        errors,
    })
}
