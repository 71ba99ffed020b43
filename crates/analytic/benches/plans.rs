//! Speed of plans by table: GPT-3 175B on 4,096 GPUs. A plan whose costs are known is to take less than 3 us.

use divan::counter::ItemsCount;
use stepcast_analytic::transformer::on_machines;
use stepcast_analytic::transformer::plans::Table;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{Division, PlanChoice, Recompute, ScheduleKind, Sharding};

const EXAMPLE: &str = include_str!("../../../examples/plan-175b.toml");

const WORKERS: u64 = 4096;
const BATCH: u64 = 1536;

fn main() {
    divan::main();
}

fn scenario() -> Scenario {
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
    let scenario = scenario();
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
fn step(bencher: divan::Bencher<'_, '_>, (schedule, pipeline, chunks): (ScheduleKind, u64, u64)) {
    with_table(|table| {
        let choices = choices(schedule, 8, pipeline, chunks);
        bencher.counter(ItemsCount::new(choices.len())).bench_local(|| {
            choices.iter().map(|choice| table.step(choice).map_or(0.0, |step| step.get())).sum::<f64>()
        });
    });
}

/// Memory and lower bound of many plans, as a search asks for them.
#[divan::bench]
fn memory_and_bound(bencher: divan::Bencher<'_, '_>) {
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
