//! Speed of the engine, in operations that complete per second.

#![allow(clippy::expect_used)]

use divan::Bencher;
use divan::counter::ItemsCount;
use stepcast_core::quantity::BytesPerSec;
use stepcast_core::scenario::Document;
use stepcast_sim::{
    Blind, Discipline, LaneSpec, Limits, LinkSharing, OpSpec, PoolSpec, Program, Replay, Requeue, Station,
    StepGraph, StepWork, StreamOrder, Streams, run, synthesise,
};

fn main() {
    divan::main();
}

/// A chain of layers: for each a downlink transfer, forward and backward computing, an uplink transfer and an update.
fn layered(operations: usize, workers: u32) -> Program {
    let layers = operations / 5;
    let mut specs = Vec::new();
    let mut op = |name: String, lane: u16, after: Vec<u32>| {
        specs.push(OpSpec { name, lane, after, releases: None });
        specs.len() as u32 - 1
    };
    let down: Vec<u32> = (0..layers).map(|layer| op(format!("down {layer}"), 0, vec![])).collect();
    let mut last = None;
    for &transfer in &down {
        last = Some(op(format!("forward {transfer}"), 1, last.into_iter().chain([transfer]).collect()));
    }
    for layer in (0..layers).rev() {
        last = Some(op(format!("backward {layer}"), 1, last.into_iter().collect()));
        let up = op(format!("up {layer}"), 2, last.into_iter().collect());
        op(format!("update {layer}"), 3, vec![up]);
    }
    let graph = StepGraph::new(&specs, 4).expect("the graph is sound");
    let streams = Streams { window: 28e6, requeue: Requeue::OnSelection, order: StreamOrder::Fifo };
    let link = |pool| LaneSpec {
        discipline: Discipline::Streams(streams),
        station: Station::Pool(pool),
        startup: 0.0,
        startup_pool: None,
    };
    let step = |seed: usize| StepWork {
        work: (0..graph.len())
            .map(|op| {
                let spread = 0.5 + ((op * 7919 + seed * 104_729) % 1000) as f64 / 1000.0;
                if matches!(graph.lane(op as u32), 0 | 2) { 1e5 * spread } else { 1e-3 * spread }
            })
            .collect(),
        sources: graph.sources().to_vec(),
        rank: vec![],
        share: 1.0,
    };
    let steps = vec![(0..40).map(step).collect()];
    let mut program = Program { pools: vec![PoolSpec::equal(1.25e9); 2], ..Program::new(graph, steps) };
    for _ in 0..workers {
        program.add_worker_with_own_lanes(0, [link(0), LaneSpec::own(1.0), link(1), LaneSpec::own(1.0)]);
    }
    program
}

#[divan::bench(sample_count = 20)]
fn ten_workers_of_500_operations(bencher: Bencher<'_, '_>) {
    let program = layered(500, 10);
    bencher
        .counter(ItemsCount::new(500 * 10 * 100u32))
        .bench_local(|| run(&program, 1, Limits::steps(100), &mut Blind));
}

#[divan::bench(args = [16, 64, 256, 1024, 4096], sample_count = 10)]
fn workers_of_100_operations(bencher: Bencher<'_, '_>, workers: u32) {
    let program = layered(100, workers);
    bencher
        .counter(ItemsCount::new(100 * workers * 10))
        .bench_local(|| run(&program, 1, Limits::steps(10), &mut Blind));
}

/// Inception-v3, 1000 steps for each of 2 to 10 workers, one after the other on one core.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn inception_v3_for_2_to_10_workers(bencher: Bencher<'_, '_>) {
    let text = "[model]\nzoo = \"inception-v3\"\n";
    let scenario = Document::new("bench", text).scenario(&[]).expect("the scenario is sound");
    let profile = synthesise(&scenario, 0, 1.0);
    let port = BytesPerSec::new(1.25e9);
    let program = |workers| {
        let streams = Streams { window: 28e6, requeue: Requeue::OnSelection, order: StreamOrder::Fifo };
        let replay = Replay::new(&profile, workers, port, LinkSharing::Shared { streams, unevenness: 0.0 });
        replay.program().expect("the profile is sound")
    };
    let programs: Vec<Program> = (2..=10).map(program).collect();
    let operations: usize =
        programs.iter().map(|program| program.graph.len() * program.workers() * 1000).sum();
    bencher.counter(ItemsCount::new(operations)).bench_local(|| {
        for program in &programs {
            run(program, 1, Limits::steps(1000), &mut Blind).expect("the program is sound");
        }
    });
}
