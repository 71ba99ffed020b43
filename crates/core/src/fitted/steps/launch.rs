//! What the host does before a device can start: it issues kernels one after the other.

use crate::quantity::Seconds;
use serde::{Deserialize, Serialize};

/// How often a layer makes the host do something.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Launches {
    /// Kernels of the forward pass.
    pub forward: f64,
    /// Kernels of the backward pass.
    pub backward: f64,
    /// Gradients of parameters that are handed over.
    pub gradients: f64,
    /// Casts in the forward pass.
    pub forward_casts: f64,
    /// Casts in the backward pass.
    pub backward_casts: f64,
}

/// What each of these costs the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LaunchCosts {
    /// A kernel of the forward pass, with the framework around it.
    pub forward: Seconds,
    /// A kernel of the backward pass.
    pub backward: Seconds,
    /// A gradient of parameters.
    pub gradient: Seconds,
    /// A cast in the forward pass.
    pub forward_cast: Seconds,
    /// A cast in the backward pass.
    pub backward_cast: Seconds,
}

impl LaunchCosts {
    /// How long the host takes.
    pub fn time(&self, launches: &Launches) -> Seconds {
        self.forward * launches.forward
            + self.backward * launches.backward
            + self.gradient * launches.gradients
            + self.forward_cast * launches.forward_casts
            + self.backward_cast * launches.backward_casts
    }
}
