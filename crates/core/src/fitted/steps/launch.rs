//! Host side of a step: the host launches kernels one after the other.

use crate::quantity::Seconds;
use serde::{Deserialize, Serialize};

/// Numbers of host operations that a layer causes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Launches {
    /// Kernels of the forward pass.
    pub forward: f64,
    /// Kernels of the backward pass.
    pub backward: f64,
    /// Parameter gradients passed on by the framework.
    pub gradients: f64,
    /// Casts in the forward pass.
    pub forward_casts: f64,
    /// Casts in the backward pass.
    pub backward_casts: f64,
}

/// Host time of each of these operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LaunchCosts {
    /// A kernel of the forward pass, including the framework's overhead.
    pub forward: Seconds,
    /// A kernel of the backward pass.
    pub backward: Seconds,
    /// A parameter gradient.
    pub gradient: Seconds,
    /// A cast in the forward pass.
    pub forward_cast: Seconds,
    /// A cast in the backward pass.
    pub backward_cast: Seconds,
}

impl LaunchCosts {
    /// Total host time.
    pub fn time(&self, launches: &Launches) -> Seconds {
        self.forward * launches.forward
            + self.backward * launches.backward
            + self.gradient * launches.gradients
            + self.forward_cast * launches.forward_casts
            + self.backward_cast * launches.backward_casts
    }
}
