//! ZBV (Qi 2024; PyTorch's `ScheduleZBVZeroBubble`): two chunks on each stage, the first in the order of stages, the
//! second back; the backward is split.
//!
//! The pattern is made for at least 2p−1 micro-batches; with fewer, the operations of the missing ones are left out.

use super::{Operation, Order, PassKind, Sizes};

/// An order under construction, with the next micro-batch of every kind and chunk.
struct Pattern {
    order: Order,
    next: [[u32; 2]; 3],
}

impl Pattern {
    fn push(&mut self, kind: PassKind, chunk: usize) {
        let next = &mut self.next[kind as usize][chunk];
        self.order.push(Operation::new(kind, *next, chunk as u32));
        *next += 1;
    }

    fn done(&self, kind: PassKind, chunk: usize) -> u32 {
        self.next[kind as usize][chunk]
    }
}

pub(super) fn order(sizes: &Sizes, stage: u32) -> Order {
    use PassKind::{Backward, Forward, Weight};
    let p = sizes.stages;
    let m = sizes.micro_batches.max(2 * p - 1);
    let mut it = Pattern { order: Order::new(), next: [[0; 2]; 3] };
    for _ in 0..2 * (p - stage) - 1 {
        it.push(Forward, 0);
    }
    for _ in 0..stage {
        it.push(Forward, 1);
        it.push(Forward, 0);
    }
    for _ in 0..p - stage {
        it.push(Forward, 1);
        it.push(Backward, 1);
        it.push(Weight, 1);
    }
    while it.done(Forward, 1) < it.done(Forward, 0) || it.done(Forward, 0) < m {
        if it.done(Forward, 0) < m {
            it.push(Forward, 0);
        }
        it.push(Backward, 0);
        it.push(Weight, 0);
        it.push(Forward, 1);
        it.push(Backward, 1);
        it.push(Weight, 1);
    }
    for _ in 0..stage {
        it.push(Backward, 0);
        it.push(Backward, 1);
    }
    for _ in 0..p - stage {
        it.push(Backward, 0);
        it.push(Weight, 0);
    }
    while it.done(Weight, 1) < it.done(Backward, 1) {
        it.push(Weight, 1);
    }
    while it.done(Weight, 0) < it.done(Backward, 0) {
        it.push(Weight, 0);
    }
    it.order.retain(|operation| operation.micro_batch < sizes.micro_batches);
    it.order
}
