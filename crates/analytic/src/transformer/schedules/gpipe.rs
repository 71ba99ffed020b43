//! GPipe (Huang 2019): all forwards, then all backwards in the same order.

use super::{Operation, Order, PassKind, Sizes};

pub(super) fn order(sizes: &Sizes) -> Order {
    let all = |kind| (0..sizes.micro_batches).map(move |micro_batch| Operation::new(kind, micro_batch, 0));
    all(PassKind::Forward).chain(all(PassKind::Backward)).collect()
}
