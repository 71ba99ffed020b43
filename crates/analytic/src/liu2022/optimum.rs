//! The best way to cut the gradients into messages.
//!
//! One all-reduce runs at a time and gradients travel in the order of the backward pass, so that a plan is a set of
//! cuts. When the channel is free again after the first i gradients, nothing else of the past matters, and later is
//! never better: the earliest time E(i) obeys
//!
//! ```text
//! E(0) = 0        E(i) = min over k < i of  max(E(k), ready(i)) + t(D(k+1) + … + D(i))
//! ```
//!
//! for any t. Exact; O(n²) evaluations of t.

use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::Pass;
use stepcast_core::quantity::{Bytes, Seconds};

/// How many gradients each message of the best plan has; of equally fast plans one with few messages.
pub fn optimum(pass: &Pass, update: &Curve) -> Vec<u32> {
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
    counts
}
