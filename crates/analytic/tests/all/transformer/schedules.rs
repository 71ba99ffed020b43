//! Schedules against a slow simulation and counts, on random sizes and uneven stages; long ones against a simulation in full.

use proptest::prelude::*;
use std::ops::Range;
use stepcast_analytic::transformer::schedules::{
    Deadlock, Operation, Order, PassKind, Sends, Sizes, Times, ends_of_any, execute, has_chunks, in_flight,
    is_long, is_split, is_too_large, order, orders, stage_of,
};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

pub(super) const KINDS: &[ScheduleKind] = ScheduleKind::ALL;

pub(super) fn seconds(times: &[u32]) -> Vec<Seconds> {
    times.iter().map(|&time| Seconds::new(f64::from(time))).collect()
}

pub(super) fn chunks_of(kind: ScheduleKind, wanted: u32) -> u32 {
    match kind {
        _ if kind.is_folded() => 2,
        _ if has_chunks(kind) => wanted,
        _ => 1,
    }
}

/// Most operations that are in flight: begun, and not yet gone backward, the gradients of weights included.
pub(super) fn count_in_flight(order: &[Operation]) -> u64 {
    let split = order.iter().any(|op| op.kind == PassKind::Weight);
    let last = if split { PassKind::Weight } else { PassKind::Backward };
    let now = order.iter().scan(0, |now, op| {
        *now += u64::from(op.kind == PassKind::Forward);
        *now -= u64::from(op.kind == last);
        Some(*now)
    });
    now.max().unwrap_or(0)
}

/// Starts by relaxation: every operation begins at 0 and is moved behind all it waits for, until nothing moves.
fn relaxed(kind: ScheduleKind, sizes: &Sizes, orders: &[Order], times: &Times<'_>) -> Vec<Vec<f64>> {
    let p = orders.len() as u64;
    let places = p * u64::from(sizes.chunks);
    let send = times.send.get();
    let place = |stage: usize, op: &Operation| -> u64 {
        // The chunk-th virtual stage of the stage.
        (0..places).filter(|&place| stage_of(kind, p, place) == stage as u64).nth(op.chunk as usize).unwrap()
    };
    let duration = |stage: usize, op: &Operation| {
        let list = match op.kind {
            PassKind::Forward => times.forward,
            PassKind::Backward => times.backward,
            PassKind::Weight => times.weight,
        };
        list[place(stage, op) as usize].get()
    };
    let find = |kind_of: PassKind, micro_batch: u32, at: u64| -> (usize, usize) {
        let stage = stage_of(kind, p, at) as usize;
        let matches =
            |op: &Operation| op.kind == kind_of && op.micro_batch == micro_batch && place(stage, op) == at;
        (stage, orders[stage].iter().position(matches).unwrap())
    };
    // Whether a stage sends the result of an operation to another.
    let leaves = |stage: usize, op: &Operation| {
        let from = place(stage, op);
        let next = match op.kind {
            PassKind::Forward => Some(from + 1).filter(|&next| next < places),
            PassKind::Backward => from.checked_sub(1),
            PassKind::Weight => None,
        };
        next.is_some_and(|next| stage_of(kind, p, next) != stage as u64)
    };
    // The operations that run as one with another.
    let group = |stage: usize, index: usize| -> Range<usize> {
        let order = &orders[stage];
        let first = order[..index].iter().rposition(|op| !op.with_next).map_or(0, |before| before + 1);
        first..index + 1 + order[index..].iter().position(|op| !op.with_next).unwrap()
    };
    let end = |start: &[Vec<f64>], stage: usize, index: usize| {
        let last = group(stage, index).end - 1;
        start[stage][last] + duration(stage, &orders[stage][last])
    };
    // When the result of an operation has left its stage, one after the other.
    let sent = |start: &[Vec<f64>], stage: usize, index: usize| {
        let mut link: f64 = 0.0;
        for (place, op) in orders[stage][..=index].iter().enumerate() {
            if leaves(stage, op) {
                link = link.max(end(start, stage, place)) + send;
            }
        }
        link
    };
    let mut start: Vec<Vec<f64>> = orders.iter().map(|order| vec![0.0; order.len()]).collect();
    loop {
        let mut moved = false;
        for stage in 0..orders.len() {
            for index in 0..orders[stage].len() {
                let mut earliest: f64 = 0.0;
                let joined = group(stage, index);
                if index > joined.start {
                    earliest = start[stage][index - 1] + duration(stage, &orders[stage][index - 1]);
                } else if index > 0 {
                    let before = &orders[stage][group(stage, index - 1)];
                    let sends = before.iter().filter(|before| leaves(stage, before)).count();
                    let blocked = if times.sends == Sends::Blocking { sends } else { 0 };
                    earliest = end(&start, stage, index - 1) + send * blocked as f64;
                }
                for op in &orders[stage][if index == joined.start { joined } else { index..index }] {
                    let at = place(stage, op);
                    let mut wait = |kind_of: PassKind, from: u64| {
                        let (other, position) = find(kind_of, op.micro_batch, from);
                        let here = || start[other][position] + duration(other, &orders[other][position]);
                        let there = if other == stage { here() } else { sent(&start, other, position) };
                        earliest = earliest.max(there);
                    };
                    match op.kind {
                        PassKind::Forward if at > 0 => wait(PassKind::Forward, at - 1),
                        PassKind::Forward => {}
                        PassKind::Backward => {
                            wait(PassKind::Forward, at);
                            if at + 1 < places {
                                wait(PassKind::Backward, at + 1);
                            }
                        }
                        // Its backward pass comes before it.
                        PassKind::Weight => {}
                    }
                }
                if earliest > start[stage][index] {
                    start[stage][index] = earliest;
                    moved = true;
                }
            }
        }
        if !moved {
            return start;
        }
    }
}

