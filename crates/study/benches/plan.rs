//! Speed of plans by table, and of the search over all plans of GPT-3 175B on 4,096 GPUs.
//!
//! `cargo bench -p stepcast-study --bench plan`. A single plan is to take less than 3 us, the search less than 2 s on two
//! cores.

use divan::counter::ItemsCount;
use std::ops::ControlFlow;
use stepcast_analytic::transformer::on_machines;
use stepcast_analytic::transformer::plans::{Choice, Table};
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{Division, Recompute, ScheduleKind, Sharding};
use stepcast_study::explore::plan::{Aim, plan};

const EXAMPLE: &str = include_str!("../../../examples/plan-175b.toml");

fn main() {
    divan::main();
}

fn scenario() -> Scenario {
    Document::new("plan-175b.toml", EXAMPLE).scenario(&[]).unwrap_or_else(|fault| unreachable!("{fault}"))
}

/// Schedule, stages, chunks.
const PLANS: [(ScheduleKind, u64, u64); 7] = [
    (ScheduleKind::OneFOneB, 1, 1),
    (ScheduleKind::OneFOneB, 8, 1),
    (ScheduleKind::OneFOneB, 16, 1),
    (ScheduleKind::Gpipe, 8, 1),
    (ScheduleKind::ZbH1, 8, 1),
    (ScheduleKind::Interleaved, 8, 2),
    (ScheduleKind::Interleaved, 8, 12),
];

/// One plan after the other, all costs being known: sixteen that differ in recomputation, micro-batch and sharding.
#[divan::bench(args = PLANS)]
fn step(bencher: divan::Bencher<'_, '_>, (schedule, pipeline, chunks): (ScheduleKind, u64, u64)) {
    let scenario = scenario();
    let Some((shape, base)) = scenario.source.transformer().zip(scenario.strategy.plan.clone()) else {
        return;
    };
    let any = Division { data: 1, micro_batches: 1, global_batch: 1536 };
    let mut table = Table::new(on_machines(&scenario, &shape, &base, any));
    let data = 4096 / 8 / pipeline;
    let mut choices = Vec::new();
    for recompute in [Recompute::None, Recompute::Layer] {
        for micro_batch in [1, 3] {
            for sharding in [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3] {
                choices.push(Choice {
                    tensor: 8,
                    sequence_parallel: true,
                    context: 1,
                    pipeline,
                    chunks,
                    schedule,
                    expert: 1,
                    data,
                    sharding,
                    sharding_group: None,
                    micro_batch,
                    micro_batches: (1536 / data / micro_batch).max(1),
                    recompute,
                });
            }
        }
    }
    bencher.counter(ItemsCount::new(choices.len())).bench_local(|| {
        choices.iter().map(|choice| table.step(choice).map_or(0.0, |step| step.get())).sum::<f64>()
    });
}

/// Every valid plan.
#[divan::bench(sample_count = 5)]
fn gpt3_175b_on_4096(bencher: divan::Bencher<'_, '_>) {
    let scenario = scenario();
    let search = || plan(&scenario, Aim::Time, &mut |_| ControlFlow::Continue(()));
    let Ok(report) = search() else { return };
    bencher.counter(ItemsCount::new(report.counts.plans)).bench_local(search);
}
