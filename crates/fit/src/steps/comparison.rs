//! Errors of predicted steps, also in cross-validation: every model is predicted by a fit of the others, like a model that was
//! not measured.

use super::{MeasuredStep, PreparedSteps};
use crate::{FitError, Quality};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{Nominal, StepModel, StepTimes};
use stepcast_core::method::CancelCheck;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

/// The part of a step that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepPart {
    Forward,
    Backward,
    Iteration,
}

stepcast_core::variant_names!(StepPart { Forward = "forward", Backward = "backward", Iteration = "iteration", });

/// Steps that are judged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepGroup {
    /// In 32 bits.
    Fp32,
    /// In 16 bits, the largest batch of each model.
    Bf16Large,
    /// In 16 bits, smaller batches: the host's time more than the device's.
    Bf16Small,
}

stepcast_core::variant_names!(StepGroup {
    Fp32 = "fp32",
    Bf16Large = "bf16, larger batch",
    Bf16Small = "bf16, smaller batches",
});

pub fn groups(steps: &[MeasuredStep]) -> Vec<StepGroup> {
    let largest = |step: &MeasuredStep| {
        let same =
            |other: &&MeasuredStep| other.precision == step.precision && other.model.name == step.model.name;
        steps.iter().filter(same).all(|other| other.batch <= step.batch)
    };
    let group = |step: &MeasuredStep| match step.precision {
        Precision::Fp32 | Precision::Tf32 => StepGroup::Fp32,
        _ if largest(step) => StepGroup::Bf16Large,
        _ => StepGroup::Bf16Small,
    };
    steps.iter().map(group).collect()
}

/// A step, predicted and measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepComparison {
    pub predicted: StepTimes,
    pub measured: StepTimes,
}

impl StepComparison {
    /// The comparison of a step; none if its precision was not fitted.
    pub fn new(model: &StepModel, step: &MeasuredStep) -> Option<Self> {
        let &MeasuredStep { forward, backward, iteration, .. } = step;
        let predicted = model.predict(&step.model, step.precision, step.batch)?;
        Some(Self { predicted, measured: StepTimes { forward, backward, iteration } })
    }

    /// Predicted and measured time.
    pub fn pair(&self, moment: StepPart) -> (Seconds, Seconds) {
        let of = |times: &StepTimes| match moment {
            StepPart::Forward => times.forward,
            StepPart::Backward => times.backward,
            StepPart::Iteration => times.iteration,
        };
        (of(&self.predicted), of(&self.measured))
    }

    /// Predicted over measured, less one.
    pub fn error(&self, moment: StepPart) -> f64 {
        let (predicted, measured) = self.pair(moment);
        predicted / measured - 1.0
    }

    pub fn quality(judged: &[Self], moment: StepPart) -> Option<Quality> {
        Quality::from_pairs(judged.iter().map(|one| one.pair(moment)))
    }
}

/// The steps that are held out together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
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
    pub model: String,
    pub precision: Precision,
    pub batch: u32,
    pub group: StepGroup,
    pub judged: StepComparison,
}

/// Errors of one group of steps, each predicted without its own model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeftOutErrors {
    pub group: StepGroup,
    pub moment: StepPart,
    pub steps: usize,
    /// Mean of the relative errors.
    pub mean: f64,
    pub worst: f64,
}

/// Predicts every step by a fit of the others' models or families, in the order of the steps; `products` are
/// separately fitted matrix products.
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
    for &group in StepGroup::ALL {
        for &moment in StepPart::ALL {
            let own = predictions.iter().filter(|prediction| prediction.group == group);
            let errors: Vec<f64> = own.map(|prediction| prediction.judged.error(moment).abs()).collect();
            let Some(worst) = errors.iter().copied().reduce(f64::max) else { continue };
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            rows.push(LeftOutErrors { group, moment, steps: errors.len(), mean, worst });
        }
    }
    rows
}
