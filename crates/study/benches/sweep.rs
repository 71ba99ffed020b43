//! Speed of sweeps: predictions per second on one core and on all, and a sweep by the engine.
//!
//! divan prints items per second: one item is one prediction with its figures.

#![allow(clippy::expect_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::ops::ControlFlow;
use stepcast_core::files::NoFiles;
use stepcast_core::method::never_cancelled;
use stepcast_core::scenario::Document;
use stepcast_study::explore::sweep::{Agreement, Axis, Variants, rows};
use stepcast_study::predict::MethodChoice;

fn main() {
    divan::main();
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
    let axes = axes.iter().map(|axis| Axis::parse(axis).expect("it is an axis")).collect();
    let variants = Variants::new(&document, &NoFiles, &[], axes).expect("the axes are sound");
    let points = variants.grid().points() as u64;
    let asked = MethodChoice::named(method).expect("there is such a method");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
    bencher.counter(ItemsCount::new(points)).bench_local(|| {
        pool.install(|| {
            let mut refused = 0;
            let each = |row: stepcast_study::explore::sweep::SweepRow| u64::from(row.answer.is_err());
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
