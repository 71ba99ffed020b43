//! Pipelines against closed forms, published bubbles and the golden ones.

use super::schedules::{KINDS, chunks_of, count_in_flight, seconds};
use super::{cases, near, number, word};
use proptest::prelude::*;
use serde_json::Value;
use stepcast_analytic::transformer::schedules::{
    Operation, PassKind, Sends, Sizes, Timeline, Times, execute, is_split, orders,
};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

fn run(kind: ScheduleKind, sizes: &Sizes, times: &Times<'_>) -> Timeline {
    execute(kind, sizes, &orders(kind, sizes), times).unwrap()
}

/// Times of one stage, all its chunks together, the same for all stages.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Equal {
    /// F: forward.
    forward: Seconds,
    /// B: backward; with a split backward, the gradients of inputs.
    backward: Seconds,
    /// W: gradients of weights; zero if the backward is not split.
    weight: Seconds,
}

/// The step time of equal stages without sends; none where no closed form holds.
///
/// ```text
/// GPipe, 1F1B   (m+p−1)(F+B+W)
/// interleaved   m(F+B+W) + (p−1)(F+B+W)/v          if m is a multiple of p and groups have p micro-batches
/// ZB-H1         (m+p−1)(F+B) + max(m−p+1, 1)·W     if W ≤ min(F, B)
/// ```
///
/// For m ≥ p the last is m(F+B+W) + (p−1)(F+B−W), usually quoted without its conditions (Qi 2023).
fn equal_stages(kind: ScheduleKind, sizes: &Sizes, times: &Equal) -> Option<Seconds> {
    let (p, m, v) = (f64::from(sizes.stages), f64::from(sizes.micro_batches), f64::from(sizes.chunks.max(1)));
    let Equal { forward, backward, weight } = *times;
    let all = forward + backward + weight;
    match kind {
        ScheduleKind::Gpipe | ScheduleKind::OneFOneB => Some(all * (m + p - 1.0)),
        ScheduleKind::Interleaved => {
            let whole = sizes.micro_batches.is_multiple_of(sizes.stages);
            let usual = sizes.group.is_none_or(|group| group == sizes.stages);
            (whole && usual).then(|| all * m + all * ((p - 1.0) / v))
        }
        ScheduleKind::ZbH1 => {
            let holds = weight <= forward.min(backward);
            holds.then(|| (forward + backward) * (m + p - 1.0) + weight * (m - p + 1.0).max(1.0))
        }
        ScheduleKind::DualPipeV | ScheduleKind::DualPipe => {
            // Times of a chunk; the bubble of DualPipe on 2p ranks: (p−1)(F&B + B − 3W).
            let [f, b, w] = [forward, backward, weight].map(|time| time * 0.5);
            let holds = sizes.micro_batches >= 2 * sizes.stages && f == b && b == w;
            holds.then(|| all * m + (f + b + w + b + w - w * 3.0) * (p - 1.0))
        }
        ScheduleKind::LoopedBfs | ScheduleKind::InterleavedZeroBubble | ScheduleKind::Zbv => None,
    }
}

/// The step time of GPipe with unequal stages and asynchronous sends:
/// ΣF + (m−1)·max F + ΣB + (m−1)·max B + 2(p−1)·send, where the longest of a direction may be its send.
fn unequal_gpipe(micro_batches: u32, forward: &[Seconds], backward: &[Seconds], send: Seconds) -> Seconds {
    let sum = |times: &[Seconds]| Seconds::new(times.iter().map(|time| time.get()).sum());
    let sent = if forward.len() > 1 { send } else { Seconds::ZERO };
    let most = |times: &[Seconds]| times.iter().copied().fold(sent, Seconds::max);
    let more = f64::from(micro_batches.saturating_sub(1));
    let hops = 2.0 * forward.len().saturating_sub(1) as f64;
    sum(forward) + most(forward) * more + sum(backward) + most(backward) * more + send * hops
}

