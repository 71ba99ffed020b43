//! Predictions of a scenario for other numbers of workers; and, for methods that do not compute it, the slack of workers: how
//! much slower a worker may become without lengthening the step.

use crate::predict::interval::Intervals;
use crate::simulate::BUDGET;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;
use stepcast_core::fault::Fault;
use stepcast_core::machine::{Cluster, WorkerGroup};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, Part, Prediction, Verdict};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::{MAX_WORKERS, Scenario};
use stepcast_core::strategy::Plan;

/// Scaling tables go to at least this many workers.
const SCALING_TO: u64 = 16;

/// The plan for a number of workers, where each has its own.
pub(crate) type Planned<'a> = Option<&'a dyn Fn(u32) -> Result<Option<Plan>, Fault>>;

/// One row of the scaling table.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ScalingPoint {
    /// How many workers.
    pub workers: u32,
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s", with = "InBaseUnits")]
    pub throughput: SamplesPerSec,
    /// Interval in which the measured throughput should lie.
    pub interval_samples_per_s: Option<[f64; 2]>,
    /// Throughput relative to the fastest single worker alone.
    pub speedup: f64,
    /// Throughput relative to the sum of the throughputs of all workers alone.
    pub scaling_factor: f64,
    /// The bottleneck of the step.
    pub bottleneck: Bottleneck,
    /// Whether a plan fits into the devices.
    pub memory: Option<Verdict>,
    /// What the step is spent on.
    #[serde(skip)]
    pub breakdown: Vec<Part>,
}

/// Predicts the scenario for every number of workers, groups keeping their proportions, with the plan from
/// `planned`; `own` is the prediction of its own number, `intervals` gives their errors. Numbers for which the budget of a
/// simulation is too small are left out.
pub(crate) fn scaling(
    scenario: &Scenario,
    method: &dyn Method,
    intervals: Option<&Intervals<'_>>,
    workers: &[u32],
    own: &Prediction,
    planned: Planned<'_>,
) -> Result<Vec<ScalingPoint>, Fault> {
    let point = |&workers: &u32| {
        let is_own = u64::from(workers) == scenario.cluster.workers();
        let plan = planned.filter(|_| !is_own).map(|planned| planned(workers)).transpose()?;
        let resized = |scenario: &Scenario| {
            let mut resized = scenario.on(scenario.cluster.resized(workers));
            if let Some(plan) = &plan {
                resized.strategy.plan.clone_from(plan);
            }
            resized
        };
        let asked = resized(scenario);
        let prediction = match is_own {
            true => own.clone(),
            false => match method.predict(&asked) {
                Err(fault) if fault.key == BUDGET => return Ok(None),
                predicted => predicted?,
            },
        };
        let interval = match intervals {
            Some(intervals) => intervals.interval(&asked, &prediction, &resized, false)?,
            None => None,
        };
        Ok(Some(ScalingPoint {
            workers,
            iteration: prediction.iteration,
            throughput: prediction.throughput,
            interval_samples_per_s: interval
                .map(|(interval, _)| interval.throughput_samples_per_s.map(SamplesPerSec::get)),
            speedup: prediction.speedup,
            scaling_factor: prediction.scaling_factor,
            bottleneck: prediction.bottleneck,
            memory: prediction.transformer.as_ref().map(|transformer| transformer.memory.verdict),
            breakdown: prediction.breakdown,
        }))
    };
    workers.iter().filter_map(|workers| point(workers).transpose()).collect()
}

/// Powers of two up to 16, or up to twice the cluster, and the cluster itself, if the method models them.
pub fn usual_workers(scenario: &Scenario, method: &dyn Method) -> Vec<u32> {
    let own = scenario.cluster.workers();
    let last = (2 * own).clamp(SCALING_TO, MAX_WORKERS);
    let powers = (0..u32::BITS).map(|exponent| 1_u32 << exponent);
    let mut workers: Vec<u32> = powers.take_while(|workers| u64::from(*workers) <= last).collect();
    workers.extend(u32::try_from(own));
    workers.sort_unstable();
    workers.dedup();
    workers.retain(|&workers| method.applies(&scenario.on(scenario.cluster.resized(workers))).is_ok());
    workers
}

