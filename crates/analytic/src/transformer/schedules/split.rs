//! A split backward: where the gradients of weights go.

use super::{Operation, Order, PassKind};
use std::collections::VecDeque;

/// The order with gradients of weights apart: after a backward, the oldest of them runs if more than `waiting` wait;
/// the rest run at the end.
pub(super) fn backward(order: Order, waiting: u32) -> Order {
    let mut split = Order::with_capacity(order.len() * 3 / 2);
    let mut queue = VecDeque::new();
    for operation in order {
        split.push(operation);
        if operation.kind == PassKind::Backward {
            queue.push_back(Operation { kind: PassKind::Weight, ..operation });
            if queue.len() > waiting as usize {
                split.extend(queue.pop_front());
            }
        }
    }
    split.extend(queue);
    split
}