proptest! {
    #[test]
    fn closed_forms_hold_on_equal_stages(
        index in 0..KINDS.len(), stages in 1_u32..6, micro_batches in 1_u32..12, wanted in 1_u32..4,
        f in 1_u32..20, b in 1_u32..20, w in 1_u32..20,
    ) {
        let kind = KINDS[index];
        let chunks = chunks_of(kind, wanted);
        let sizes = Sizes { stages, micro_batches, chunks, group: None };
        let places = (stages * chunks) as usize;
        let all = |time: u32| seconds(&vec![time; places]);
        let (forward, backward, weight) = (all(f), all(b), all(w));
        let times = Times::new(&forward, &backward, &weight);
        let of_stage = |time: u32| Seconds::new(f64::from(time * chunks));
        let weight_of_stage = if is_split(kind) { of_stage(w) } else { Seconds::ZERO };
        let equal = Equal { forward: of_stage(f), backward: of_stage(b), weight: weight_of_stage };
        if let Some(closed) = equal_stages(kind, &sizes, &equal) {
            let step = run(kind, &sizes, &times).step;
            prop_assert!((step.get() - closed.get()).abs() < 1e-9 * step.get(), "{} {}", step, closed);
        }
    }

    #[test]
    fn gpipe_has_a_closed_form_on_unequal_stages(
        (forward, backward) in (1_usize..6).prop_flat_map(|stages| {
            let times = || prop::collection::vec(1_u32..20, stages);
            (times(), times())
        }),
        micro_batches in 1_u32..10, send in 0_u32..9,
    ) {
        let kind = ScheduleKind::Gpipe;
        let sizes = Sizes { stages: forward.len() as u32, micro_batches, chunks: 1, group: None };
        let (forward, backward) = (seconds(&forward), seconds(&backward));
        let send = Seconds::new(f64::from(send));
        let times = Times { send, ..Times::new(&forward, &backward, &[]) };
        let step = run(kind, &sizes, &times).step;
        prop_assert_eq!(step, unequal_gpipe(micro_batches, &forward, &backward, send));
    }
}

/// Qi's formula for ZB-H1 is wrong where W is longer than F or B.
#[test]
fn conditions_of_closed_forms_matter() {
    let kind = ScheduleKind::ZbH1;
    let sizes = Sizes { stages: 4, micro_batches: 12, chunks: 1, group: None };
    let [f, b, w] = [2.0, 2.0, 3.0].map(Seconds::new);
    assert_eq!(equal_stages(kind, &sizes, &Equal { forward: f, backward: b, weight: w }), None);
    let (forward, backward, weight) = ([f; 4], [b; 4], [w; 4]);
    let times = Times::new(&forward, &backward, &weight);
    let step = run(kind, &sizes, &times).step;
    let formula = (f + b) * 15.0 + w * 9.0;
    assert!(step > formula, "{step} {formula}");
}

/// With equal operations, ZBV leaves only the time until the last stage begins and its mirror.
#[test]
fn zbv_has_a_smaller_bubble_than_zb_h1() {
    let one = [Seconds::new(1.0); 8];
    let two = [Seconds::new(2.0); 4];
    let step = |kind, chunks, times: &[Seconds]| {
        let sizes = Sizes { stages: 4, micro_batches: 12, chunks, group: None };
        let times = Times::new(times, times, times);
        run(kind, &sizes, &times).step.get()
    };
    let (zbv, h1) = (step(ScheduleKind::Zbv, 2, &one), step(ScheduleKind::ZbH1, 1, &two));
    assert!(zbv < h1, "{zbv} {h1}");
    assert!((72.0..=72.0 + 6.0).contains(&zbv), "{zbv}");
}

/// DeepSeek's bubble of DualPipe on 2p ranks, and its activations.
#[test]
fn dual_pipe_has_the_published_bubble() {
    for (stages, micro_batches) in [(2, 4), (4, 8), (8, 20), (8, 60)] {
        let kind = ScheduleKind::DualPipeV;
        let sizes = Sizes { stages, micro_batches, chunks: 2, group: None };
        let orders = orders(kind, &sizes);
        let one = vec![Seconds::new(1.0); 2 * stages as usize];
        let step = execute(kind, &sizes, &orders, &Times::new(&one, &one, &one)).unwrap().step;
        let two = Seconds::new(2.0);
        let closed = equal_stages(kind, &sizes, &Equal { forward: two, backward: two, weight: two });
        assert_eq!(Some(step), closed);
        assert_eq!(step.get(), f64::from(6 * micro_batches + 2 * (stages - 1)));
        let most = orders.iter().map(|order| count_in_flight(order)).max();
        assert_eq!(most, Some(2 * u64::from(stages) + 1));
    }
}

const GOLDEN: &str = include_str!("../../../../../validation/transformer/pipeline.json");

fn times(value: &Value) -> Vec<Seconds> {
    let list = value.as_array().into_iter().flatten();
    list.map(|time| Seconds::new(time.as_f64().unwrap())).collect()
}

