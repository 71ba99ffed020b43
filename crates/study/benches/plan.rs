//! Speed of the search over all plans of GPT-3 175B on 4,096 GPUs, which is to take less than 2 s on two cores.

use divan::counter::ItemsCount;
use std::ops::ControlFlow;
use stepcast_core::scenario::Document;
use stepcast_study::explore::plan::{Aim, plan};

const EXAMPLE: &str = include_str!("../../../examples/plan-175b.toml");

fn main() {
    divan::main();
}

/// Every valid plan.
#[divan::bench(sample_count = 5)]
fn gpt3_175b_on_4096(bencher: divan::Bencher<'_, '_>) {
    let Ok(scenario) = Document::new("plan-175b.toml", EXAMPLE).scenario(&[]) else { return };
    let search = || plan(&scenario, Aim::Time, &mut |_| ControlFlow::Continue(()));
    let Ok(report) = search() else { return };
    bencher.counter(ItemsCount::new(report.counts.plans)).bench_local(search);
}
