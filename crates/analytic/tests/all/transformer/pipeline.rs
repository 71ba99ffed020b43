//! The golden pipelines: orders, start times, peaks.

use super::{cases, near, number};
use serde_json::Value;
use stepcast_analytic::transformer::schedules::{
    Kind, Operation, Sends, Sizes, Times, closed, count_in_flight, execute, orders,
};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

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
        Kind::Forward => "F",
        Kind::Backward => "B",
        Kind::Weight => "W",
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
    let (mut with_orders, mut with_closed_form) = (0, 0);
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let kind: ScheduleKind = super::word(&case["schedule"]);
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
        let of = Times {
            forward: &forward,
            backward: &backward,
            weight: &weight,
            ahead: &[],
            each: &[],
            issue: Seconds::ZERO,
            send,
            sends,
        };
        let orders = orders(kind, &sizes);
        let timeline = execute(kind, &sizes, &orders, &of).unwrap();
        let expect = &case["expect"];
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
                true => Some(closed::gpipe(sizes.micro_batches, &forward, &backward, send)),
                false => {
                    let equal = closed::Equal {
                        forward: of_stage(&forward),
                        backward: of_stage(&backward),
                        weight: of_stage(&weight),
                    };
                    closed::equal_stages(kind, &sizes, &equal)
                }
            };
            let closed = closed.unwrap_or_else(|| panic!("{id}: no closed form"));
            assert!(
                (closed.get() - expected).abs() < 1e-9 * expected,
                "{id}: {closed} instead of {expected}"
            );
        }
    }
    assert_eq!(with_orders, 16);
    assert!(with_closed_form >= 20, "{with_closed_form}");
}
