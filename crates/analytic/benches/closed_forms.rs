//! Speed of the closed forms: one prediction, maps, and plans by table (a plan whose costs are known is to take less
//! than 3 us).

#![allow(clippy::expect_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use stepcast_analytic::collectives::{Fabric, all_reduce};
use stepcast_analytic::layerwise::Layerwise;
use stepcast_analytic::liu2022::{Layer, Liu2022, Pass, optimum, osf, plan};
use stepcast_analytic::oyama2016::{Oyama2016, Threads, threads};
use stepcast_analytic::transformer::on_machines;
use stepcast_analytic::transformer::plans::Table;
use stepcast_analytic::zeng2023::Zeng2023;
use stepcast_core::fitted::transfer::{Curve, LogLinear};
use stepcast_core::machine::{Cluster, WorkerGroup};
use stepcast_core::method::Method;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Hertz, Seconds};
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{
    Algorithm, Division, Fusion, PYTORCH_CAP, PlanChoice, Recompute, ScheduleKind, Sharding,
};

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

/// The gradients of ResNet-50, each with its own backward time.
fn tensors() -> Pass {
    let model = zoo::build("resnet50").expect("the zoo has it");
    let layers = model.gradients().into_iter().enumerate().map(|(index, gradient)| Layer {
        backward: Seconds::new(1e-4 * (1 + index % 7) as f64),
        gradients: Bytes::new(4.0 * gradient.elements as f64),
    });
    let pass = Pass::new(layers.collect());
    assert_eq!(pass.layers.len(), 161);
    pass
}

fn fabric() -> Fabric {
    Fabric {
        step: Seconds::new(2e-5),
        bandwidth: BytesPerSec::new(3.125e9),
        reduce: FlopsPerSec::new(13.45e12),
        element: Bytes::new(4.0),
    }
}

fn ring() -> Curve {
    let size = Bytes::new(1e6);
    all_reduce(Algorithm::Ring, &fabric(), 32, size).line(size)
}

#[divan::bench]
fn osf_161(bencher: Bencher<'_, '_>) {
    let (pass, ring) = (tensors(), ring());
    bencher.bench_local(|| osf(black_box(&pass), black_box(&ring), &Fusion::None));
}

#[divan::bench]
fn fused_161(bencher: Bencher<'_, '_>) {
    let (pass, ring) = (tensors(), ring());
    let schedule = Fusion::buffer(PYTORCH_CAP);
    bencher.bench_local(|| osf(black_box(&pass), black_box(&ring), black_box(&schedule)));
}

#[divan::bench]
fn adaptive_161(bencher: Bencher<'_, '_>) {
    let pass = tensors();
    let curve = Curve::Piecewise(LogLinear::continuous(
        LogLinear::PAPER_THRESHOLD,
        Seconds::new(3e-6),
        BytesPerSec::new(1.6e9),
        Seconds::new(1e-3),
    ));
    let schedule = Fusion::Adaptive;
    bencher.bench_local(|| osf(black_box(&pass), black_box(&curve), black_box(&schedule)));
}

#[divan::bench]
fn plan_161(bencher: Bencher<'_, '_>) {
    let (pass, ring) = (tensors(), ring());
    bencher.bench_local(|| plan(black_box(&pass), black_box(&ring), &Fusion::None));
}

/// ResNet-152 has 467 gradients.
#[divan::bench]
fn optimum_467(bencher: Bencher<'_, '_>) {
    let mut pass = tensors();
    let more: Vec<Layer> = pass.layers.iter().copied().cycle().take(467).collect();
    pass.layers = more;
    let ring = ring();
    bencher.bench_local(|| optimum(black_box(&pass), black_box(&ring)));
}

#[divan::bench]
fn liu2022(bencher: Bencher<'_, '_>) {
    let text = "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\n[[cluster.workers]]\n\
                count = 32\ndevice = \"quadro-rtx-4000\"\n";
    let scenario = Document::new("bench", text).scenario(&[]).expect("the scenario is valid");
    bencher.bench_local(|| Liu2022.predict(black_box(&scenario)));
}

fn sprint() -> Scenario {
    let text = include_str!("../../../examples/sprint.toml");
    Document::new("sprint.toml", text).scenario(&[]).expect("the example is sound")
}

