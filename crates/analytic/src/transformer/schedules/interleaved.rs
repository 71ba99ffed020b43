//! Interleaved 1F1B (Narayanan 2021): every stage has several chunks of layers.
//!
//! Forwards go group by group of micro-batches, chunk by chunk, micro-batch by micro-batch; backwards follow the same
//! list with the chunks in reverse.

use super::{Operation, Order, PassKind, Sizes, split};

/// All (micro-batch, chunk) in the order of their forwards.
fn list(sizes: &Sizes) -> Vec<(u32, u32)> {
    let (m, group) = (sizes.micro_batches, sizes.group.unwrap_or(sizes.stages).max(1));
    let mut list = Vec::with_capacity(m as usize * sizes.chunks as usize);
    for first in (0..m).step_by(group as usize) {
        let end = first.saturating_add(group).min(m);
        for chunk in 0..sizes.chunks {
            list.extend((first..end).map(|micro_batch| (micro_batch, chunk)));
        }
    }
    list
}

pub(super) fn order(sizes: &Sizes, stage: u32) -> Order {
    let list = list(sizes);
    let group = sizes.group.unwrap_or(sizes.stages);
    let ahead = 2 * (sizes.stages - 1 - stage) + (sizes.chunks - 1) * group;
    let ahead = (ahead as usize).min(list.len());
    let forward = |&(micro_batch, chunk): &(u32, u32)| Operation::new(PassKind::Forward, micro_batch, chunk);
    let (first, rest) = list.split_at(ahead);
    let mut order: Order = first.iter().map(forward).collect();
    let mut rest = rest.iter().map(forward);
    for &(micro_batch, chunk) in &list {
        order.extend(rest.next());
        order.push(Operation::new(PassKind::Backward, micro_batch, sizes.chunks - 1 - chunk));
    }
    order
}

/// The same with a split backward (PyTorch's `ScheduleInterleavedZeroBubble`).
pub(super) fn zero_bubble(sizes: &Sizes, stage: u32) -> Order {
    split::backward(order(sizes, stage), stage)
}