/// Default gain in throughput below which more workers are not worth it.
pub const WORTH: f64 = 0.05;

/// Numbers of workers for which closed forms are evaluated to find saturation: all up to the first constant, then
/// increasingly far apart up to the second.
const EVERY: u32 = 64;
const FARTHEST: u32 = 4096;

/// The smallest number of workers beyond which no larger number that was tried gains `worth` in throughput; `None` if
/// the largest numbers still do.
pub(crate) fn saturation(
    scenario: &Scenario,
    method: &dyn Method,
    points: &[ScalingPoint],
    worth: f64,
) -> Option<u32> {
    let mut tried: Vec<(u32, f64)> =
        points.iter().map(|point| (point.workers, point.throughput.get())).collect();
    if method.is_quick() && !points.is_empty() {
        let rate = |workers: u32| {
            let asked = scenario.on(scenario.cluster.resized(workers));
            Some((workers, method.predict(&asked).ok()?.throughput.get()))
        };
        tried.extend(sizes().filter_map(rate));
    }
    enough_workers(&mut tried, worth)
}

fn sizes() -> impl Iterator<Item = u32> {
    let farther = std::iter::successors(Some(EVERY), |workers| Some(workers + workers / 16));
    (1..EVERY).chain(farther.take_while(|workers| *workers <= FARTHEST))
}

pub(crate) fn tried() -> u64 {
    sizes().count() as u64
}

/// The smallest number of workers beyond which no larger number gains `worth` in throughput, if twice as many were tried.
pub fn enough_workers(tried: &mut [(u32, f64)], worth: f64) -> Option<u32> {
    tried.sort_by_key(|(workers, _)| *workers);
    let (largest, _) = *tried.last()?;
    let mut best_beyond = 0.0_f64;
    let mut enough = None;
    for &(workers, rate) in tried.iter().rev() {
        if best_beyond > rate * (1.0 + worth) {
            break;
        }
        enough = Some(workers);
        best_beyond = best_beyond.max(rate);
    }
    enough.filter(|workers| 2 * *workers <= largest)
}

/// Slack takes a search per group: it is left out beyond this many groups.
const MAX_GROUPS: usize = 64;

const HALVINGS: usize = 20;

/// Predictions that the search takes, as many groups as `scenario` has.
pub(super) fn slack_predictions(scenario: &Scenario) -> u64 {
    let groups = scenario.cluster.groups.len();
    if groups > MAX_GROUPS { 0 } else { ((groups + 1) * HALVINGS) as u64 }
}

/// Fills in the slack of every group for which the method has not computed it. Plans with a separate kind of
/// worker for each replica have none: a slow worker would be a further kind.
pub(super) fn fill_slack(scenario: &Scenario, method: &dyn Method, prediction: &mut Prediction) {
    if prediction.groups.len() > MAX_GROUPS || !method.is_quick() {
        return;
    }
    for index in 0..prediction.groups.len() {
        if prediction.groups[index].slack.is_none() {
            prediction.groups[index].slack = slack(scenario, method, prediction, index).ok();
        }
    }
}

/// The largest share by which one worker of a group can slow down without lengthening the step, by
/// bisection: a step never shrinks when a worker slows down.
fn slack(
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

fn with_slow_worker(scenario: &Scenario, index: usize, factor: f64) -> Cluster {
    let mut cluster = scenario.cluster.clone();
    let group = &cluster.groups[index];
    let slow = WorkerGroup { count: 1, speed: group.speed / factor, ..group.clone() };
    cluster.groups[index].count -= 1;
    cluster.groups.push(slow);
    cluster.groups.retain(|group| group.count > 0);
    cluster
}