/// A schedule with uneven stages.
#[derive(Debug, Clone)]
struct Case {
    kind: ScheduleKind,
    sizes: Sizes,
    forward: Vec<u32>,
    backward: Vec<u32>,
    weight: Vec<u32>,
    send: u32,
    blocking: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let sizes = (0..KINDS.len(), 1_u32..5, 1_u32..8, 1_u32..4, any::<bool>());
    sizes.prop_flat_map(|(index, stages, micro_batches, wanted, blocking)| {
        let kind = KINDS[index];
        let chunks = chunks_of(kind, wanted);
        // Interleaved schedules want whole groups.
        let micro_batches = match kind {
            ScheduleKind::Interleaved | ScheduleKind::InterleavedZeroBubble if chunks > 1 => {
                micro_batches.div_ceil(stages) * stages
            }
            _ => micro_batches,
        };
        let places = (stages * chunks) as usize;
        let times = || prop::collection::vec(1_u32..20, places);
        (times(), times(), times(), 0_u32..6).prop_map(move |(forward, backward, weight, send)| Case {
            kind,
            sizes: Sizes { stages, micro_batches, chunks, group: None },
            forward,
            backward,
            weight,
            send,
            blocking,
        })
    })
}

proptest! {
    #[test]
    fn every_operation_runs_once_and_in_time(case in case()) {
        let orders = orders(case.kind, &case.sizes);
        let Sizes { micro_batches, chunks, .. } = case.sizes;
        for order in &orders {
            let kinds = if is_split(case.kind) { 3 } else { 2 };
            prop_assert_eq!(order.len(), (kinds * micro_batches * chunks) as usize);
            let mut keys: Vec<_> = order.iter().map(|op| (op.kind as u32, op.micro_batch, op.chunk)).collect();
            keys.sort_unstable();
            keys.dedup();
            prop_assert_eq!(keys.len(), order.len());
        }
        let (forward, backward, weight) =
            (seconds(&case.forward), seconds(&case.backward), seconds(&case.weight));
        let times = Times {
            send: Seconds::new(f64::from(case.send)),
            sends: if case.blocking { Sends::Blocking } else { Sends::Asynchronous },
            ..Times::new(&forward, &backward, &weight)
        };
        let timeline = execute(case.kind, &case.sizes, &orders, &times).unwrap();
        let slow = relaxed(case.kind, &case.sizes, &orders, &times);
        for (fast, slow) in timeline.start.iter().zip(&slow) {
            let fast: Vec<f64> = fast.iter().map(|start| start.get()).collect();
            prop_assert_eq!(&fast, slow);
        }
        // Who asks later waits longer; durations that are listed one by one change nothing.
        let step = |sends| execute(case.kind, &case.sizes, &orders, &Times { sends, ..times }).unwrap().step;
        // Sends that are asked for do not queue: they are compared where those of passes that follow each other, one by one, do not either.
        let one_by_one = orders.iter().flatten().all(|op| !op.with_next || op.kind == PassKind::Backward);
        if one_by_one && case.forward.iter().chain(&case.backward).all(|pass| case.send <= *pass) {
            prop_assert!(step(Sends::Asynchronous) <= step(Sends::Planned));
        }
        prop_assert!(step(Sends::Planned) <= step(Sends::OnDemand));
        let place = |stage: usize, chunk: u32| match case.kind.is_folded() && chunk == 1 {
            true => 2 * orders.len() - 1 - stage,
            false => chunk as usize * orders.len() + stage,
        };
        let duration = |stage: usize, op: &Operation| match op.kind {
            PassKind::Forward => forward[place(stage, op.chunk)],
            PassKind::Backward => backward[place(stage, op.chunk)],
            PassKind::Weight => weight[place(stage, op.chunk)],
        };
        let each: Vec<Vec<Seconds>> = orders.iter().enumerate()
            .map(|(stage, order)| order.iter().map(|op| duration(stage, op)).collect())
            .collect();
        let listed = Times { forward: &[], backward: &[], weight: &[], each: &each, ..times };
        prop_assert_eq!(&execute(case.kind, &case.sizes, &orders, &listed).unwrap(), &timeline);
        for (stage, order) in orders.iter().enumerate() {
            let counted = count_in_flight(order);
            let Sizes { stages, micro_batches, chunks, .. } = case.sizes;
            let closed = in_flight(
                case.kind, stages.into(), stage as u64, micro_batches.into(), chunks.into(),
            );
            match case.kind.is_folded() || case.kind == ScheduleKind::InterleavedZeroBubble {
                // An upper bound.
                true => prop_assert!(counted <= closed),
                false => prop_assert_eq!(counted, closed, "stage {}", stage),
            }
        }
        // No schedule beats its busiest stage.
        prop_assert!(timeline.busy.iter().all(|busy| *busy <= timeline.step));
    }
}

