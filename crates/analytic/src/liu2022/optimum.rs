//! The optimal fusion of gradients into messages.
//!
//! All-reduces run one at a time and gradients are sent in backward order, so a plan is a set of cuts. The time at
//! which the channel becomes free after the first i gradients is all that matters for the rest of the plan, and an
//! earlier time is never worse. The earliest time E(i) satisfies
//!
//! ```text
//! E(0) = 0        E(i) = min over k < i of  max(E(k), ready(i)) + t(D(k+1) + … + D(i))
//! ```
//!
//! for any t. The result is exact and takes O(n²) evaluations of t.

use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{CancelCheck, never_cancelled};
use stepcast_core::pass::Pass;
use stepcast_core::quantity::{Bytes, Seconds};

/// Number of gradients in each message of the best plan; among equally fast plans, one with few messages.
pub fn optimum(pass: &Pass, update: &Curve) -> Vec<u32> {
    optimum_while(pass, update, &never_cancelled).unwrap_or_default()
}

/// As [`optimum`]; none if `wanted`, which is asked at every gradient, breaks off.
pub fn optimum_while(pass: &Pass, update: &Curve, wanted: &CancelCheck<'_>) -> Option<Vec<u32>> {
    let mut ready = vec![Seconds::ZERO];
    let mut sent = vec![Bytes::ZERO];
    let mut now = Seconds::ZERO;
    for (index, layer) in pass.layers.iter().enumerate() {
        if index > 0 {
            now += layer.backward;
        }
        if layer.gradients > Bytes::ZERO {
            let before = sent.last().copied().unwrap_or(Bytes::ZERO);
            sent.push(before + layer.gradients);
            ready.push(now);
        }
    }
    let mut best = vec![(Seconds::ZERO, 0u32, 0usize)];
    for i in 1..ready.len() {
        if wanted().is_break() {
            return None;
        }
        let mut chosen = (Seconds::new(f64::INFINITY), u32::MAX, 0);
        for (k, &(free, messages, _)) in best.iter().enumerate() {
            let end = free.max(ready[i]) + update.time(sent[i] - sent[k]);
            if (end, messages + 1) < (chosen.0, chosen.1) {
                chosen = (end, messages + 1, k);
            }
        }
        best.push(chosen);
    }
    let mut counts = Vec::new();
    let mut i = ready.len() - 1;
    while i > 0 {
        let k = best[i].2;
        counts.push((i - k) as u32);
        i = k;
    }
    counts.reverse();
    Some(counts)
}
