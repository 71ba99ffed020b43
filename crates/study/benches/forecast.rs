//! Time of whole forecasts: every example as `predict` answers it, and clusters that are large.

#![allow(clippy::expect_used)]

use divan::{Bencher, black_box};
use stepcast_core::scenario::Edit;
use stepcast_study::predict::methods;
use stepcast_study::{ForecastOptions, MethodChoice, Observer, Request};

fn main() {
    divan::main();
}

const EXAMPLES: [&str; 12] = [
    "all-reduce-cpu",
    "all-reduce",
    "async",
    "custom-device",
    "custom-model",
    "layer-replacement",
    "local-sgd",
    "profile",
    "quickstart",
    "several-servers",
    "sprint",
    "stale-synchronous",
];

fn request(name: &str, changes: &[&str]) -> Request {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let changes = changes.iter().map(|change| Edit::parse(change).expect("it is a change")).collect();
    Request::open(&path, changes).expect("the example is there")
}

fn forecast(bencher: Bencher<'_, '_>, request: &Request, choice: MethodChoice) {
    let options = ForecastOptions { method: choice, ..ForecastOptions::default() };
    bencher.bench_local(|| {
        stepcast_study::forecast(black_box(request), &options, &Observer::none()).expect("it has an answer")
    });
}

#[divan::bench(args = EXAMPLES, sample_count = 3, sample_size = 1)]
fn example(bencher: Bencher<'_, '_>, name: &str) {
    forecast(bencher, &request(name, &[]), MethodChoice::Auto);
}

fn simulate() -> MethodChoice {
    MethodChoice::One(methods::find("simulate").expect("there is such a method"))
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn parameter_servers_64_by_64(bencher: Bencher<'_, '_>) {
    let changes = ["cluster.workers.0.count=64", "cluster.servers.count=64"];
    forecast(bencher, &request("quickstart", &changes), MethodChoice::Auto);
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn simulated_parameter_servers_64_by_64(bencher: Bencher<'_, '_>) {
    let changes = ["cluster.workers.0.count=64", "cluster.servers.count=64"];
    forecast(bencher, &request("quickstart", &changes), simulate());
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn asynchronous_workers_1024(bencher: Bencher<'_, '_>) {
    forecast(bencher, &request("async", &["cluster.workers.0.count=1024"]), simulate());
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn all_reduce_of_4096_ranks(bencher: Bencher<'_, '_>) {
    let changes =
        ["strategy.synchronisation=bsp", "strategy.architecture=all-reduce", "cluster.workers.0.count=4096"];
    forecast(bencher, &request("async", &changes), simulate());
}
