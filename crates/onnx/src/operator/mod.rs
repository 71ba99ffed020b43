//! The rules of operators: shapes, small contents and work of their outputs. One file for each family.
//!
//! Work is counted as in `stepcast_core::model`: a multiply-add is two operations; what is not a product or a
//! convolution is counted by kind, for each element as `Activation::operations` and `Norm::operations` have it.

mod arithmetic;
mod attention;
mod call;
mod constant;
mod convolution;
mod elementwise;
mod movement;
mod normalisation;
mod pooling;
mod product;
mod recurrent;
mod reduction;
mod resize;
mod select;

pub(crate) use attention::{Heads, heads as attention_heads};
pub(crate) use call::{Call, Kind, Made, Stop, Work};
pub(crate) use convolution::Windows;
pub(crate) use reduction::axes as reduced_axes;

use call::Rule;

/// The rule of a standard operator; none for operators that are not known.
pub(crate) fn rule(op: &str) -> Option<Rule> {
    constant::rule(op)
        .or_else(|| movement::rule(op))
        .or_else(|| select::rule(op))
        .or_else(|| elementwise::rule(op))
        .or_else(|| product::rule(op))
        .or_else(|| convolution::rule(op))
        .or_else(|| pooling::rule(op))
        .or_else(|| normalisation::rule(op))
        .or_else(|| reduction::rule(op))
        .or_else(|| resize::rule(op))
        .or_else(|| recurrent::rule(op))
        .or_else(|| attention::rule(op))
}

/// Whether the output holds elements of the first input, in whatever order, and nothing is computed.
pub(crate) fn only_moves(op: &str) -> bool {
    movement::rule(op).is_some() || select::rule(op).is_some()
}