fn example() -> Threads {
    threads(&sprint()).expect("the example is SPRINT's").0
}

#[divan::bench]
fn steady_state(bencher: Bencher<'_, '_>) {
    let threads = example();
    bencher.bench(|| black_box(&threads).steady());
}

#[divan::bench]
fn oyama2016(bencher: Bencher<'_, '_>) {
    let scenario = sprint();
    bencher.bench(|| Oyama2016.predict(black_box(&scenario)));
}

#[divan::bench]
fn map_of_64_by_64(bencher: Bencher<'_, '_>) {
    let scenario = sprint();
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

const EXAMPLE: &str = include_str!("../../../examples/plan-175b.toml");

const WORKERS: u64 = 4096;
const BATCH: u64 = 1536;

fn gpt3() -> Scenario {
    Document::new("plan-175b.toml", EXAMPLE).scenario(&[]).unwrap_or_else(|fault| unreachable!("{fault}"))
}

/// Plans with this schedule that differ in recomputation, micro-batch and sharding.
fn choices(schedule: ScheduleKind, tensor: u64, pipeline: u64, chunks: u64) -> Vec<PlanChoice> {
    let data = WORKERS / tensor / pipeline;
    let mut choices = Vec::new();
    for recompute in [Recompute::None, Recompute::Layer] {
        for micro_batch in [1, 2, 3].into_iter().filter(|batch| BATCH.is_multiple_of(data * batch)) {
            for sharding in [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3] {
                choices.push(PlanChoice {
                    tensor,
                    sequence_parallel: tensor > 1,
                    context: 1,
                    pipeline,
                    virtual_stages: chunks,
                    schedule,
                    expert: 1,
                    data,
                    sharding,
                    sharding_group: None,
                    micro_batch,
                    micro_batches: BATCH / data / micro_batch,
                    recompute: recompute.into(),
                });
            }
        }
    }
    choices
}

fn with_table(work: impl FnOnce(&mut Table<'_>)) {
    let scenario = gpt3();
    let Some((shape, base)) = scenario.source.transformer().zip(scenario.strategy.plan.clone()) else {
        return;
    };
    let any = Division { data: 1, micro_batches: 1, global_batch: BATCH };
    work(&mut Table::new(on_machines(&scenario, &shape, &base, any)));
}

/// Schedule, stages, chunks.
const PLANS: [(ScheduleKind, u64, u64); 8] = [
    (ScheduleKind::OneFOneB, 2, 1),
    (ScheduleKind::OneFOneB, 8, 1),
    (ScheduleKind::OneFOneB, 32, 1),
    (ScheduleKind::Gpipe, 8, 1),
    (ScheduleKind::ZbH1, 8, 1),
    (ScheduleKind::Interleaved, 8, 2),
    (ScheduleKind::Interleaved, 8, 12),
    (ScheduleKind::LoopedBfs, 8, 2),
];

/// The step of one plan after the other.
#[divan::bench(args = PLANS)]
fn step(bencher: Bencher<'_, '_>, (schedule, pipeline, chunks): (ScheduleKind, u64, u64)) {
    with_table(|table| {
        let choices = choices(schedule, 8, pipeline, chunks);
        bencher.counter(ItemsCount::new(choices.len())).bench_local(|| {
            choices.iter().map(|choice| table.step(choice).map_or(0.0, |step| step.get())).sum::<f64>()
        });
    });
}

/// Memory and lower bound of many plans, as a search asks for them.
#[divan::bench]
fn memory_and_bound(bencher: Bencher<'_, '_>) {
    let mut all = Vec::new();
    for tensor in [1, 2, 4, 8] {
        for pipeline in [2, 4, 8, 16] {
            for (schedule, chunks) in [(ScheduleKind::OneFOneB, 1), (ScheduleKind::Interleaved, 3)] {
                all.extend(choices(schedule, tensor, pipeline, chunks));
            }
        }
    }
    with_table(|table| {
        bencher.counter(ItemsCount::new(all.len())).bench_local(|| {
            all.iter().map(|choice| table.memory(choice).get() + table.bound(choice).get()).sum::<f64>()
        });
    });
}
