//! Replaying profiles: what one worker did, and what many would do.

use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::{Document, TransferOrder};
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{
    End, Limits, LinkSharing, ParseLane, Parsing, Replay, Requeue, Steps, StreamOrder, Streams, TcpSpec,
    Timeline, Window, run, synthesise,
};

/// Two layers: parameters come down (2 MB and 6 MB), forward and backward take 10 ms each, gradients go up, the server
/// needs 1 ms for each. The recording has the large transfer first.
fn profile() -> Profile {
    let op = Operation::new;
    let operations = vec![
        op("down 0", Resource::Downlink, 2_000_000, &[]),
        op("down 1", Resource::Downlink, 6_000_000, &[]),
        op("forward 0", Resource::Worker, 0, &[0]),
        op("forward 1", Resource::Worker, 0, &[1, 2]),
        op("backward 1", Resource::Worker, 0, &[3]),
        op("up 1", Resource::Uplink, 6_000_000, &[4]),
        op("backward 0", Resource::Worker, 0, &[4]),
        op("up 0", Resource::Uplink, 2_000_000, &[6]),
        op("update 1", Resource::Server, 0, &[5]),
        op("update 0", Resource::Server, 0, &[7]),
    ];
    let start = vec![0.0, 0.0, 0.080, 0.090, 0.100, 0.110, 0.110, 0.120, 0.170, 0.190];
    let end = vec![0.080, 0.060, 0.090, 0.100, 0.110, 0.170, 0.120, 0.190, 0.171, 0.191];
    Profile::new("two layers", "test", 8, operations, vec![Step { start, end, length: 0.195 }])
}

const RATE: f64 = 100e6;

fn fair(window: f64) -> LinkSharing {
    let streams = Streams { window, requeue: Requeue::OnSelection, order: StreamOrder::Fifo };
    LinkSharing::Shared { streams, unevenness: 0.0 }
}

fn replay(profile: &Profile, workers: usize, sharing: LinkSharing) -> Replay<'_> {
    Replay::new(profile, workers, BytesPerSec::new(RATE), sharing)
}

fn mean_step(replay: &Replay<'_>, steps: u64) -> f64 {
    let program = replay.program().unwrap();
    let mut observed = Steps::default();
    let outcome = run(&program, 1, Limits::steps(steps), &mut observed).unwrap();
    assert_eq!(outcome.end, End::Completed);
    observed.records.iter().map(|record| record.until - record.since).sum::<f64>()
        / observed.records.len() as f64
}

#[test]
fn one_worker_repeats_its_recording() {
    profile().check().unwrap();
    // 60 ms and 20 ms down, four times 10 ms of computing of which the last overlaps the upload, 60 ms and 20 ms up,
    // 1 ms of update, 4 ms between steps: 80 + 30 + 80 + 1 + 4.
    let length = mean_step(&replay(&profile(), 1, fair(f64::INFINITY)), 5);
    assert!((length - 0.195).abs() < 1e-9, "{length}");
}

/// Streams of 2, 7, 3, 4 and 1 units that are requested at once and sent in turns of 3 arrive at 2, 16, 8, 17 and 12 (errata
/// 3.2), and their replay has the same arrivals; those of a recording whose second arrived first do so again.
#[test]
fn streams_of_equal_start_are_sent_in_their_turns() {
    let units = [("A", 2, 2.0), ("B", 7, 16.0), ("C", 3, 8.0), ("D", 4, 17.0), ("E", 1, 12.0)];
    let operation =
        |&(name, size, _): &(&str, u64, f64)| Operation::new(name, Resource::Downlink, size * 1_000_000, &[]);
    let made = Profile {
        operations: units.iter().map(operation).collect(),
        steps: vec![Step {
            start: vec![0.0; 5],
            end: units.map(|(_, _, end)| end * 1e-2).into(),
            length: 0.17,
        }],
        ..profile()
    };
    let replay = replay(&made, 1, fair(3e6));
    let mut seen = Timeline::default();
    run(&replay.program().unwrap(), 1, Limits::until_slowest(1), &mut seen).unwrap();
    for (op, (name, _, end)) in units.into_iter().enumerate() {
        let last = seen
            .chunks
            .iter()
            .filter(|chunk| chunk.op == op as u32)
            .map(|chunk| chunk.until)
            .fold(0.0, f64::max);
        assert!((last - end * 1e-2).abs() < 1e-9, "{name}: {last}");
    }
    assert_eq!(profile().sending_order(&profile().steps[0], vec![0, 1], 28e6), [1, 0]);
}

