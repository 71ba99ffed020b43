//! A profile without a trace: synthetic steps of a model on a device.
//!
//! Each layer is five operations: its parameters come down, forward, backward, its gradients go up, the server applies
//! them (in no time: nothing is known about servers). Computing times come from [`Speed`]. Before the first layer the
//! worker copies its batch to the device, if it has its own link. A single step would keep all workers in
//! lock-step for ever (errata 3.3), so a number of them is made, computing times spread around the model's.

use crate::engine::steps::{Sampler, log_spread};
use stepcast_core::compute;
use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;

const STEPS: usize = 64;

const FEWEST_STEPS: usize = 8;

/// Times of operations that all steps may hold together: 64 MiB.
const MOST_TIMES: usize = 4 << 20;

const COPY: &str = "batch, host to device";

/// The steps of a worker of the group at `index` of `scenario`. Gradients are pushed in the last `hides` of the backward
/// pass, as a share of it: 1 pushes each as soon as it is computed, 0 all of them at the end.
pub fn synthesise(scenario: &Scenario, index: usize, hides: f64) -> Profile {
    let layers = &scenario.workload.layers;
    let speed = Speed::of_group(scenario, index);
    let mut operations: Vec<Operation> = Vec::new();
    let mut times: Vec<f64> = Vec::new();
    let mut add = |name: String, resource, bytes, after: Vec<u32>, time: f64| {
        operations.push(Operation { name, resource, bytes, after, server: 0 });
        times.push(time);
        operations.len() as u32 - 1
    };
    let copy = compute::host_to_device(scenario, index);
    let mut last: Option<u32> = None;
    for layer in layers {
        let bytes = scenario.sent(index, layer).get() as u64;
        let down = add(format!("{}, parameters", layer.name), Resource::Downlink, bytes, vec![], 0.0);
        // Behind the first request: time before it would count as time between steps.
        if last.is_none() && copy > Seconds::ZERO {
            last = Some(add(COPY.to_owned(), Resource::Worker, 0, vec![], copy.get()));
        }
        let after = last.into_iter().chain([down]).collect();
        let forward = speed.forward(layer).get();
        last = Some(add(format!("{}, forward", layer.name), Resource::Worker, 0, after, forward));
    }
    let backward: Vec<f64> = layers.iter().rev().map(|layer| speed.backward(layer).get()).collect();
    let mut pushes = layers.iter().rev().zip(pushed_behind(&backward, hides)).peekable();
    for (position, (layer, time)) in layers.iter().rev().zip(&backward).enumerate() {
        let after = last.into_iter().collect();
        let computed = add(format!("{}, backward", layer.name), Resource::Worker, 0, after, *time);
        while let Some((layer, _)) = pushes.next_if(|(_, behind)| *behind <= position) {
            let bytes = scenario.sent(index, layer).get() as u64;
            let up = add(format!("{}, gradients", layer.name), Resource::Uplink, bytes, vec![computed], 0.0);
            add(format!("{}, update", layer.name), Resource::Server, 0, vec![up], 0.0);
        }
        last = Some(computed);
    }
    let (name, batch) = (scenario.name(), scenario.batch(index));
    let single = Profile::new(name, "made from a model and a device", batch, operations, vec![step(&times)]);
    jittered(
        &single,
        scenario.cluster.groups.len(),
        scenario.methods.simulate.varied(),
        scenario.methods.simulate.seed,
    )
}

/// By layer in backward order: the position of the layer whose backward pass ends when its gradients are pushed.
fn pushed_behind(backward: &[f64], hides: f64) -> Vec<usize> {
    let mut now = 0.0;
    let ends: Vec<f64> = backward
        .iter()
        .map(|time| {
            now += time;
            now
        })
        .collect();
    let whole = now;
    let behind = |(position, end): (usize, &f64)| {
        let pushed = whole - hides.clamp(0.0, 1.0) * (whole - end);
        ends.partition_point(|end| *end < pushed * (1.0 - 1e-12)).clamp(position, ends.len() - 1)
    };
    ends.iter().enumerate().map(behind).collect()
}

/// A number of steps made from the first one of a profile, computing times spread around it: `jitter` is their
/// relative standard deviation. Each of this many `groups` has them at its own speed. One factor holds for a whole step:
/// a slow worker is slow in all of its operations.
pub fn jittered(profile: &Profile, groups: usize, jitter: f64, seed: u64) -> Profile {
    let scaled = |step: &Step, factor: f64| Step {
        start: step.start.iter().map(|time| time * factor).collect(),
        end: step.end.iter().map(|time| time * factor).collect(),
        length: step.length * factor,
    };
    let first = profile.steps.iter().take(1);
    let most = most_steps(profile.operations.len().saturating_mul(groups));
    let steps =
        first.flat_map(|step| jitter_factors(jitter, seed).take(most).map(|factor| scaled(step, factor)));
    Profile { steps: steps.collect(), ..profile.clone() }
}

/// Largest number of steps for this many operations of one worker of every group together: fewer for an enormous model,
/// to save memory.
pub fn most_steps(operations: usize) -> usize {
    (MOST_TIMES / operations.max(1)).clamp(FEWEST_STEPS, STEPS)
}

/// Times of steps relative to the mean one: `jitter` is their standard deviation. Without any, one stands for all.
pub fn jitter_factors(jitter: f64, seed: u64) -> impl Iterator<Item = f64> {
    let mut sampler = Sampler::new(seed, 1);
    let spread = log_spread(jitter);
    let steps = if jitter > 0.0 { STEPS } else { 1 };
    (0..steps).map(move |_| (spread * sampler.normal(0)).exp())
}

/// Operations one after the other; only their durations count.
fn step(times: &[f64]) -> Step {
    let mut now = 0.0;
    let mut start = Vec::with_capacity(times.len());
    let mut end = Vec::with_capacity(times.len());
    for time in times {
        start.push(now);
        now += time;
        end.push(now);
    }
    Step { start, end, length: now.max(f64::MIN_POSITIVE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many operations there are, the times of all steps fit into the same memory, until there are too few steps
    /// to differ.
    #[test]
    fn steps_of_enormous_models_are_few() {
        assert_eq!([100, 10_000, 60_000].map(most_steps), [STEPS; 3]);
        assert!(most_steps(200_000) * 200_000 <= MOST_TIMES && most_steps(200_000) > FEWEST_STEPS);
        assert_eq!(most_steps(10_000_000), FEWEST_STEPS);
    }
}