fn whole(times: &[Seconds]) -> Vec<Value> {
    times.iter().map(|time| Value::from(time.get() as u64)).collect()
}

/// "F3" or, with chunks, "F3.1".
fn written(operation: &Operation, chunks: u32) -> String {
    let kind = match operation.kind {
        PassKind::Forward => "F",
        PassKind::Backward => "B",
        PassKind::Weight => "W",
    };
    match chunks {
        1 => format!("{kind}{}", operation.micro_batch),
        _ => format!("{kind}{}.{}", operation.micro_batch, operation.chunk),
    }
}

#[test]
fn pipelines_are_the_golden_ones() {
    let cases = cases(GOLDEN);
    assert_eq!(cases.len(), 45);
    let (mut with_orders, mut with_closed_form, mut queued) = (0, 0, Vec::new());
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let kind: ScheduleKind = word(&case["schedule"]);
        let sizes = Sizes {
            stages: number(&case, "stages") as u32,
            micro_batches: number(&case, "micro_batches") as u32,
            chunks: number(&case, "chunks") as u32,
            group: case["group"].as_u64().map(|group| group as u32),
        };
        let (forward, backward, weight) =
            (times(&case["forward"]), times(&case["backward"]), times(&case["weight"]));
        let send = Seconds::new(case["p2p"].as_f64().unwrap());
        let sends = if case["p2p_mode"] == "async" { Sends::Asynchronous } else { Sends::Blocking };
        let of = Times { send, sends, ..Times::new(&forward, &backward, &weight) };
        let orders = orders(kind, &sizes);
        let timeline = execute(kind, &sizes, &orders, &of).unwrap();
        let expect = &case["expect"];
        if sends == Sends::Asynchronous && timeline.step.get() as u64 > number(expect, "step") {
            // The golden links carry any number of messages at once.
            queued.push(id.to_owned());
            continue;
        }
        assert_eq!(timeline.step.get() as u64, number(expect, "step"), "{id}: step");
        assert_eq!(expect["busy"], Value::from(whole(&timeline.busy)), "{id}: busy");
        let idle: Vec<Seconds> = (0..orders.len()).map(|stage| timeline.idle(stage)).collect();
        assert_eq!(expect["idle"], Value::from(whole(&idle)), "{id}: idle");
        near(timeline.bubble(), &expect["bubble_fraction"], id);
        let first: Vec<Seconds> = timeline.start.iter().map(|starts| starts[0]).collect();
        assert_eq!(expect["first_start"], Value::from(whole(&first)), "{id}: first start");
        assert_eq!(expect["last_end"], Value::from(whole(&timeline.last_end)), "{id}: last end");
        let peaks: Vec<u64> = orders.iter().map(|order| count_in_flight(order)).collect();
        assert_eq!(expect["peak_in_flight"], Value::from(peaks), "{id}: peak");
        if let Some(expected) = expect["order"].as_array() {
            with_orders += 1;
            for (stage, (order, starts)) in orders.iter().zip(&timeline.start).enumerate() {
                let order: Vec<String> =
                    order.iter().map(|operation| written(operation, sizes.chunks)).collect();
                assert_eq!(expected[stage], order.join(" "), "{id}: order of stage {stage}");
                assert_eq!(expect["start"][stage], Value::from(whole(starts)), "{id}: starts of {stage}");
            }
        }
        if let Some(expected) = expect["closed_form"].as_f64() {
            with_closed_form += 1;
            let of_stage = |times: &[Seconds]| {
                let first = times.first().copied().unwrap_or(Seconds::ZERO);
                first * f64::from(sizes.chunks)
            };
            let closed = match send > Seconds::ZERO {
                true => Some(unequal_gpipe(sizes.micro_batches, &forward, &backward, send)),
                false => {
                    let equal = Equal {
                        forward: of_stage(&forward),
                        backward: of_stage(&backward),
                        weight: of_stage(&weight),
                    };
                    equal_stages(kind, &sizes, &equal)
                }
            };
            let closed = closed.unwrap_or_else(|| panic!("{id}: no closed form"));
            assert!(
                (closed.get() - expected).abs() < 1e-9 * expected,
                "{id}: {closed} instead of {expected}"
            );
        }
    }
    assert!(queued.len() <= 2, "{queued:?}");
    assert_eq!(with_orders, 16);
    assert!(with_closed_form >= 20, "{with_closed_form}");
}
