//! The recursions of eqs. 8 and 12-17, and those of the fusion rules of frameworks.
//!
//! Time 0 is the end of the backward pass of layer n, which produces the first gradients. All-reduces run one at a
//! time, in the order of the backward pass.

use super::{Flush, Mean, Outcome, Plan};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{CancelCheck, never_cancelled};
use stepcast_core::pass::{Layer, Pass};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{BufferReading, Fusion};

/// Phase of a single step: the first gradients are ready in the middle of one of Horovod's cycles.
const MIDDLE: f64 = 0.5;

/// Phases of Horovod's cycles over which a mean step is taken.
const PHASES: u32 = 32;

/// The times of one step. Does not allocate.
pub fn osf(pass: &Pass, update: &Curve, fusion: &Fusion) -> Outcome {
    run(pass, update, fusion, MIDDLE, |_| ())
}

/// The times of one step and all its messages.
pub fn plan(pass: &Pass, update: &Curve, fusion: &Fusion) -> Plan {
    plan_at(pass, update, fusion, MIDDLE)
}

/// The times of a mean step. Horovod's cycles go on from step to step, so any phase between them and the backward pass
/// is equally likely; a single phase makes steps of almost equal length wait for almost no time or for a whole cycle.
/// For all other schedules every step is the same.
pub fn mean(pass: &Pass, update: &Curve, fusion: &Fusion) -> Mean {
    let Fusion::Horovod { cycle, .. } = fusion else {
        return Mean::from_plan(&plan(pass, update, fusion));
    };
    if *cycle <= Seconds::ZERO {
        return Mean::from_plan(&plan(pass, update, fusion));
    }
    let share = 1.0 / f64::from(PHASES);
    let at =
        |phase: u32| Mean::from_plan(&plan_at(pass, update, fusion, (f64::from(phase) + MIDDLE) * share));
    (1..PHASES).fold(at(0), |sum, phase| sum.plus(&at(phase))).times(share)
}

fn plan_at(pass: &Pass, update: &Curve, fusion: &Fusion, phase: f64) -> Plan {
    let mut flushes = Vec::new();
    let outcome = run(pass, update, fusion, phase, |flush| flushes.push(flush));
    Plan { flushes, outcome }
}

/// Runs through the backward pass once and passes every message to `sink`. The first gradients are ready when `phase`
/// of one of Horovod's cycles has passed.
fn run(pass: &Pass, update: &Curve, fusion: &Fusion, phase: f64, mut sink: impl FnMut(Flush)) -> Outcome {
    let mut channel = Channel { free: Seconds::ZERO, update };
    match *fusion {
        Fusion::Horovod { threshold, cycle, negotiation } => {
            let begun = cycle * -phase;
            in_cycles(pass, &mut channel, threshold, (begun, cycle), negotiation, &mut sink);
        }
        _ => in_order(pass, &mut channel, fusion, &mut sink),
    }
    // Final layers without gradients still have to be computed, so T_update is never below T_overlap.
    let overlap = pass.overlap();
    let computing = pass.computing();
    Outcome { computing, update: channel.free.max(overlap), overlap, after: pass.update }
}

/// A channel that runs one all-reduce at a time.
struct Channel<'a> {
    free: Seconds,
    update: &'a Curve,
}

impl Channel<'_> {
    fn send(&mut self, mut flush: Flush) -> Flush {
        flush.end = flush.start + self.update.time(flush.size);
        self.free = flush.end;
        flush
    }
}

/// A buffer that is being filled.
#[derive(Clone, Copy)]
struct Filling {
    size: Bytes,
    /// Number of gradients in the buffer.
    tensors: u32,
    /// Number of messages sent before it.
    number: usize,
}

fn in_order(pass: &Pass, channel: &mut Channel<'_>, fusion: &Fusion, sink: &mut impl FnMut(Flush)) {
    let mut ready = Seconds::ZERO;
    let mut since = Seconds::ZERO;
    let mut first = 0;
    let mut buffer = Filling { size: Bytes::ZERO, tensors: 0, number: 0 };
    for (index, layer) in pass.layers.iter().enumerate() {
        if index > 0 {
            ready += layer.backward;
        }
        if layer.gradients > Bytes::ZERO {
            if buffer.tensors == 0 {
                since = ready;
            }
            buffer.size += layer.gradients;
            buffer.tensors += 1;
        }
        let wait = match pass.layers.get(index + 1) {
            Some(next) => match wait(fusion, channel.update, buffer, layer, next) {
                Some(wait) => wait,
                None => continue,
            },
            None => Seconds::ZERO,
        };
        if buffer.tensors > 0 {
            let start = match fusion {
                Fusion::Buffer { reading: BufferReading::Serial, .. } => channel.free.max(ready) + wait,
                _ => channel.free.max(ready + wait),
            };
            let size = buffer.size;
            let negotiation = Seconds::ZERO;
            sink(channel.send(Flush {
                first,
                last: index,
                size,
                since,
                ready,
                wait,
                negotiation,
                start,
                end: start,
            }));
            buffer = Filling { size: Bytes::ZERO, tensors: 0, number: buffer.number + 1 };
        }
        first = index + 1;
    }
}

