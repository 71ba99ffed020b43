//! Speed of SPRINT's model: one prediction, and a grid of 64 × 64 parameter combinations on one core.

use stepcast_analytic::oyama2016::{Oyama2016, Threads, threads};
use stepcast_core::machine::{Cluster, WorkerGroup};
use stepcast_core::method::Method;
use stepcast_core::scenario::{Document, Scenario};

fn main() {
    divan::main();
}

#[allow(clippy::expect_used)]
fn scenario() -> Scenario {
    let text = include_str!("../../../examples/sprint.toml");
    Document::new("sprint.toml", text).scenario(&[]).expect("the example is sound")
}

#[allow(clippy::expect_used)]
fn example() -> Threads {
    threads(&scenario()).expect("the example is SPRINT's").0
}

#[divan::bench]
fn steady_state(bencher: divan::Bencher<'_, '_>) {
    let threads = example();
    bencher.bench(|| divan::black_box(&threads).steady());
}

#[divan::bench]
fn prediction(bencher: divan::Bencher<'_, '_>) {
    let scenario = scenario();
    bencher.bench(|| Oyama2016.predict(divan::black_box(&scenario)));
}

#[divan::bench]
fn map_of_64_by_64(bencher: divan::Bencher<'_, '_>) {
    let scenario = scenario();
    bencher.bench(|| {
        let mut total = 0.0;
        for nodes in 1..=64 {
            for batch in 1..=64 {
                let group = WorkerGroup {
                    count: 8 * nodes,
                    batch: Some(batch),
                    ..scenario.cluster.groups[0].clone()
                };
                let cluster = Cluster { groups: vec![group], ..scenario.cluster.clone() };
                total +=
                    Oyama2016.predict(&scenario.on(cluster)).map_or(0.0, |answer| answer.iteration.get());
            }
        }
        total
    });
}
