//! Cross-validation: every model predicted by a fit of the others, as a model that was not measured would be.

use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::Nominal;
use stepcast_core::method::CancelCheck;
use stepcast_core::precision::Precision;
use stepcast_fit::FitError;
use stepcast_fit::steps::{MeasuredStep, PreparedSteps, StepComparison, StepGroup, StepPart, groups};

/// The steps that are left out together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// One model.
    Model,
    /// All models of a family: the letters before a name's first figure or dash.
    Family,
}

impl Fold {
    fn key(self, step: &MeasuredStep) -> &str {
        let name = step.model.name.as_str();
        match self {
            Self::Model => name,
            Self::Family => name.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or(name),
        }
    }
}

/// A step predicted without its own model.
#[derive(Debug, Clone)]
pub struct LeftOutPrediction {
    /// The model.
    pub model: String,
    /// In which number format.
    pub precision: Precision,
    /// Samples of the step.
    pub batch: u32,
    /// The group in which its error is reported.
    pub group: StepGroup,
    /// Predicted and measured times.
    pub judged: StepComparison,
}

/// Errors of one group of steps, each predicted without its own model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeftOutErrors {
    /// Which steps.
    pub group: StepGroup,
    /// Which time.
    pub moment: StepPart,
    /// How many steps.
    pub steps: usize,
    /// Mean of the relative errors.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
}

/// Predicts every step by a fit of the others' models or families, in the order of the steps; `products` are matrix
/// products that were fitted by themselves.
pub fn predictions(
    steps: &[MeasuredStep],
    fold: Fold,
    products: Option<&GemmModel>,
    wanted: &CancelCheck<'_>,
) -> Result<Vec<LeftOutPrediction>, FitError> {
    let recording = PreparedSteps::new(steps, Nominal::h200(), products);
    let held: Vec<&str> =
        steps.iter().map(|step| fold.key(step)).collect::<BTreeSet<_>>().into_iter().collect();
    let fits =
        held.par_iter().map(|held| Ok((*held, recording.fit(|step| fold.key(step) != *held, wanted)?)));
    let fits: Vec<_> = fits.collect::<Result<_, FitError>>()?;
    let predicted = steps.iter().zip(groups(steps)).filter_map(|(step, group)| {
        let (_, model) = fits.iter().find(|(held, _)| *held == fold.key(step))?;
        let judged = StepComparison::new(model, step)?;
        let (model, precision, batch) = (step.model.name.clone(), step.precision, step.batch);
        Some(LeftOutPrediction { model, precision, batch, group, judged })
    });
    Ok(predicted.collect())
}

/// Mean and worst errors by group.
pub fn summary(predictions: &[LeftOutPrediction]) -> Vec<LeftOutErrors> {
    let mut rows = Vec::new();
    for group in StepGroup::ALL {
        for moment in StepPart::ALL {
            let own = predictions.iter().filter(|prediction| prediction.group == group);
            let errors: Vec<f64> = own.map(|prediction| prediction.judged.error(moment).abs()).collect();
            let Some(worst) = errors.iter().copied().reduce(f64::max) else { continue };
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            rows.push(LeftOutErrors { group, moment, steps: errors.len(), mean, worst });
        }
    }
    rows
}
