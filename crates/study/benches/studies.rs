//! Speed of studies: forecasts, simulated plans, sweeps, searches, fusion, plans and advice, in one program.
//!
//! Where divan prints items per second, one item is one prediction with its figures.

#![allow(clippy::expect_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::ops::ControlFlow;
use std::sync::Arc;
use stepcast_analytic::transformer::Transformer;
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::method::never_cancelled;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::advise::{
    Candidate, DecisionOption, Experiment, ExperimentKind, MeasurementAdvice, UncertainFigure,
};
use stepcast_study::explore::plan::{Aim, plan};
use stepcast_study::explore::search::{Constraint, Effort, Goal, Objective, search};
use stepcast_study::explore::sweep::{Agreement, Axis, SweepRow, Variants, rows};
use stepcast_study::fuse::fuse;
use stepcast_study::predict::methods;
use stepcast_study::{ForecastOptions, MethodChoice, Observer, Request};

fn main() {
    divan::main();
}

fn edits(changes: &[&str]) -> Vec<Edit> {
    changes.iter().map(|change| Edit::parse(change).expect("it is a change")).collect()
}

/// An example with changes.
fn request(name: &str, changes: &[&str]) -> Request {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Request::open(&path, edits(changes)).expect("the example is there")
}

fn named(method: &str) -> MethodChoice {
    MethodChoice::named(method).expect("there is such a method")
}

fn varied<'a>(document: &'a Document, axes: &[&str]) -> Variants<'a> {
    let axes = axes.iter().map(|axis| Axis::parse(axis).expect("it is an axis")).collect();
    Variants::new(document, &NoFiles, &[], axes).expect("the axes are sound")
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started")
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

