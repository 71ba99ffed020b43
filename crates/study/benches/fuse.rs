//! Speed of comparing fusion rules and finding the best plan: ResNet-152 has 467 gradients.

#![allow(clippy::expect_used)]

use divan::{Bencher, black_box};
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::fuse::fuse;

fn main() {
    divan::main();
}

fn scenario(changes: &[&str]) -> Scenario {
    let text = "[model]\nzoo = \"resnet152\"\n[strategy]\narchitecture = \"all-reduce\"\n[[cluster.workers]]\ncount = 16\n";
    let changes: Vec<Edit> =
        changes.iter().map(|change| Edit::parse(change).expect("it is an override")).collect();
    Document::new("bench", text).scenario(&changes).expect("the scenario is valid")
}

/// All rules and the exact optimum.
#[divan::bench]
fn resnet152(bencher: Bencher<'_, '_>) {
    let scenario = scenario(&[]);
    bencher.bench_local(|| fuse(black_box(&scenario)));
}

/// The same where plans are searched, judged by the engine.
#[divan::bench(sample_count = 5)]
fn resnet152_with_interference(bencher: Bencher<'_, '_>) {
    let scenario = scenario(&["strategy.all-reduce.interference=0.3"]);
    bencher.bench_local(|| fuse(black_box(&scenario)));
}