#[test]
fn twice_the_rate_halves_only_transfers() {
    let profile = profile();
    let mut replay = replay(&profile, 1, fair(f64::INFINITY));
    replay.server_port = BytesPerSec::new(2.0 * RATE);
    replay.workers[0].port = replay.server_port;
    assert!((mean_step(&replay, 5) - 0.115).abs() < 1e-9);
}

/// The profile with every transfer and update cut into `count` equal parts.
fn cut(profile: &Profile, count: u64) -> (Profile, Vec<u32>) {
    let mut first: Vec<u32> = Vec::new();
    let (mut operations, mut server_of) = (Vec::new(), Vec::new());
    let mut step = Step { start: Vec::new(), end: Vec::new(), length: profile.steps[0].length };
    let parts = |operation: &Operation| if operation.resource == Resource::Worker { 1 } else { count };
    for (index, operation) in profile.operations.iter().enumerate() {
        first.push(operations.len() as u32);
        let (start, end) = (profile.steps[0].start[index], profile.steps[0].end[index]);
        for part in 0..parts(operation) {
            let after = |&before: &u32| {
                let (before, op) = (first[before as usize], &profile.operations[before as usize]);
                match (parts(op), parts(operation)) {
                    (1, _) => vec![before],
                    (_, 1) => (before..before + count as u32).collect(),
                    _ => vec![before + part as u32],
                }
            };
            operations.push(Operation {
                name: format!("{} {part}", operation.name),
                bytes: operation.bytes / parts(operation),
                after: operation.after.iter().flat_map(after).collect(),
                ..operation.clone()
            });
            server_of.push(part as u32);
            step.start.push(start);
            let is_update = operation.resource == Resource::Server;
            step.end.push(start + (end - start) / if is_update { count as f64 } else { 1.0 });
        }
    }
    // What follows the last operation takes as long as before.
    let last = |step: &Step| step.end.iter().copied().fold(0.0, f64::max);
    step.length -= last(&profile.steps[0]) - last(&step);
    (Profile { operations, steps: vec![step], ..profile.clone() }, server_of)
}

#[test]
fn one_server_stands_for_all_that_hold_slices() {
    let profile = profile();
    for count in [2, 4, 5] {
        let (cut, server_of) = cut(&profile, count);
        for (workers, port, lane) in
            [(1, RATE, ParseLane::Beside), (3, RATE, ParseLane::Shared), (4, 3.0 * RATE, ParseLane::Beside)]
        {
            let parsing = Parsing { per_byte: Seconds::new(1e-10), fixed: Seconds::new(1e-4), lane };
            let mut folded = Replay { parsing, ..replay(&profile, workers, fair(f64::INFINITY)) };
            for worker in &mut folded.workers {
                worker.port = BytesPerSec::new(port);
            }
            folded.coordination = Synchronisation::Bsp;
            let whole = Replay {
                profile: &cut,
                server_of: server_of.clone(),
                servers: count as u32,
                ..folded.clone()
            };
            folded.slices = count as u32;
            folded.server_port = BytesPerSec::new(count as f64 * RATE);
            let (folded, whole) = (mean_step(&folded, 5), mean_step(&whole, 5));
            assert!((folded - whole).abs() < 1e-9, "{count} servers, {workers} workers: {folded} {whole}");
        }
    }
}

#[test]
fn what_is_needed_first_comes_first() {
    let profile = profile();
    let mut sent = replay(&profile, 1, fair(f64::INFINITY));
    let recorded = mean_step(&sent, 3);
    for order in [TransferOrder::Tic, TransferOrder::Tac, TransferOrder::Reverse] {
        sent.order = order;
        // The small one first: forward 0 runs while the large one comes.
        assert!((recorded - mean_step(&sent, 3) - 0.010).abs() < 1e-9, "{order:?}");
    }
}