#[test]
fn orders_that_wait_for_each_other_are_found() {
    let kind = ScheduleKind::OneFOneB;
    let sizes = Sizes { stages: 2, micro_batches: 1, chunks: 1, group: None };
    let mut orders = orders(kind, &sizes);
    orders[0].reverse();
    let one = [Seconds::new(1.0); 2];
    let times = Times::new(&one, &one, &[]);
    let stuck = execute(kind, &sizes, &orders, &times).unwrap_err();
    assert_eq!((stuck.stage, stuck.operation.kind), (0, PassKind::Backward));
    assert_eq!(order(kind, &sizes, 1).len(), 2);
}

/// A stage that asks for every tensor when it needs it has no send hidden: with F on both stages, the second begins its
/// i-th forward at i(F + send).
#[test]
fn sends_on_demand_are_exposed() {
    let sizes = Sizes { stages: 2, micro_batches: 5, chunks: 1, group: None };
    let (three, none) = (seconds(&[3, 3]), seconds(&[0, 0]));
    let times = Times { send: Seconds::new(2.0), sends: Sends::OnDemand, ..Times::new(&three, &none, &[]) };
    let orders = orders(ScheduleKind::Gpipe, &sizes);
    let timeline = execute(ScheduleKind::Gpipe, &sizes, &orders, &times).unwrap();
    let starts: Vec<f64> = timeline.start[1].iter().take(5).map(|start| start.get()).collect();
    assert_eq!(starts, [5.0, 10.0, 15.0, 20.0, 25.0]);
    let issue = Times { issue: Seconds::new(1.0), ..times };
    let timeline = execute(ScheduleKind::Gpipe, &sizes, &orders, &issue).unwrap();
    assert_eq!(timeline.start[1][4].get(), 30.0);
}

#[test]
fn long_schedules_end_as_if_simulated_in_full() {
    // From many simulated rounds through the stages to the fewest.
    for (stages, micro_batches) in [(4, 6000), (32, 1600), (80, 960)] {
        for &kind in KINDS {
            let sizes = Sizes { stages, micro_batches, chunks: chunks_of(kind, 2), group: None };
            let times = |from: f64| -> Vec<Seconds> {
                let places = 0..stages * sizes.chunks;
                places.map(|place| Seconds::new(from + 0.25 * f64::from(place % 3))).collect()
            };
            let (forward, backward, weight) = (times(1.0), times(1.5), times(1.0));
            let times = Times { send: Seconds::new(0.125), ..Times::new(&forward, &backward, &weight) };
            let simulated = |micro_batches| {
                let sizes = Sizes { micro_batches, ..sizes };
                let timeline = execute(kind, &sizes, &orders(kind, &sizes), &times)?;
                Ok::<Vec<f64>, Deadlock>(timeline.last_end.into_iter().map(Seconds::get).collect())
            };
            assert!(is_long(&sizes));
            let whole = simulated(micro_batches).unwrap();
            let quick = ends_of_any(&sizes, simulated).unwrap();
            // The fewest rounds are a little short for this one.
            let short = kind == ScheduleKind::InterleavedZeroBubble && stages == 80;
            let tolerance = if short { 0.005 } else { 1e-9 };
            for (whole, quick) in whole.iter().zip(&quick) {
                assert!((quick / whole - 1.0).abs() < tolerance, "{kind} {stages}: {quick} for {whole}");
            }
        }
    }
}

/// A thousand million micro-batches are simulated as two schedules of some thousand.
#[test]
fn the_work_is_bounded() {
    let mut worked = Vec::new();
    let sizes = Sizes { stages: 8, micro_batches: 1_000_000_000, chunks: 2, group: None };
    let ends = ends_of_any::<()>(&sizes, |m| {
        worked.push(u64::from(m) * 8 * 2 * 3);
        Ok(vec![f64::from(m) + 7.0; 8])
    });
    assert!(worked.iter().all(|operations| *operations <= 1 << 16), "{worked:?}");
    assert!((ends.unwrap()[0] / 1_000_000_007.0 - 1.0).abs() < 1e-12);
    assert!(is_too_large(10_000, 1, 10_000) && !is_too_large(10_000, 1, 1));
    assert!(!is_too_large(128, 12, u64::MAX) && is_too_large(1 << 40, 1 << 40, u64::MAX));
}
