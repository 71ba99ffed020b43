//! Validation of fitted step times: every model predicted by what fits the others, and every family.

use super::ErrorBounds;
use serde::Serialize;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{SamplesPerSec, Seconds, number};
use stepcast_core::strategy::Architecture;
use stepcast_fit::steps::{StepGroup, StepPart};
use stepcast_study::fit::steps::{
    Fold, LeftOutErrors, LeftOutPrediction, MeasuredSteps, fit_fault, predictions, products, read,
    several_models, summary,
};
use stepcast_study::predict::interval::{Case, FITTED_STEPS, Limit, Machines, Pace, Regime};

/// One time of one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// Predicted without its own model.
    #[serde(rename = "predicted_s", serialize_with = "number")]
    pub predicted: Seconds,
    /// On the device.
    #[serde(rename = "measured_s", serialize_with = "number")]
    pub measured: Seconds,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was trained.
    pub model: String,
    /// In which number format.
    pub precision: Precision,
    /// Samples of the step.
    pub batch: u32,
    /// Forward pass.
    pub forward: Times,
    /// Backward pass.
    pub backward: Times,
    /// The whole step.
    pub iteration: Times,
}

/// The whole validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// All steps, each predicted without its own model.
    pub rows: Vec<Row>,
    /// Errors of models that were left out.
    pub models: Vec<LeftOutErrors>,
    /// Errors where all models of a family were left out: not bounded.
    pub families: Vec<LeftOutErrors>,
    /// What must hold for models that were left out.
    pub bounds: ErrorBounds,
    /// What was left out of the file.
    pub notes: Vec<String>,
}

/// Whether the bounds hold for a group of steps: small batches in 16 bits are the host's and vary too much.
pub fn is_bounded(row: &LeftOutErrors) -> bool {
    row.group != StepGroup::Bf16Small
}

impl Report {
    /// Every step, predicted without its own model.
    pub fn cases(&self) -> Vec<Case> {
        let case = |row: &Row| Case {
            set: "steps",
            group: row.model.clone(),
            method: FITTED_STEPS.to_owned(),
            regime: Regime {
                architecture: Architecture::StandAlone,
                pace: Pace::Synchronous,
                limit: Limit::Computing,
                machines: Machines::One,
            },
            workers: 1,
            bandwidth: None,
            parameters: zoo::build(&row.model).ok().map(|model| model.parameters()),
            predicted: SamplesPerSec::of(f64::from(row.batch), row.iteration.predicted),
            measured: SamplesPerSec::of(f64::from(row.batch), row.iteration.measured),
            run_spread: 0.0,
        };
        self.rows.iter().map(case).collect()
    }

    /// Whether a row keeps the bounds.
    pub fn keeps(&self, row: &LeftOutErrors) -> bool {
        100.0 * row.mean <= self.bounds.mean && 100.0 * row.worst <= self.bounds.worst
    }

    /// Whether the bounds are kept on models that were left out of the fit.
    pub fn holds(&self) -> bool {
        self.models.iter().filter(|row| is_bounded(row)).all(|row| self.keeps(row))
    }
}

/// Predicts every step of the file at `path` by what fits the other models' steps; `gemm` is an artefact of matrix
/// products.
pub fn run(path: &Path, gemm: Option<&Path>) -> Result<Report, Fault> {
    let unreadable =
        |error: super::ValidationError| Fault::in_file("validation", error.to_string(), "correct the file");
    let bounds = super::bounds::read().map_err(unreadable)?.steps;
    let MeasuredSteps { steps, notes } = read(path)?;
    several_models(path, &steps)?;
    let products = gemm.map(|gemm| products(gemm, &steps)).transpose()?;
    let fold = |fold| predictions(&steps, fold, products.as_ref()).map_err(|error| fit_fault(path, &error));
    let models = fold(Fold::Model)?;
    let families = summary(&fold(Fold::Family)?);
    Ok(Report { rows: models.iter().map(row).collect(), models: summary(&models), families, bounds, notes })
}

fn row(prediction: &LeftOutPrediction) -> Row {
    let times = |moment| {
        let (predicted, measured) = prediction.judged.pair(moment);
        Times { predicted, measured }
    };
    Row {
        model: prediction.model.clone(),
        precision: prediction.precision,
        batch: prediction.batch,
        forward: times(StepPart::Forward),
        backward: times(StepPart::Backward),
        iteration: times(StepPart::Iteration),
    }
}
