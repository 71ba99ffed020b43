//! The same question for other numbers of workers.

use crate::interval::Intervals;
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::method::{Inapplicable, Method};
use stepcast_core::prediction::Bottleneck;
use stepcast_core::quantity::{SamplesPerSec, Seconds, number};
use stepcast_core::scenario::{MAX_WORKERS, Scenario};

/// Scaling tables go at least this far.
const SCALING_TO: u64 = 16;

/// One number of workers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ScalingPoint {
    /// How many workers.
    pub workers: u32,
    /// Time of one step.
    #[serde(rename = "iteration_s", serialize_with = "number")]
    #[schemars(with = "f64")]
    pub iteration: Seconds,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s", serialize_with = "number")]
    #[schemars(with = "f64")]
    pub throughput: SamplesPerSec,
    /// Between what a measured throughput should lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_samples_per_s: Option<[f64; 2]>,
    /// Throughput against the fastest single worker, alone.
    pub speedup: f64,
    /// Throughput against the sum of what all workers would do alone.
    pub scaling_factor: f64,
    /// What limits the step.
    pub bottleneck: Bottleneck,
}

/// Predicts the scenario for every number of workers, groups keeping their proportions.
pub(crate) fn scaling(
    scenario: &Scenario,
    method: &dyn Method,
    intervals: &Intervals<'_>,
    workers: &[u32],
) -> Result<Vec<ScalingPoint>, Inapplicable> {
    let point = |&workers: &u32| {
        let resized = |scenario: &Scenario| scenario.on(scenario.cluster.resized(workers));
        let asked = resized(scenario);
        let prediction = method.predict(&asked)?;
        let interval = intervals.interval(&asked, &prediction, &resized)?;
        Ok(ScalingPoint {
            workers,
            iteration: prediction.iteration,
            throughput: prediction.throughput,
            interval_samples_per_s: interval
                .map(|(interval, _)| interval.throughput_samples_per_s.map(SamplesPerSec::get)),
            speedup: prediction.speedup,
            scaling_factor: prediction.scaling_factor,
            bottleneck: prediction.bottleneck,
        })
    };
    workers.iter().map(point).collect()
}

/// The smallest number of workers that reaches 95 % of the best throughput, if larger numbers were tried.
pub(crate) fn saturation(points: &[ScalingPoint]) -> Option<u32> {
    let best = points.iter().map(|point| point.throughput.get()).fold(0.0, f64::max);
    let largest = points.iter().map(|point| point.workers).max()?;
    let enough = points.iter().filter(|point| point.throughput.get() >= 0.95 * best);
    enough.map(|point| point.workers).min().filter(|workers| *workers < largest)
}

/// Powers of two up to 16, or up to twice the cluster, and the cluster itself: those that the method models.
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
