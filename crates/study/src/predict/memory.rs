//! Whether a batch fits into a device.

use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Scenario;

/// Parameters, gradients and momentum, four bytes each.
const STATE_BYTES_PER_PARAMETER: f64 = 12.0;

/// Memory for training with `batch` samples: the model's state and the batch's activations.
pub(crate) fn needed(scenario: &Scenario, batch: u32) -> Bytes {
    state(scenario) + scenario.workload.activations * f64::from(batch)
}

fn state(scenario: &Scenario) -> Bytes {
    Bytes::new(scenario.workload.parameters as f64 * STATE_BYTES_PER_PARAMETER)
}

/// Whether the model's state and every group's batch fit into its devices; profiles do not record memory, and what a plan
/// needs is known only when it is predicted.
pub(crate) fn fits(scenario: &Scenario) -> bool {
    if scenario.strategy.plan.is_some() {
        return true;
    }
    let mut groups = scenario.cluster.groups.iter().enumerate();
    groups.all(|(index, group)| needed(scenario, scenario.batch(index)) <= group.device.memory)
}

/// The largest batch that fits into the smallest device, 0 if none does; `None` if activations are unknown.
pub(crate) fn largest_batch(scenario: &Scenario) -> Option<u32> {
    let each = scenario.workload.activations;
    let memory = scenario.cluster.groups.iter().map(|group| group.device.memory).reduce(Bytes::min)?;
    (each > Bytes::ZERO).then(|| ((memory - state(scenario)) / each) as u32)
}