#[divan::bench(sample_count = 1, sample_size = 1)]
fn parameter_servers_64_by_64(bencher: Bencher<'_, '_>) {
    let changes = ["cluster.workers.0.count=64", "cluster.servers.count=64"];
    forecast(bencher, &request("quickstart", &changes), MethodChoice::Auto);
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn simulated_parameter_servers_64_by_64(bencher: Bencher<'_, '_>) {
    let changes = ["cluster.workers.0.count=64", "cluster.servers.count=64"];
    forecast(bencher, &request("quickstart", &changes), named("simulate"));
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn asynchronous_workers_1024(bencher: Bencher<'_, '_>) {
    forecast(bencher, &request("async", &["cluster.workers.0.count=1024"]), named("simulate"));
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn all_reduce_of_4096_ranks(bencher: Bencher<'_, '_>) {
    let changes =
        ["strategy.synchronisation=bsp", "strategy.architecture=all-reduce", "cluster.workers.0.count=4096"];
    forecast(bencher, &request("async", &changes), named("simulate"));
}

fn transformer(changes: &[&str]) -> Arc<Scenario> {
    request("transformer", changes).scenario().expect("it is sound")
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

fn simulated_plan(bencher: Bencher<'_, '_>, changes: &[&str], jitter: &str) {
    let jitter = format!("methods.simulate.jitter={jitter}");
    let scenario = transformer(&[changes, &[&jitter]].concat());
    let method = methods::find("simulate").expect("there is such a method");
    bencher.bench_local(|| method.predict(black_box(&scenario)).expect("it has an answer"));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn step_of_512_gpus(bencher: Bencher<'_, '_>) {
    simulated_plan(bencher, &OF_512, "0");
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn step_of_16384_gpus(bencher: Bencher<'_, '_>) {
    simulated_plan(bencher, &OF_16384, "0");
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn step_of_100000_gpus(bencher: Bencher<'_, '_>) {
    simulated_plan(bencher, &OF_100000, "0");
}

#[divan::bench]
fn closed_form_of_100000_gpus(bencher: Bencher<'_, '_>) {
    let scenario = transformer(&OF_100000);
    let method = methods::find("transformer").expect("there is such a method");
    bencher.bench_local(|| method.predict(black_box(&scenario)).expect("it has an answer"));
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn varying_steps_of_512_gpus(bencher: Bencher<'_, '_>) {
    simulated_plan(bencher, &OF_512, "0.05");
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn varying_steps_of_16384_gpus(bencher: Bencher<'_, '_>) {
    simulated_plan(bencher, &OF_16384, "0.05");
}

const PARAMETER_SERVER: &str = "\
[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ndevice = \"tesla-v100-sxm2-16gb\"\n[[cluster.workers]]\n\
device = \"tesla-t4\"\n[cluster.network]\nbase = \"10gbe\"\n[data]\nsamples = 1281167\n[price]\nworker-hour = 1\n";

const ALL_REDUCE: &str = "\
[model]\nzoo = \"vgg16\"\n[cluster.network]\nbase = \"10gbe\"\n[strategy]\narchitecture = \"all-reduce\"\n";

const CLOSED_FORM_AXES: [&str; 3] =
    ["cluster.workers.count=1..16", "network.bandwidth=1Gbit/s,10Gbit/s,25Gbit/s,100Gbit/s", "batch=1..64"];

fn sweep(bencher: Bencher<'_, '_>, text: &str, method: &str, axes: &[&str], threads: usize) {
    let document = Document::new("bench", text);
    let variants = varied(&document, axes);
    let points = variants.grid().points() as u64;
    let asked = named(method);
    let pool = pool(threads);
    bencher.counter(ItemsCount::new(points)).bench_local(|| {
        pool.install(|| {
            let mut refused = 0;
            let each = |row: SweepRow| u64::from(row.answer.is_err());
            let agreement = Agreement::of(black_box(&variants), asked);
            let ended = rows(&variants, &agreement, 0..points, &never_cancelled, each, |rows| {
                refused += rows.iter().sum::<u64>();
                ControlFlow::Continue(())
            });
            assert!(ended.is_continue() && refused == 0);
        });
    });
}

/// 4,096 points each.
#[divan::bench(args = [1, 2], sample_count = 20)]
fn zeng2023_threads(bencher: Bencher<'_, '_>, threads: usize) {
    sweep(bencher, PARAMETER_SERVER, "zeng2023", &CLOSED_FORM_AXES, threads);
}

#[divan::bench(args = [1, 2], sample_count = 20)]
fn layerwise_threads(bencher: Bencher<'_, '_>, threads: usize) {
    sweep(bencher, PARAMETER_SERVER, "layerwise", &CLOSED_FORM_AXES, threads);
}

#[divan::bench(args = [1, 2], sample_count = 20)]
fn liu2022_threads(bencher: Bencher<'_, '_>, threads: usize) {
    sweep(bencher, ALL_REDUCE, "liu2022", &CLOSED_FORM_AXES, threads);
}

#[divan::bench(args = [1, 2], sample_count = 20)]
fn oyama2016_threads(bencher: Bencher<'_, '_>, threads: usize) {
    let text = format!("{ALL_REDUCE}synchronisation = \"async\"\n");
    sweep(bencher, &text, "oyama2016", &CLOSED_FORM_AXES, threads);
}

/// The same points with the method that models all of them, which has to be found first.
#[divan::bench(args = [1, 2], sample_count = 20)]
fn layerwise_by_auto_threads(bencher: Bencher<'_, '_>, threads: usize) {
    sweep(bencher, PARAMETER_SERVER, "auto", &CLOSED_FORM_AXES, threads);
}

/// 64 points of ResNet-50 by events, with the usual number of runs and steps.
#[divan::bench(args = [1, 2], sample_count = 1, sample_size = 1)]
fn engine_64_points_resnet50_threads(bencher: Bencher<'_, '_>, threads: usize) {
    let text = "[model]\nzoo = \"resnet50\"\n[cluster.network]\nbase = \"10gbe\"\n[strategy]\n\
                synchronisation = \"async\"\n";
    let axes = [
        "cluster.workers.count=1..8",
        "network.bandwidth=1Gbit/s,2Gbit/s,4Gbit/s,8Gbit/s,10Gbit/s,25Gbit/s,40Gbit/s,100Gbit/s",
    ];
    sweep(bencher, text, "simulate", &axes, threads);
}

const TWO_GROUPS: &str = "\
[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ndevice = \"tesla-v100-sxm2-16gb\"\nprice = 2.5\n\
[[cluster.workers]]\ndevice = \"tesla-t4\"\nprice = 0.5\n[cluster.network]\nbase = \"10gbe\"\n\
[data]\nsamples = 1281167\n[price]\nserver-hour = 0.2\n";

fn find(bencher: Bencher<'_, '_>, axes: &[&str], threads: usize) {
    let document = Document::new("bench", TWO_GROUPS);
    let variants = varied(&document, axes);
    let points = variants.grid().points() as u64;
    let asked = named("zeng2023");
    let constraints = ["nodes<=48", "minibatch<=4096"];
    let constraints = constraints.map(|text| Constraint::parse(text).expect("it is a constraint")).to_vec();
    let goal = Goal { objective: Objective::CostTime, constraints };
    let effort = Effort { how: None, budget: None, seed: 1 };
    let pool = pool(threads);
    bencher.counter(ItemsCount::new(points)).bench_local(|| {
        pool.install(|| {
            let found = search(black_box(&variants), asked, &goal, effort, &never_cancelled, &mut |_| ());
            assert!(found.is_ok_and(|report| report.gap == Some(0.0)));
        });
    });
}

/// 32 × 32 × 8 × 2 × 64 configurations: 1,048,576.
#[divan::bench(args = [1, 2], sample_count = 3, sample_size = 1)]
fn a_million_threads(bencher: Bencher<'_, '_>, threads: usize) {
    let axes = [
        "cluster.workers.0.count=1..32",
        "cluster.workers.1.count=0..31",
        "cluster.servers.count=1..8",
        "cluster.servers.placement=greedy,even",
        "batch=1..64",
    ];
    find(bencher, &axes, threads);
}

/// 1,000 × 1,000 × 1,000 configurations; most of them are never predicted.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_billion_by_branch_and_bound(bencher: Bencher<'_, '_>) {
    let axes = ["cluster.workers.0.count=1..1000", "cluster.workers.1.count=0..999", "batch=1..1000"];
    find(bencher, &axes, 1);
}

fn resnet152_scenario(changes: &[&str]) -> Scenario {
    let text = "[model]\nzoo = \"resnet152\"\n[strategy]\narchitecture = \"all-reduce\"\n[[cluster.workers]]\ncount = 16\n";
    Document::new("bench", text).scenario(&edits(changes)).expect("the scenario is valid")
}

/// All rules and the exact optimum: 467 gradients.
#[divan::bench]
fn resnet152(bencher: Bencher<'_, '_>) {
    let scenario = resnet152_scenario(&[]);
    bencher.bench_local(|| fuse(black_box(&scenario)));
}

/// The same where plans are searched, judged by the engine.
#[divan::bench(sample_count = 5)]
fn resnet152_with_interference(bencher: Bencher<'_, '_>) {
    let scenario = resnet152_scenario(&["strategy.all-reduce.interference=0.3"]);
    bencher.bench_local(|| fuse(black_box(&scenario)));
}

const GPT3_175B: &str = include_str!("../../../examples/plan-175b.toml");

/// Every valid plan, to be searched in less than 2 s on two cores.
#[divan::bench(sample_count = 5)]
fn gpt3_175b_on_4096(bencher: Bencher<'_, '_>) {
    let Ok(scenario) = Document::new("plan-175b.toml", GPT3_175B).scenario(&[]) else { return };
    let search = || plan(&scenario, Aim::Time, &mut |_| ControlFlow::Continue(()));
    let Ok(report) = search() else { return };
    bencher.counter(ItemsCount::new(report.counts.plans)).bench_local(search);
}

const OFFERS: &str = include_str!("../../../examples/plan-offers.toml");

fn offers() -> Result<Vec<Scenario>, Fault> {
    let document = Document::new("plan-offers.toml", OFFERS);
    let edit = |machines: u32| Edit::parse(&format!("cluster.machines={machines}"));
    [2, 3, 4, 5, 6, 7, 8, 10, 12, 16]
        .map(|machines| document.scenario(&[edit(machines)?]))
        .into_iter()
        .collect()
}

/// The figures of all of them, and the value of each experiment: to take less than 2 s.
fn advised(scenarios: &[Scenario]) -> Result<Option<MeasurementAdvice>, Fault> {
    let candidate = |(place, scenario): (usize, &Scenario)| {
        let option = DecisionOption { time: 1e6 / (1.0 + place as f64), price: 1.0 + 1.01 * place as f64 };
        Ok(Candidate {
            machines: String::new(),
            figure: UncertainFigure::step(scenario, &Transformer)?,
            option,
        })
    };
    let candidates = scenarios.iter().enumerate().map(candidate).collect::<Result<Vec<_>, Fault>>()?;
    let experiment = |(scenario, candidate): (&Scenario, &Candidate)| Experiment {
        kind: ExperimentKind::Gpu,
        machines: String::new(),
        time: Seconds::new(3600.0),
        price: 10.0,
        readings: (0..scenario.priors.groups.len())
            .filter(|group| candidate.figure.depends_on(*group))
            .map(|group| candidate.figure.of_group(scenario, group))
            .collect(),
        command: String::new(),
    };
    let experiments: Vec<Experiment> = scenarios.iter().zip(&candidates).map(experiment).collect();
    Ok(MeasurementAdvice::new(&candidates, &experiments, None, "USD"))
}

#[divan::bench(sample_count = 5)]
fn ten_offers_ten_experiments(bencher: Bencher<'_, '_>) {
    let Ok(scenarios) = offers() else { return };
    bencher.bench_local(|| advised(&scenarios));
}
