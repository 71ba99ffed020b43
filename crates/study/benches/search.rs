//! Speed of searches: a million configurations one by one, and a trillion by branch and bound.

#![allow(clippy::expect_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use stepcast_core::files::NoFiles;
use stepcast_core::method::never_cancelled;
use stepcast_core::scenario::Document;
use stepcast_study::explore::search::{Constraint, Effort, Goal, Objective, search};
use stepcast_study::explore::sweep::{Axis, Variants};
use stepcast_study::predict::MethodChoice;
use stepcast_study::predict::methods;

fn main() {
    divan::main();
}

const TEXT: &str = "\
[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ndevice = \"tesla-v100-sxm2-16gb\"\nprice = 2.5\n\
[[cluster.workers]]\ndevice = \"tesla-t4\"\nprice = 0.5\n[cluster.network]\nbase = \"10gbe\"\n\
[data]\nsamples = 1281167\n[price]\nserver-hour = 0.2\n";

fn find(bencher: Bencher<'_, '_>, axes: &[&str], threads: usize) {
    let document = Document::new("bench", TEXT);
    let axes = axes.iter().map(|axis| Axis::parse(axis).expect("it is an axis")).collect();
    let variants = Variants::new(&document, &NoFiles, &[], axes).expect("the axes are sound");
    let points = variants.grid().points() as u64;
    let asked = MethodChoice::One(methods::find("zeng2023").expect("there is such a method"));
    let constraints = ["nodes<=48", "minibatch<=4096"];
    let constraints = constraints.map(|text| Constraint::parse(text).expect("it is a constraint")).to_vec();
    let goal = Goal { objective: Objective::CostTime, constraints };
    let effort = Effort { how: None, budget: None, seed: 1 };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
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

/// 1,000 × 1,000 × 1,000 configurations, of which most are never looked at.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_billion_by_branch_and_bound(bencher: Bencher<'_, '_>) {
    let axes = ["cluster.workers.0.count=1..1000", "cluster.workers.1.count=0..999", "batch=1..1000"];
    find(bencher, &axes, 1);
}
