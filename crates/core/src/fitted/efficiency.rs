//! Efficiencies of a device in training, fitted to measured steps.
//!
//! Methods that count operations need one or two efficiencies per device. The model of `compute`
//! has two: a share of the peak rate for three times the forward operations, and a share of the memory rate for the
//! work per weight. Zeng 2023 has one: the share of a rate that follows from clock and units (eqs. 28 and 33), for
//! the operations of eq. 27.

use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fitted shares in one number format, with the rates to which they refer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shares {
    /// Peak rate of the device.
    pub peak: FlopsPerSec,
    /// Share of the peak rate that training reaches.
    pub compute: f64,
    /// Memory rate of the device.
    pub memory_rate: BytesPerSec,
    /// Share of the memory rate that the work per weight reaches.
    pub memory: f64,
    /// Share of the rate of Zeng 2023, with its default operations per cycle, that training reaches.
    pub zeng2023: f64,
}

/// Fitted shares of one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EfficiencyModel {
    /// Name of the device.
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
