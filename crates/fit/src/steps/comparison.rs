//! How far predicted steps are from measured ones.

use super::measured::MeasuredStep;
use crate::Quality;
use serde::Serialize;
use std::fmt;
use stepcast_core::fitted::steps::{StepModel, StepTimes};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

/// The part of a step that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepPart {
    /// Forward pass.
    Forward,
    /// Backward pass.
    Backward,
    /// The whole step.
    Iteration,
}

impl StepPart {
    /// In the order of a step.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Iteration];
}

impl fmt::Display for StepPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Iteration => "iteration",
        })
    }
}

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

impl StepGroup {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fp32, Self::Bf16Large, Self::Bf16Small];
}

impl fmt::Display for StepGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fp32 => "fp32",
            Self::Bf16Large => "bf16, larger batch",
            Self::Bf16Small => "bf16, smaller batches",
        })
    }
}

/// The group of every step.
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
    /// By a model.
    pub predicted: StepTimes,
    /// On the device.
    pub measured: StepTimes,
}

impl StepComparison {
    /// Where the precision was fitted.
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

    /// Quantiles of the errors of some steps.
    pub fn quality(judged: &[Self], moment: StepPart) -> Option<Quality> {
        Quality::from_pairs(judged.iter().map(|one| one.pair(moment)))
    }
}
