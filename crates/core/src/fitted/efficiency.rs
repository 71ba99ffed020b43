//! What share of a device's rates training reaches, fitted to measured steps.
//!
//! Methods that count operations need one or two figures for a device. Two are those of [`compute`](crate::compute): a
//! share of the peak rate for three times the forward operations, a share of the memory rate for the work on every weight.
//! One is that of Zeng 2023, whose operations (eq. 27) run at a rate counted by clocks and units (eqs. 28 and 33).

use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fitted shares in one number format, and the rates that they are shares of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shares {
    /// Peak rate of the device.
    pub peak: FlopsPerSec,
    /// What training reaches of it.
    pub compute: f64,
    /// Memory rate of the device.
    pub memory_rate: BytesPerSec,
    /// What the work on every weight reaches of it.
    pub memory: f64,
    /// What training reaches of the rate of Zeng 2023 with its default operations per cycle.
    pub zeng2023: f64,
}

/// Shares of one device.
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
