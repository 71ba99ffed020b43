//! When stages ask for what they need, if a plan of all stages says so.
//!
//! PyTorch goes through the orders of all stages in turn, one operation of each, and notes a receive on its stage when it
//! comes to the operation that sends (`_add_send_recv` of `torch.distributed.pipelining`).

use super::{Operation, Order, PassKind, Sizes, place_of, stage_of};
use stepcast_core::strategy::ScheduleKind;

/// For every operation of every stage, the number of the stage's operations before which it asks for what this one
/// waits for; nothing is asked for where an operation waits for its own stage.
pub(super) fn asked_after(kind: ScheduleKind, sizes: &Sizes, orders: &[Order]) -> Vec<Vec<usize>> {
    let (stages, m) = (orders.len(), sizes.micro_batches as usize);
    let places = stages * sizes.chunks as usize;
    let place = |stage: usize, operation: &Operation| {
        place_of(kind, stages as u32, stage as u32, operation.chunk) as usize
    };
    let slot = |place: usize, operation: &Operation| place * m + operation.micro_batch as usize;
    // Operations of a stage that precede the receive, by the virtual stage and micro-batch that sends.
    let mut forward = vec![None; places * m];
    let mut backward = vec![None; places * m];
    let mut next = vec![0; stages];
    let mut asked: Vec<Vec<usize>> = orders.iter().map(|order| vec![0; order.len()]).collect();
    loop {
        let mut moved = false;
        for stage in 0..stages {
            let Some(operation) = orders[stage].get(next[stage]) else { continue };
            let here = place(stage, operation);
            // What it waits for, by the virtual stage that gives it.
            let source = match operation.kind {
                PassKind::Forward => here.checked_sub(1).map(|from| forward[slot(from, operation)]),
                PassKind::Backward if here + 1 < places => Some(backward[slot(here + 1, operation)]),
                PassKind::Backward | PassKind::Weight => None,
            };
            match source {
                Some(None) => continue,
                Some(Some(after)) => asked[stage][next[stage]] = after,
                None => {}
            }
            next[stage] += 1;
            moved = true;
            let (sent, to) = match operation.kind {
                PassKind::Forward => (&mut forward, Some(here + 1).filter(|&to| to < places)),
                PassKind::Backward => (&mut backward, here.checked_sub(1)),
                PassKind::Weight => continue,
            };
            if let Some(to) = to {
                let receiver = stage_of(kind, stages as u64, to as u64) as usize;
                sent[slot(here, operation)] = Some(next[receiver]);
            }
        }
        if !moved {
            return asked;
        }
    }
}
