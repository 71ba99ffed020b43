//! Looped breadth-first (Lamy-Poirier 2022; PyTorch's `ScheduleLoopedBFS`): all forwards chunk by chunk, then all
//! backwards in reverse.

use super::{Operation, Order, PassKind, Sizes};

pub(super) fn order(sizes: &Sizes) -> Order {
    let m = sizes.micro_batches;
    let forward =
        |chunk| (0..m).map(move |micro_batch| Operation::new(PassKind::Forward, micro_batch, chunk));
    let backward =
        |chunk| (0..m).rev().map(move |micro_batch| Operation::new(PassKind::Backward, micro_batch, chunk));
    (0..sizes.chunks).flat_map(forward).chain((0..sizes.chunks).rev().flat_map(backward)).collect()
}
