//! What a device makes of a workload: how long the layers of one step take.
//!
//! A step is three times the forward operations at a share of the peak rate, plus the work that every weight causes
//! once a step, at a share of the memory rate. Shares are measured, given in the scenario, or assumed with a warning.

use crate::cluster::WorkerGroup;
use crate::prediction::Warning;
use crate::quantity::{Bytes, Seconds};
use crate::scenario::Scenario;
use crate::workload::LayerWork;

/// Share of the peak rate that is assumed where nothing was measured.
pub const ASSUMED_EFFICIENCY: f64 = 0.5;

/// Share of the memory rate that is assumed where nothing was measured.
pub const ASSUMED_MEMORY_EFFICIENCY: f64 = 0.5;

/// Bytes that move per weight and step: it is read forward and backward, its gradient written; the update reads
/// weight, gradient and momentum and writes weight and momentum. Eight accesses of four bytes.
pub const BYTES_PER_WEIGHT: f64 = 32.0;

/// The share of [`BYTES_PER_WEIGHT`] that belongs to the forward pass.
const FORWARD_ACCESSES: f64 = 1.0 / 8.0;

/// Backward operations per forward operation: gradients of the inputs and of the weights.
const BACKWARD_PER_FORWARD: f64 = 2.0;

/// Operations of a whole step per forward operation.
pub const FLOPS_PER_FORWARD: f64 = 1.0 + BACKWARD_PER_FORWARD;

/// Speed of one worker: what a unit of work costs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    per_flop: Seconds,
    per_weight: Seconds,
}

impl Speed {
    /// The speed of a worker of the group at `index`, for its whole batch.
    pub fn of(scenario: &Scenario, index: usize) -> Self {
        let group = &scenario.cluster.groups[index];
        let peak = group.device.peak(scenario.strategy.precision).unwrap_or_else(|| group.device.fp32_peak());
        let rate = peak * (efficiency(group).unwrap_or(ASSUMED_EFFICIENCY) * group.speed);
        let memory = group.device.memory_efficiency.unwrap_or(ASSUMED_MEMORY_EFFICIENCY);
        Self {
            per_flop: Seconds::new(f64::from(scenario.batch(index))) / rate.get(),
            per_weight: Bytes::new(BYTES_PER_WEIGHT) / (group.device.memory_rate * (memory * group.speed)),
        }
    }

    /// Forward pass of a layer.
    pub fn forward(&self, layer: &LayerWork) -> Seconds {
        self.per_flop * layer.forward.get() + self.per_weight * (layer.parameters as f64 * FORWARD_ACCESSES)
    }

    /// Backward pass of a layer.
    pub fn backward(&self, layer: &LayerWork) -> Seconds {
        self.per_flop * (layer.forward.get() * BACKWARD_PER_FORWARD)
            + self.per_weight * (layer.parameters as f64 * (1.0 - FORWARD_ACCESSES))
    }
}

/// Copying a batch to the device, where it has a link of its own.
pub fn host_to_device(scenario: &Scenario, index: usize) -> Seconds {
    let batch = scenario.workload.sample * f64::from(scenario.batch(index));
    scenario.cluster.groups[index].device.host_link.map_or(Seconds::ZERO, |link| batch / link)
}

fn efficiency(group: &WorkerGroup) -> Option<f64> {
    group.efficiency.or(group.device.efficiency)
}

/// Says which efficiencies were assumed rather than given.
pub fn assumptions(scenario: &Scenario) -> Option<Warning> {
    let mut assumed: Vec<&str> = Vec::new();
    for group in scenario.cluster.groups.iter().filter(|group| efficiency(group).is_none()) {
        if !assumed.contains(&group.device.name.as_str()) {
            assumed.push(&group.device.name);
        }
    }
    (!assumed.is_empty()).then(|| Warning {
        code: "assumed-efficiency",
        message: format!(
            "no efficiency is known for {}: {ASSUMED_EFFICIENCY} of the peak rate is assumed; measure one step and \
             set `efficiency`",
            assumed.join(", ")
        ),
    })
}
