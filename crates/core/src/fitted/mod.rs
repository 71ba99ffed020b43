//! Models fitted to measurements, and the files that store them.

pub mod artefact;
pub mod collectives;
pub mod gemm;
pub mod machine;
pub mod steps;
pub mod transfer;

use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kernel whose time is linear in the number of elements: t = α·elements + β (Oyama 2016, eq. 5).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinearKernel {
    /// α.
    pub per_element: Seconds,
    /// β.
    pub start: Seconds,
    /// Smallest measured number of elements.
    pub least: f64,
    /// Largest measured number of elements.
    pub most: f64,
}

impl LinearKernel {
    /// The time for `elements`, and whether that number lies within the measured range.
    pub fn time(&self, elements: f64) -> (Seconds, bool) {
        (self.per_element * elements + self.start, (self.least..=self.most).contains(&elements))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let sound = |time: Seconds| time.is_finite() && time >= Seconds::ZERO;
        match sound(self.per_element) && sound(self.start) {
            true => Ok(()),
            false => Err("a time is negative or endless".to_owned()),
        }
    }
}

/// Fitted shares in one number format, with the rates to which they refer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shares {
    pub peak: FlopsPerSec,
    /// Share of the peak rate that training reaches.
    pub compute: f64,
    pub memory_rate: BytesPerSec,
    /// Share of the memory rate that the work per weight reaches.
    pub memory: f64,
    /// Share of the rate of Zeng 2023, with its default operations per cycle, that training reaches.
    pub zeng2023: f64,
}

/// Efficiencies of a device in training.
///
/// Methods that count operations need one or two efficiencies per device. The model of `compute` has two: a share of the
/// peak rate for three times the forward operations, and a share of the memory rate for the work per weight. Zeng 2023 has
/// one: the share of a rate that follows from clock and units (eqs. 28 and 33), for the operations of eq. 27.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EfficiencyModel {
    pub device: String,
    /// By number format.
    pub precision: BTreeMap<Precision, Shares>,
}

impl EfficiencyModel {
    pub(crate) fn check(&self) -> Result<(), String> {
        for (precision, shares) in &self.precision {
            let Shares { peak, compute, memory_rate, memory, zeng2023 } = *shares;
            let all = [peak.get(), compute, memory_rate.get(), memory, zeng2023];
            if !all.into_iter().all(|value| value.is_finite() && value > 0.0) {
                return Err(format!("a share or rate of {precision} is not positive"));
            }
        }
        Ok(())
    }
}
