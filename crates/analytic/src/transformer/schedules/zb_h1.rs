//! ZB-H1 (Qi 2023): 1F1B with a split backward; stage r keeps r gradients of weights for the end, where the others
//! wait.

use super::{Order, Sizes, one_f_one_b, split};

pub(super) fn order(sizes: &Sizes, stage: u32) -> Order {
    split::backward(one_f_one_b::order(sizes, stage), stage)
}
