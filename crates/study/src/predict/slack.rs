//! The slack of workers, for methods that do not compute it themselves: how much slower a worker may become without
//! lengthening the step.

use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::Scenario;

/// Slack takes a search per group: it is left out beyond this many groups.
const MAX_GROUPS: usize = 64;

const HALVINGS: usize = 20;

/// Predictions that the search takes, as many groups as `scenario` has.
pub(crate) fn predictions(scenario: &Scenario) -> u64 {
    let groups = scenario.cluster.groups.len();
    if groups > MAX_GROUPS { 0 } else { ((groups + 1) * HALVINGS) as u64 }
}

/// Fills in the slack of every group for which the method has not computed it. Plans whose replicas are of one kind each have
/// none: a slow worker would be a kind by itself.
pub(crate) fn fill(scenario: &Scenario, method: &dyn Method, prediction: &mut Prediction) {
    if prediction.groups.len() > MAX_GROUPS || !method.is_quick() {
        return;
    }
    for index in 0..prediction.groups.len() {
        if prediction.groups[index].slack.is_none() {
            prediction.groups[index].slack = search(scenario, method, prediction, index).ok();
        }
    }
}

/// The largest share by which one worker of a group can slow down without lengthening the step, by
/// bisection: a step never shrinks when a worker slows down.
pub(crate) fn search(
    scenario: &Scenario,
    method: &dyn Method,
    prediction: &Prediction,
    index: usize,
) -> Result<f64, Fault> {
    let limit = prediction.iteration.get() * (1.0 + 1e-12);
    let free = |slower: f64| -> Result<bool, Fault> {
        let changed = method.predict(&scenario.on(with_slow_worker(scenario, index, 1.0 + slower)))?;
        Ok(changed.iteration.get() <= limit)
    };
    // Upper end: slowed down this far, the worker's computing alone takes longer than the step.
    let (mut low, mut high) = (0.0, prediction.iteration / prediction.groups[index].compute + 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if free(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

fn with_slow_worker(scenario: &Scenario, index: usize, factor: f64) -> stepcast_core::machine::Cluster {
    let mut cluster = scenario.cluster.clone();
    let group = &cluster.groups[index];
    let slow = WorkerGroup { count: 1, speed: group.speed / factor, ..group.clone() };
    cluster.groups[index].count -= 1;
    cluster.groups.push(slow);
    cluster.groups.retain(|group| group.count > 0);
    cluster
}