/// Horovod's loop. When idle, it starts a cycle every `cycle`; the last one before the first gradients started at
/// `begun`.
fn in_cycles(
    pass: &Pass,
    channel: &mut Channel<'_>,
    threshold: Bytes,
    (begun, cycle): (Seconds, Seconds),
    negotiation: Seconds,
    sink: &mut impl FnMut(Flush),
) {
    let mut tick = begun;
    let mut upcoming = ready_times(pass).peekable();
    while let Some(&(_, first_ready, _)) = upcoming.peek() {
        tick = (tick + cycle).max(channel.free);
        if first_ready > tick && cycle > Seconds::ZERO {
            tick += cycle * ((first_ready - tick) / cycle).ceil();
        }
        tick = tick.max(first_ready);
        let mut negotiation = negotiation;
        let mut start = tick + negotiation;
        while let Some((first, since, mut size)) = upcoming.next_if(|(_, ready, _)| *ready <= tick) {
            let (mut last, mut ready) = (first, since);
            while let Some((index, time, gradients)) =
                upcoming.next_if(|(_, time, gradients)| *time <= tick && size + *gradients <= threshold)
            {
                (last, ready) = (index, time);
                size += gradients;
            }
            let wait = start - negotiation - ready;
            sink(channel.send(Flush {
                first,
                last,
                size,
                since,
                ready,
                wait,
                negotiation,
                start,
                end: start,
            }));
            start = channel.free;
            negotiation = Seconds::ZERO;
        }
    }
}

/// Index, ready time and size of every gradient.
fn ready_times(pass: &Pass) -> impl Iterator<Item = (usize, Seconds, Bytes)> {
    let ready = pass.layers.iter().enumerate().scan(Seconds::ZERO, |ready, (index, layer)| {
        if index > 0 {
            *ready += layer.backward;
        }
        Some((index, *ready, layer.gradients))
    });
    ready.filter(|(_, _, gradients)| *gradients > Bytes::ZERO)
}

/// How long a buffer that has just received the gradients of `layer` waits before it is sent, or `None` if it stays open
/// for the gradients of `next`.
///
/// MG-WFBP, as section 4.2 of the paper describes it: layer i waits for the next layer in the backward pass if that layer
/// takes less time than t_update(D(i)) and one more start of an all-reduce. adaFusion (eq. 17) fuses layers if that saves
/// more time than the wait costs. Layer i joins the buffer B if
///
/// ```text
/// t_update(B + D(i)) + t_backward(i) < t_update(B) + t_update(D(i))
/// ```
///
/// The paper prints t_wait(i), the wait of layer i for the layer after it, but the cost of fusing i is the wait of the
/// buffer for i (errata 4.3). The decision is made ahead from the model, so a layer that is not fused causes no wait.
fn wait(fusion: &Fusion, update: &Curve, buffer: Filling, layer: &Layer, next: &Layer) -> Option<Seconds> {
    let unless = |joins: bool| (!joins).then_some(Seconds::ZERO);
    match fusion {
        Fusion::None | Fusion::Horovod { .. } => Some(Seconds::ZERO),
        Fusion::All => None,
        Fusion::Buffer { size, timeout, .. } => match *timeout {
            // The timeout is compared with the backward time of the next layer, and equality counts as a timeout
            // in all of eqs. 12, 13 and 14 (errata 4.2, 1 and 2; the printed equations lose bytes otherwise).
            Some(timeout) if next.backward >= timeout => Some(timeout),
            // The scheduler learns that the next layer does not fit only once its gradients are ready (errata
            // 4.2, 6).
            _ if buffer.size + next.gradients > *size => Some(next.backward),
            _ => None,
        },
        Fusion::Adaptive => {
            let together = update.time(buffer.size + next.gradients) + next.backward;
            unless(together < update.time(buffer.size) + update.time(next.gradients))
        }
        Fusion::MgWfbp => unless(next.backward < update.time(layer.gradients) + update.startup()),
        Fusion::Pytorch { first, cap } => {
            unless(buffer.size < if buffer.number == 0 { *first } else { *cap })
        }
        Fusion::Buckets(counts) => unless(buffer.tensors < counts.get(buffer.number).copied().unwrap_or(1)),
    }
}

// The optimal fusion of gradients into messages.
//
// All-reduces run one at a time and gradients are sent in backward order, so a plan is a set of cuts. The time at
// which the channel becomes free after the first i gradients is all that matters for the rest of the plan, and an
// earlier time is never worse. The earliest time E(i) satisfies
//
// ```text
// E(0) = 0        E(i) = min over k < i of  max(E(k), ready(i)) + t(D(k+1) + … + D(i))
// ```
//
// for any t. The result is exact and takes O(n²) evaluations of t.

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
