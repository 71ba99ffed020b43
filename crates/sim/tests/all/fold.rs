//! Workers that do the same at the same moments: simulating one of them against simulating all.

use proptest::prelude::*;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::{Layer, Pass};
use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{
    AllReduce, Bucket, Interference, Limits, LinkSharing, Messages, Observer, Outcome, Program, Replay,
    ReplayWorker, Requeue, StepRecord, Steps, StreamOrder, Streams, run,
};

/// Keeps all steps, and has every worker simulated.
#[derive(Default)]
struct Unfolded(Steps);

impl Observer for Unfolded {
    const EVERY_WORKER: bool = true;

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.0.step(worker, since, until, stale);
    }
}

/// Steps by worker and beginning, with what does not depend on the order of events at one moment.
fn sorted(mut records: Vec<StepRecord>) -> Vec<(u32, f64, f64)> {
    records.sort_by(|a, b| (a.worker, a.since).partial_cmp(&(b.worker, b.since)).unwrap());
    records.into_iter().map(|record| (record.worker, record.since, record.until)).collect()
}

fn used(outcome: &Outcome, program: &Program) -> Vec<f64> {
    let local = 0..usize::from(program.graph.local_lanes());
    let busy = local.map(|local| {
        program.lane_of.iter().map(|lanes| outcome.lane_busy[lanes[local] as usize]).sum::<f64>()
    });
    let shared = outcome.pool_used.iter().take(2).chain(outcome.port_used.iter().take(2));
    busy.chain(shared.copied()).collect()
}

fn same(program: &Program, steps: u64) -> Result<(), TestCaseError> {
    let (mut folded, mut unfolded) = (Steps::default(), Unfolded::default());
    let short = run(program, 7, Limits::steps(steps), &mut folded).unwrap();
    let long = run(program, 7, Limits::steps(steps), &mut unfolded).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-6);
    prop_assert!(short.operations <= long.operations);
    let (folded, unfolded) = (sorted(folded.records), sorted(unfolded.0.records));
    prop_assert_eq!(folded.len(), unfolded.len());
    for (a, b) in folded.iter().zip(&unfolded) {
        prop_assert!(a.0 == b.0 && close(a.1, b.1) && close(a.2, b.2), "{:?} {:?}", a, b);
    }
    for (a, b) in used(&short, program).iter().zip(&used(&long, program)) {
        prop_assert!(close(*a, *b), "{} {}", a, b);
    }
    Ok(())
}

fn step(times: [f64; 4]) -> Step {
    let start = vec![0.0; times.len()];
    Step { start, end: times.to_vec(), length: times.iter().copied().fold(0.0, f64::max) }
}

proptest! {
    #[test]
    fn parameter_servers(
        sizes in prop::collection::vec(100_000u64..9_000_000, 2),
        forward in prop::collection::vec(0.001..0.05f64, 1..4),
        kinds in prop::collection::vec((1usize..4, 1.0..3.0f64, 50e6..400e6f64), 1..3),
        servers in 1u32..3, unevenness in prop::sample::select(vec![0.0, 0.4]),
        coordination in prop::sample::select(vec![
            Synchronisation::Bsp, Synchronisation::Ssp(2), Synchronisation::Async, Synchronisation::LocalSgd(3),
        ]),
        window in prop::sample::select(vec![1e6, f64::INFINITY]), startup in 0.0..0.002f64,
    ) {
        let op = Operation::new;
        let operations = vec![
            op("down 0", Resource::Downlink, sizes[0], &[]),
            op("down 1", Resource::Downlink, sizes[1], &[]),
            op("compute", Resource::Worker, 0, &[0, 1]),
            op("up", Resource::Uplink, sizes[0] + sizes[1], &[2]),
        ];
        let steps = forward.iter().map(|&time| step([0.0, 0.0, time, 0.0])).collect();
        let profile = Profile::new("test", "test", 8, operations, steps);
        let workers = kinds.iter().flat_map(|&(count, slowness, port)| {
            vec![ReplayWorker { slowness, port: BytesPerSec::new(port), machine: None }; count]
        });
        let streams = Streams { window, requeue: Requeue::OnSelection, order: StreamOrder::Fifo };
        let replay = Replay {
            workers: workers.collect(),
            server_of: vec![0, servers - 1, 0, 0],
            servers,
            startup: Seconds::new(startup),
            coordination,
            ..Replay::new(&profile, 0, BytesPerSec::new(200e6), LinkSharing::Shared { streams, unevenness })
        };
        same(&replay.program().unwrap(), 9)?;
    }

    #[test]
    fn all_reduce(
        layers in prop::collection::vec((0.001..0.02f64, 1e5..5e6f64), 2..6),
        factors in prop::collection::vec(0.8..1.3f64, 1..4),
        kinds in prop::collection::vec((1usize..5, 1.0..2.0f64), 1..3),
        channels in 1u32..3, slowdown in prop::sample::select(vec![0.0, 0.5]),
        copies in prop::sample::select(vec![0.0, 1e-9]), period in 1u32..4,
        cycles in prop::option::of(0.001..0.02f64),
    ) {
        let pass = |factor: f64| {
            let layer = |&(time, bytes): &(f64, f64)| Layer {
                backward: Seconds::new(time * factor), gradients: Bytes::new(bytes),
            };
            Pass {
                forward: Seconds::new(0.01 * factor),
                update: Seconds::new(0.003 * factor),
                ..Pass::new(layers.iter().map(layer).collect())
            }
        };
        let curve = Curve::AlphaBeta { startup: Seconds::new(1e-4), bandwidth: BytesPerSec::new(1e9) };
        let buckets = (0..layers.len())
            .map(|layer| Bucket { first: layer, last: layer, after: layer, wait: Seconds::ZERO });
        let messages = match cycles {
            None => Messages::Buckets(buckets.collect()),
            Some(length) => Messages::Cycles {
                length: Seconds::new(length), threshold: Bytes::new(6e6), negotiation: Seconds::new(1e-4),
                phase: None,
            },
        };
        let training = AllReduce {
            passes: kinds.iter().map(|&(_, slow)| factors.iter().map(|by| pass(slow * by)).collect()).collect(),
            kind: kinds.iter().enumerate().flat_map(|(kind, &(count, _))| vec![kind; count]).collect(),
            messages, startup: curve.startup(), curve, channels,
            interference: Interference { slowdown, copy_byte: Seconds::new(copies) },
            period,
        };
        same(&training.program().unwrap(), 9)?;
    }
}

/// What folding is for: many equal workers cost what one does.
#[test]
fn equal_workers_cost_what_one_does() {
    let training = |workers: usize| {
        let layer = Layer { backward: Seconds::new(0.01), gradients: Bytes::new(1e6) };
        let curve = Curve::AlphaBeta { startup: Seconds::new(1e-4), bandwidth: BytesPerSec::new(1e9) };
        let bucket = Bucket { first: 0, last: 0, after: 0, wait: Seconds::ZERO };
        AllReduce {
            passes: vec![vec![Pass::new(vec![layer])]],
            kind: vec![0; workers],
            messages: Messages::Buckets(vec![bucket]),
            startup: curve.startup(),
            curve,
            channels: 1,
            interference: Interference::default(),
            period: 1,
        }
    };
    let operations = |workers: usize| {
        let program = training(workers).program().unwrap();
        run(&program, 1, Limits::steps(20), &mut Steps::default()).unwrap().operations
    };
    assert_eq!(operations(4096), operations(1));
}
