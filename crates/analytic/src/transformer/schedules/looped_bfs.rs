//! Looped breadth-first (Lamy-Poirier 2022; PyTorch's `ScheduleLoopedBFS`): all forwards chunk by chunk, then all
//! backwards in reverse.

use super::{Kind, Operation, Order, Sizes};

pub(super) fn order(sizes: &Sizes) -> Order {
    let m = sizes.micro_batches;
    let forward = |chunk| (0..m).map(move |micro_batch| Operation::new(Kind::Forward, micro_batch, chunk));
    let backward =
        |chunk| (0..m).rev().map(move |micro_batch| Operation::new(Kind::Backward, micro_batch, chunk));
    (0..sizes.chunks).flat_map(forward).chain((0..sizes.chunks).rev().flat_map(backward)).collect()
}
