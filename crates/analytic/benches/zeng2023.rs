//! Speed of the closed forms: time per prediction, by number of unequal workers.

#![allow(clippy::expect_used)]

use divan::{Bencher, black_box};
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::method::Method;
use stepcast_core::quantity::Hertz;
use stepcast_core::scenario::{Document, Scenario};

fn main() {
    divan::main();
}

/// A scenario with `workers` groups of one worker each, all different.
fn unequal(workers: usize) -> Scenario {
    let text = "[model]\nzoo = \"vgg16d\"\n[[cluster.workers]]\ncount = 1\ndevice = \"quadro-rtx-4000\"\n";
    let mut scenario = Document::new("bench", text).scenario(&[]).expect("the scenario is valid");
    let group = scenario.cluster.groups[0].clone();
    let unlike = |index: usize| {
        let mut group = group.clone();
        // A fixed shuffle of clocks between 0.8 and 1.8 GHz.
        let share = (index * 7919 % workers) as f64 / workers as f64;
        group.device.clock = Hertz::new(0.8e9 + 1e9 * share);
        group
    };
    scenario.cluster.groups = (0..workers).map(unlike).collect();
    scenario
}

#[divan::bench(args = [1, 4, 16, 256, 1_000, 10_000, 100_000])]
fn zeng2023(bencher: Bencher<'_, '_>, workers: usize) {
    let scenario = unequal(workers);
    bencher.bench_local(|| Zeng2023.predict(black_box(&scenario)));
}

#[divan::bench(args = [1, 4, 16])]
fn layerwise(bencher: Bencher<'_, '_>, workers: usize) {
    let scenario = unequal(workers);
    bencher.bench_local(|| Layerwise.predict(black_box(&scenario)));
}
