//! Fitted step times: every model is predicted by coefficients fitted on the other models, and on the other families.

mod tables;

pub use tables::left_out_table;

use crate::{
    ErrorBounds, Evidence, Measured, Options, Progress, Reached, Report, Set, Source, ValidationError, bounds,
};
use serde::Serialize;
use serde_with::serde_as;
use std::path::Path;
use stepcast_core::method::CancelCheck;
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::strategy::Architecture;
use stepcast_fit::steps::{
    Fold, LeftOutErrors, LeftOutPrediction, MeasuredSteps, predictions, products, read, several_models,
    stopped, summary,
};
use stepcast_fit::steps::{StepGroup, StepPart};
use stepcast_study::predict::interval::{Case, FITTED_STEPS, Limit, Machines, Pace, Regime};

const NAME: &str = "steps";

const ABOUT: &str = "Whole training steps on one device, each model predicted from its layers by coefficients fitted to the \
                     other models.";

/// The set.
pub(super) struct StepTimes;

impl Set for StepTimes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> Source {
        Source::File("steps/steps_h200.jsonl.gz")
    }

    fn run(&self, options: &Options<'_>, progress: &Progress<'_>) -> Result<Report, ValidationError> {
        let predictions = predict(options.data_of(self)?, options.gemm, &|| progress(Reached::Working))?;
        let evidence = Evidence::Measured(Measured {
            cases: predictions.cases(),
            other_cases: Vec::new(),
            bounds: predictions.bounds,
            bounded_by_group: true,
        });
        let mut report = Report::new(NAME, predictions.holds(), ABOUT, evidence, &predictions)?;
        report.sections = tables::sections(&predictions);
        Ok(report)
    }
}

/// One part of a step: predicted and measured time.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// Predicted without its own model.
    #[serde(rename = "predicted_s")]
    #[serde_as(as = "InBaseUnits")]
    pub predicted: Seconds,
    /// Measured on the device.
    #[serde(rename = "measured_s")]
    #[serde_as(as = "InBaseUnits")]
    pub measured: Seconds,
}

/// One step and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepPrediction {
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

/// All predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepPredictions {
    /// All steps, each predicted without its own model.
    pub rows: Vec<StepPrediction>,
    /// Errors of models that were left out.
    pub models: Vec<LeftOutErrors>,
    /// Errors where all models of a family were left out: not bounded.
    pub families: Vec<LeftOutErrors>,
    /// Bounds of the errors of models that were left out.
    pub bounds: ErrorBounds,
    /// Notes on rows of the file that are not used.
    pub notes: Vec<String>,
}

/// Whether the bounds apply to a group of steps. Small batches in 16 bits are limited by the host and vary too much.
pub fn is_bounded(row: &LeftOutErrors) -> bool {
    row.group != StepGroup::Bf16Small
}

impl StepPredictions {
    /// Every step, predicted without its own model.
    pub fn cases(&self) -> Vec<Case> {
        let case = |row: &StepPrediction| Case {
            set: NAME,
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

    /// Whether the errors of a group are within the bounds.
    pub fn keeps(&self, row: &LeftOutErrors) -> bool {
        100.0 * row.mean <= self.bounds.mean && 100.0 * row.worst <= self.bounds.worst
    }

    /// Whether the bounds are kept on models that were left out of the fit.
    pub fn holds(&self) -> bool {
        self.models.iter().filter(|row| is_bounded(row)).all(|row| self.keeps(row))
    }
}

/// Predicts every step of the file at `path` by a fit of the other models' steps; `gemm` is an artefact of fitted matrix
/// products. It goes on as long as it is wanted.
pub fn predict(
    path: &Path,
    gemm: Option<&Path>,
    wanted: &CancelCheck<'_>,
) -> Result<StepPredictions, ValidationError> {
    let bounds = bounds::of(NAME)?;
    let MeasuredSteps { steps, notes } = read(path, wanted)?;
    several_models(path, &steps)?;
    let products = gemm.map(|gemm| products(gemm, &steps)).transpose()?;
    let fold =
        |fold| predictions(&steps, fold, products.as_ref(), wanted).map_err(|error| stopped(path, &error));
    let models = fold(Fold::Model)?;
    let families = summary(&fold(Fold::Family)?);
    let rows = models.iter().map(step_prediction).collect();
    Ok(StepPredictions { rows, models: summary(&models), families, bounds, notes })
}

fn step_prediction(prediction: &LeftOutPrediction) -> StepPrediction {
    let times = |moment| {
        let (predicted, measured) = prediction.judged.pair(moment);
        Times { predicted, measured }
    };
    StepPrediction {
        model: prediction.model.clone(),
        precision: prediction.precision,
        batch: prediction.batch,
        forward: times(StepPart::Forward),
        backward: times(StepPart::Backward),
        iteration: times(StepPart::Iteration),
    }
}
