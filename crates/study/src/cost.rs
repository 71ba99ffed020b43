//! What answers cost, known before they are computed, in the unit of budgets: events of the engine, of which a core does
//! about ten million in a second.

use stepcast_core::method::Method;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// What a closed form costs beside its layers.
const PREDICTION: u64 = 50;

/// What it costs to read a layer or a group of a scenario.
const RESOLUTION: u64 = 50;

/// What a study may cost unless more is asked for: about two minutes of a core.
pub(crate) const UNASKED: u64 = 1_000_000_000;

/// Layers that one closed form goes through: all of them for every group of workers.
pub(crate) fn pass(scenario: &Scenario) -> u64 {
    let workload = &scenario.workload;
    let layers = workload.layers.len().max(workload.tensors as usize) as u64;
    layers.saturating_mul(scenario.cluster.groups.len() as u64).max(1)
}

pub(crate) fn prediction(scenario: &Scenario, method: &dyn Method) -> u64 {
    if method.is_quick() { PREDICTION + pass(scenario) } else { scenario.methods.simulate.budget }
}

/// What it costs to make a scenario from its text, about.
pub(crate) fn resolution(scenario: &Scenario) -> u64 {
    RESOLUTION.saturating_mul(pass(scenario))
}

/// How long a core takes.
pub(crate) fn duration(events: f64) -> Seconds {
    Seconds::new(events / 1e7)
}
