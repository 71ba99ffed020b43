//! Speed of studies: forecasts, simulated plans, sweeps, searches, fusion, plans and advice, in one program.
//!
//! Where divan prints items per second, one item is one prediction with its figures.

#![allow(clippy::expect_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::ops::ControlFlow;
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

fn forecast(bencher: Bencher<'_, '_>, request: &Request, choice: MethodChoice) {
    let options = ForecastOptions { method: choice, ..ForecastOptions::default() };
    bencher.bench_local(|| {
        stepcast_study::forecast(black_box(request), &options, &Observer::none()).expect("it has an answer")
    });
}

#[divan::bench(sample_count = 3, sample_size = 1, args = [
    "all-reduce", "all-reduce-cpu", "async", "custom-device", "custom-model", "layer-replacement", "local-sgd", "profile",
    "quickstart", "several-servers", "sprint", "stale-synchronous",
])]
fn example(bencher: Bencher<'_, '_>, name: &str) {
    forecast(bencher, &request(name, &[]), MethodChoice::Auto);
}

/// Examples with many workers, by a method.
#[divan::bench(sample_count = 1, sample_size = 1, args = [
    ("quickstart", "auto", "cluster.workers.0.count=64 cluster.servers.count=64"),
    ("quickstart", "simulate", "cluster.workers.0.count=64 cluster.servers.count=64"),
    ("async", "simulate", "cluster.workers.0.count=1024"),
    ("async", "simulate", "strategy.synchronisation=bsp strategy.architecture=all-reduce cluster.workers.0.count=4096"),
])]
fn many_workers(bencher: Bencher<'_, '_>, (name, method, changes): (&str, &str, &str)) {
    forecast(bencher, &request(name, &changes.split(' ').collect::<Vec<_>>()), named(method));
}

/// 8 tensor-parallel ranks; workers, stages, chunks of each and sequences of a step.
const PLANS: [[u32; 4]; 3] = [[512, 8, 2, 512], [16384, 16, 5, 16384], [100_000, 10, 2, 50_000]];

fn plan_step(
    bencher: Bencher<'_, '_>,
    [workers, stages, chunks, batch]: [u32; 4],
    method: &str,
    jitter: f64,
) {
    let changes = [
        format!("cluster.workers.0.count={workers}"),
        format!("strategy.plan.pipeline={stages}"),
        format!("strategy.plan.virtual-stages={chunks}"),
        format!("strategy.plan.global-batch={batch}"),
        format!("methods.simulate.jitter={jitter}"),
    ];
    let changes = changes.iter().map(String::as_str).collect::<Vec<_>>();
    let scenario = request("transformer", &changes).scenario().expect("it is sound");
    let method = methods::find(method).expect("there is such a method");
    bencher.bench_local(|| method.predict(black_box(&scenario)).expect("it has an answer"));
}

#[divan::bench(args = PLANS, sample_count = 3, sample_size = 1)]
fn simulated_plan(bencher: Bencher<'_, '_>, plan: [u32; 4]) {
    plan_step(bencher, plan, "simulate", 0.0);
}

#[divan::bench(args = [PLANS[0], PLANS[1]], sample_count = 1, sample_size = 1)]
fn simulated_plan_that_varies(bencher: Bencher<'_, '_>, plan: [u32; 4]) {
    plan_step(bencher, plan, "simulate", 0.05);
}

#[divan::bench]
fn closed_form_of_100000_gpus(bencher: Bencher<'_, '_>) {
    plan_step(bencher, PLANS[2], "transformer", 0.0);
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

/// 4,096 points each; `auto` has to find the method that models all of them first.
#[divan::bench(args = ["zeng2023", "layerwise", "liu2022", "oyama2016", "auto"], consts = [1, 2], sample_count = 20)]
fn closed_forms<const THREADS: usize>(bencher: Bencher<'_, '_>, method: &str) {
    let text = match method {
        "liu2022" => ALL_REDUCE.to_owned(),
        "oyama2016" => format!("{ALL_REDUCE}synchronisation = \"async\"\n"),
        _ => PARAMETER_SERVER.to_owned(),
    };
    sweep(bencher, &text, method, &CLOSED_FORM_AXES, THREADS);
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
    let scenario = Document::new("plan-175b.toml", GPT3_175B).scenario(&[]).expect("the example is valid");
    let search = || plan(&scenario, Aim::Time, &mut |_| ControlFlow::Continue(()));
    let report = search().expect("there is a plan");
    bencher.counter(ItemsCount::new(report.counts.plans)).bench_local(search);
}

/// The plan of names alone, to be found in less than 100 ms.
#[divan::bench(sample_count = 10, args = [("llama3-8b", 4), ("gpt3-175b", 512), ("deepseek-v3", 256), ("llama3.1-405b", 2048)])]
fn usual_plan(bencher: Bencher<'_, '_>, (model, machines): (&str, u32)) {
    let changes = ["cluster.machine=dgx-h100", &format!("cluster.machines={machines}")];
    let resolved = || Request::from_model(model, edits(&changes)).scenario().expect("it has a plan").clone();
    bencher.bench_local(resolved);
}

const OFFERS: &str = include_str!("../../../examples/plan-offers.toml");

fn offers() -> Vec<Scenario> {
    let document = Document::new("plan-offers.toml", OFFERS);
    let of_machine = |machine: &str| {
        [2, 4, 8, 16, 32].map(|machines| {
            let changes = [format!("cluster.machine=\"{machine}\""), format!("cluster.machines={machines}")];
            document.scenario(&edits(&changes.each_ref().map(String::as_str))).expect("the offer is valid")
        })
    };
    ["p4d-24xlarge", "p5-48xlarge"].iter().flat_map(|machine| of_machine(machine)).collect()
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
    let scenarios = offers();
    bencher.bench_local(|| advised(&scenarios).expect("figures of all of them"));
}
