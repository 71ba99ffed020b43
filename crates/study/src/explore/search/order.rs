//! How step times depend on the values of an axis, and these in order.

use crate::explore::sweep::{Setting, Variants};
use stepcast_core::keys::Effect;

/// How the step time depends on the values of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Longer with larger values, which also mean more samples.
    Load,
    /// Longer with larger values.
    Slower,
    /// Shorter with larger values.
    Faster,
    /// Shorter with larger values, but more expensive.
    Servers,
    /// Values without an order.
    Category,
}

/// An axis with its values sorted in ascending order.
pub(super) struct Ordered {
    pub(super) kind: Kind,
    /// Position of the n-th smallest value on the axis; `None` if the axis is already sorted.
    pub(super) places: Option<Vec<u64>>,
}

fn kind(method: &str, setting: &Setting) -> (Kind, f64) {
    let Some(number) = setting.number() else { return (Kind::Category, 0.0) };
    match setting.effect() {
        Effect::Load => (Kind::Load, number),
        Effect::Delay => (Kind::Slower, number),
        Effect::Computing | Effect::Transfer => (Kind::Faster, number),
        Effect::Servers if method == "zeng2023" => (Kind::Servers, number),
        Effect::Servers | Effect::Choice | Effect::Exchange | Effect::Resolved => (Kind::Category, 0.0),
    }
}

pub(super) fn ordered(variants: &Variants<'_>, method: &str, axis: usize) -> Ordered {
    let category = Ordered { kind: Kind::Category, places: None };
    let Some(first) = variants.setting(axis, 0) else { return category };
    let (kind_of_first, _) = kind(method, &first);
    let length = variants.grid().lengths()[axis];
    if variants.axes()[axis].values.number(0).is_some() || kind_of_first == Kind::Category {
        return Ordered { kind: kind_of_first, places: None };
    }
    let sized: Option<Vec<(f64, u64)>> = (0..length)
        .map(|place| {
            let (kind, size) = kind(method, &variants.setting(axis, place)?);
            (kind == kind_of_first).then_some((size, place))
        })
        .collect();
    let Some(mut sized) = sized else { return category };
    sized.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    Ordered { kind: kind_of_first, places: Some(sized.into_iter().map(|(_, place)| place).collect()) }
}
