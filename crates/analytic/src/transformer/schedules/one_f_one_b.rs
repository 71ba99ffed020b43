//! 1F1B (Narayanan 2019): as many forwards as there are stages behind, then one forward and one backward in turn.

use super::{Operation, Order, PassKind, Sizes};

pub(super) fn order(sizes: &Sizes, stage: u32) -> Order {
    let m = sizes.micro_batches;
    let ahead = (sizes.stages - 1 - stage).min(m);
    let forward = |micro_batch| Operation::new(PassKind::Forward, micro_batch, 0);
    let mut order: Order = (0..ahead).map(forward).collect();
    for micro_batch in 0..m {
        order.extend(Some(ahead + micro_batch).filter(|&next| next < m).map(forward));
        order.push(Operation::new(PassKind::Backward, micro_batch, 0));
    }
    order
}