#[test]
fn parsing_delays_what_waits_for_it() {
    let profile = profile();
    let mut slow = replay(&profile, 1, fair(f64::INFINITY));
    slow.parsing =
        Parsing { per_byte: Seconds::new(1e-9), fixed: Seconds::new(0.001), lane: ParseLane::Beside };
    // The last transfer down and the last one up, both of 2 MB: 2 + 1 ms each.
    assert!((mean_step(&slow, 3) - 0.195 - 0.006).abs() < 1e-9);
    slow.parsing.lane = ParseLane::Shared;
    assert!(mean_step(&slow, 3) >= 0.195 + 0.006 - 1e-9);
}

#[test]
fn a_slow_worker_makes_fewer_steps() {
    let profile = profile();
    let mut mixed = replay(&profile, 2, fair(f64::INFINITY));
    mixed.workers[1].slowness = 20.0;
    let program = mixed.program().unwrap();
    let mut steps = Steps::default();
    run(&program, 1, Limits::until_slowest(10), &mut steps).unwrap();
    let done = |worker| steps.records.iter().filter(|record| record.worker == worker).count();
    assert!(done(0) > 2 * done(1), "{} {}", done(0), done(1));
}

#[test]
fn two_servers_carry_twice_as_much() {
    // Placed so that both carry equally much for many workers.
    let one = mean_step(&replay(&profile(), 8, fair(f64::INFINITY)), 30);
    let profile = profile();
    let mut two = replay(&profile, 8, fair(f64::INFINITY));
    two.servers = 2;
    two.server_of = vec![0, 1, 0, 0, 0, 1, 0, 0, 1, 0];
    let split = mean_step(&two, 30);
    // The fuller one holds three quarters.
    assert!(split < 0.85 * one && split > 0.7 * one, "{split} {one}");
}

fn tcp() -> LinkSharing {
    LinkSharing::Tcp(TcpSpec::linux(RATE, 0.05))
}

#[test]
fn tcp_alone_takes_the_link_as_it_is() {
    let length = mean_step(&replay(&profile(), 1, tcp()), 20);
    assert!((length / 0.195 - 1.0).abs() < 0.05, "{length}");
}

#[test]
fn tcp_never_carries_more_than_the_link() {
    for workers in [2, 4, 8] {
        let program = replay(&profile(), workers, tcp()).program().unwrap();
        let mut steps = Steps::default();
        let outcome = run(&program, 3, Limits::until_slowest(60), &mut steps).unwrap();
        let bytes = steps.records.len() as f64 * 8e6;
        // The token bucket's burst is small against the whole.
        assert!(bytes <= RATE * outcome.time * 1.01 + 1e6 * workers as f64, "{workers}");
        assert!(outcome.tcp_used.iter().all(|used| (0.3..=1.01).contains(used)), "{:?}", outcome.tcp_used);
        let window = Window { since: 0.5 * outcome.time, until: outcome.time };
        assert!(window.steps_per_second(&steps.records) <= 1.02 * RATE / 8e6);
    }
}

#[test]
fn tcp_runs_repeat_with_their_seed_and_differ_without() {
    let program = replay(&profile(), 3, tcp()).program().unwrap();
    let ends = |seed| {
        let mut steps = Steps::default();
        run(&program, seed, Limits::until_slowest(20), &mut steps).unwrap();
        steps.records.iter().map(|record| record.until.to_bits()).collect::<Vec<u64>>()
    };
    assert_eq!(ends(4), ends(4));
    assert_ne!(ends(4), ends(5));
}

#[test]
fn a_model_makes_a_sound_profile() {
    let text = "[model]\nzoo = \"resnet50\"\n";
    let scenario = Document::new("test", text).scenario(&[]).unwrap();
    let profile = synthesise(&scenario, 0, 1.0);
    profile.check().unwrap();
    assert_eq!(profile.bytes(Resource::Downlink), Bytes::new(4.0 * 25_557_032.0));
    assert_eq!(profile.bytes(Resource::Uplink), profile.bytes(Resource::Downlink));
    let spread = profile
        .steps
        .iter()
        .map(|step| step.length)
        .fold((f64::MAX, 0.0f64), |(low, high), length| (low.min(length), high.max(length)));
    assert!(spread.1 > 1.05 * spread.0 && spread.1 < 1.6 * spread.0, "{spread:?}");
}
