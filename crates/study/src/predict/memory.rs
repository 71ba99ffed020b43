//! Whether a batch fits into a device.

use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Scenario;

/// Largest batch that is tried.
const MOST: u32 = 1 << 30;

/// Parameters, gradients and momentum.
const STATES: f64 = 3.0;

/// Memory at the peak of a step with `batch` samples; of a profile, only the parameters and their states are known.
pub(crate) fn needed(scenario: &Scenario, batch: u32) -> Bytes {
    let strategy = &scenario.strategy;
    match &scenario.workload.graph {
        Some(model) => model.peak_memory(batch, strategy.precision, strategy.optimiser),
        None => scenario.workload.bytes() * STATES,
    }
}

/// The part of its memory that the fullest device needs; what a plan needs is known only when it is predicted.
pub(crate) fn fullest(scenario: &Scenario) -> f64 {
    if scenario.strategy.plan.is_some() {
        return 0.0;
    }
    let groups = scenario.cluster.groups.iter().enumerate();
    let parts = groups.map(|(index, group)| needed(scenario, scenario.batch(index)) / group.device.memory);
    parts.fold(0.0, f64::max)
}

/// Whether every group's batch fits into its devices.
pub(crate) fn fits(scenario: &Scenario) -> bool {
    fullest(scenario) <= 1.0
}

/// The largest batch that fits into the smallest device, 0 if none does; `None` if activations are unknown.
pub(crate) fn largest_batch(scenario: &Scenario) -> Option<u32> {
    let memory = scenario.cluster.groups.iter().map(|group| group.device.memory).reduce(Bytes::min)?;
    if scenario.workload.activations <= Bytes::ZERO {
        return None;
    }
    let (mut fits, mut too_large) = (0, MOST);
    while too_large - fits > 1 {
        let middle = fits + (too_large - fits) / 2;
        *(if needed(scenario, middle) <= memory { &mut fits } else { &mut too_large }) = middle;
    }
    Some(fits)
}
