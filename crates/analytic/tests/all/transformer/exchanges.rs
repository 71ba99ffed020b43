//! Sharded units, outer gradients and unequal replicas, each against a slow twin or a closed form.

use proptest::prelude::*;
use std::collections::VecDeque;
use stepcast_analytic::transformer::outer::Outer;
use stepcast_analytic::transformer::unequal::balanced;
use stepcast_analytic::transformer::units::{Exchange, Unit, Units, passes};
use stepcast_core::quantity::{Bytes, Seconds};

fn unit(times: [u8; 4]) -> Unit {
    let [forward, backward, gather, reduce] = times.map(|time| Seconds::new(f64::from(time)));
    Unit { forward, backward, gather, reduce }
}

const BLOCKING: Exchange =
    Exchange { forward: true, backward: true, reduce: true, ahead: false, behind: false };
const OVERLAPPED: Exchange = Exchange { ahead: true, behind: true, ..BLOCKING };

/// Step by step: an exchange begins every I-th step when the link is free; its result is waited for and taken τ steps later.
fn walked(outer: &Outer, inner: f64, rounds: u64) -> f64 {
    let Outer { interval, delay, exchange, update, .. } = *outer;
    let (mut now, mut link, mut marks) = (0.0_f64, 0.0_f64, Vec::new());
    let mut under_way = VecDeque::new();
    for step in 0..rounds * interval {
        let begins = step % interval == 0;
        if begins && delay == 0 {
            link = link.max(now) + exchange.get();
            now = link + update.get();
        } else {
            if under_way.front().is_some_and(|(due, _)| *due == step)
                && let Some((_, end)) = under_way.pop_front()
            {
                now = now.max(end) + update.get();
            }
            if begins {
                link = link.max(now) + exchange.get();
                under_way.push_back((step + delay, link));
            }
        }
        if begins {
            marks.push(now);
        }
        now += inner;
    }
    let (half, last) = (marks.len() / 2, marks.len() - 1);
    (marks[last] - marks[half]) / (last - half) as f64 / interval as f64
}

proptest! {
    /// Blocking collectives add up; overlap hides some of them, and never more than the link or computing needs.
    #[test]
    fn overlap_saves_time_within_limits(times in prop::collection::vec(any::<[u8; 4]>(), 1..9)) {
        let units: Vec<Unit> = times.into_iter().map(unit).collect();
        let [_, blocking] = passes(&units, &BLOCKING);
        let [_, overlapped] = passes(&units, &OVERLAPPED);
        let sum = |of: fn(&Unit) -> Seconds| units.iter().map(|unit| of(unit).get()).sum::<f64>();
        let computing = sum(|unit| unit.forward) + sum(|unit| unit.backward);
        let sent = 2.0 * sum(|unit| unit.gather) + sum(|unit| unit.reduce);
        prop_assert!((blocking.get() - computing - sent).abs() < 1e-9);
        prop_assert!(overlapped <= blocking);
        prop_assert!(overlapped.get() >= computing.max(sent));
    }

    /// Computing loses a share of the traffic's time, and beside endless traffic goes on at the rest of its rate.
    #[test]
    fn computing_loses_while_it_lasts(times in any::<[u8; 4]>(), share in 0.0..0.9) {
        let Unit { forward, backward, gather, reduce } = unit(times);
        let units = Units { sent: [gather, reduce], count: 3, ahead: true, split: false };
        let lost = units.slows(share, [forward, backward]);
        for (computed, sent, lost) in [(forward, gather, lost[0]), (backward, gather + reduce, lost[1])] {
            let (whole, computed) = (share * 3.0 * sent.get(), computed.get());
            prop_assert!((lost.get() - whole.min(share * (computed + lost.get()))).abs() < 1e-9);
        }
    }

    /// Equal units. The last one has its weights when the backward pass begins.
    #[test]
    fn equal_units_have_a_closed_form(times in any::<[u8; 4]>(), count in 1_u32..9, ahead in any::<bool>()) {
        let unit = unit(times);
        let mut units = vec![unit; count as usize];
        let exchange = if ahead { OVERLAPPED } else { BLOCKING };
        let [there, _] = passes(&units, &exchange);
        if ahead {
            units.last_mut().unwrap().gather = Seconds::ZERO;
        }
        let [_, back] = passes(&units, &Exchange { forward: false, ..exchange });
        let n = f64::from(count);
        let computing = [unit.forward, unit.backward].map(|time| time * n);
        let units = Units { sent: [unit.gather, unit.reduce], count: u64::from(count), ahead, split: false };
        let shown = units.exposed([computing[0], computing[1], Seconds::ZERO]);
        prop_assert!((there - computing[0] - shown[0]).get().abs() < 1e-9);
        // The backward pass here begins after a forward pass without gathers.
        prop_assert!((back - computing[0] - computing[1] - shown[1]).get().abs() < 1e-9);
    }

    #[test]
    fn a_round_is_walked_step_by_step(
        interval in 1_u64..8, delay in 0_u64..20, times in any::<[u8; 3]>(),
    ) {
        let [inner, exchange, update] = times.map(|time| f64::from(time) + 1.0);
        let [exchange, update] = [exchange * 3.0, update * 0.1].map(Seconds::new);
        let (between, sent) = (exchange, Bytes::new(1.0));
        let outer = Outer { interval, fragments: 1, delay, exchange, update, between, sent };
        // A multiple of all numbers of laps, so that the mean is that of whole cycles.
        let (found, expected) = (walked(&outer, inner, 2 * 2 * 5040 + 1), outer.step(Seconds::new(inner)).get());
        prop_assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
    }

    /// Every division is tried.
    #[test]
    fn the_balance_is_the_best_division(
        replicas in [1_u64..9, 1_u64..9],
        m in 1_u64..40,
        costs in [(0.0..5.0_f64, 0.01..3.0_f64), (0.0..5.0_f64, 0.01..3.0_f64)],
    ) {
        let time = |kind: usize, m: u64| -> f64 { costs[kind].0 + costs[kind].1 * m as f64 };
        let all = m * (replicas[0] + replicas[1]);
        let others = |first: u64| {
            let left = all.checked_sub(first * replicas[0]).filter(|left| *left > 0)?;
            left.is_multiple_of(replicas[1]).then(|| time(0, first).max(time(1, left / replicas[1])))
        };
        let least = (1..=all).filter_map(others).fold(f64::INFINITY, f64::min);
        let (own, longer) = balanced(replicas, m, |kind, m| Some(time(kind, m))).unwrap();
        prop_assert_eq!(own[0] * replicas[0] + own[1] * replicas[1], all);
        prop_assert!((longer / least - 1.0).abs() < 1e-12, "{} instead of {}", longer, least);
    }
}
