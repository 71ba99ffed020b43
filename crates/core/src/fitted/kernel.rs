//! Kernels whose time is linear in the number of elements: t = α·elements + β (Oyama 2016, eq. 5).

use crate::quantity::Seconds;
use serde::{Deserialize, Serialize};

/// A fitted kernel.
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
