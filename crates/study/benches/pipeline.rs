//! Time of simulated plans: one step of all stages, and a forecast whose steps vary.

#![allow(clippy::expect_used)]

use divan::{Bencher, black_box};
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_study::Request;
use stepcast_study::predict::methods;

fn main() {
    divan::main();
}

fn scenario(changes: &[&str]) -> Scenario {
    let path = format!("{}/../../examples/transformer.toml", env!("CARGO_MANIFEST_DIR"));
    let changes = changes.iter().map(|change| Edit::parse(change).expect("it is a change")).collect();
    Request::open(&path, changes)
        .expect("the example is there")
        .scenario()
        .expect("it is sound")
        .as_ref()
        .clone()
}

/// 8 tensor-parallel ranks, 8 stages, 8 replicas with 64 micro-batches each.
const OF_512: [&str; 3] =
    ["cluster.workers.0.count=512", "strategy.plan.pipeline=8", "strategy.plan.global-batch=512"];

/// 8 tensor-parallel ranks, 16 stages of 5 chunks, 128 replicas with 128 micro-batches each.
const OF_16384: [&str; 4] = [
    "cluster.workers.0.count=16384",
    "strategy.plan.pipeline=16",
    "strategy.plan.virtual-stages=5",
    "strategy.plan.global-batch=16384",
];

/// 8 tensor-parallel ranks, 10 stages of 2 chunks, 1,250 replicas with 40 micro-batches each.
const OF_100000: [&str; 3] =
    ["cluster.workers.0.count=100000", "strategy.plan.pipeline=10", "strategy.plan.global-batch=50000"];

fn simulate(bencher: Bencher<'_, '_>, changes: &[&str], jitter: &str) {
    let jitter = format!("methods.simulate.jitter={jitter}");
    let scenario = scenario(&[changes, &[&jitter]].concat());
    let method = methods::find("simulate").expect("there is such a method");
    bencher.bench_local(|| method.predict(black_box(&scenario)).expect("it has an answer"));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn step_of_512_gpus(bencher: Bencher<'_, '_>) {
    simulate(bencher, &OF_512, "0");
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn step_of_16384_gpus(bencher: Bencher<'_, '_>) {
    simulate(bencher, &OF_16384, "0");
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn step_of_100000_gpus(bencher: Bencher<'_, '_>) {
    simulate(bencher, &OF_100000, "0");
}

#[divan::bench]
fn closed_form_of_100000_gpus(bencher: Bencher<'_, '_>) {
    let scenario = scenario(&OF_100000);
    let method = methods::find("transformer").expect("there is such a method");
    bencher.bench_local(|| method.predict(black_box(&scenario)).expect("it has an answer"));
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn varying_steps_of_512_gpus(bencher: Bencher<'_, '_>) {
    simulate(bencher, &OF_512, "0.05");
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn varying_steps_of_16384_gpus(bencher: Bencher<'_, '_>) {
    simulate(bencher, &OF_16384, "0.05");
}
