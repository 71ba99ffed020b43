//! Kinds of layers: with a dense MLP or with experts, with a window or without.

use std::ops::Range;
use stepcast_core::model::transformer::Transformer;

/// Number of kinds.
pub(super) const COUNT: usize = 4;

/// What `of` makes of every kind of layers that a shape has, by whether they have experts and by their window.
pub(super) fn each<T: Default>(shape: &Transformer, of: impl Fn(bool, Option<u64>) -> T) -> [T; COUNT] {
    let experts = shape.expert_layers();
    [(false, shape.window), (false, None), (true, shape.window), (true, None)].map(
        |(with_experts, window)| {
            let exists = if with_experts { experts > 0 } else { experts < shape.layers };
            if exists { of(with_experts, window) } else { T::default() }
        },
    )
}

/// Layers of a range by kind: dense layers come first, and every n-th layer has the window.
pub(super) fn count(shape: &Transformer, range: &Range<u64>) -> [u64; COUNT] {
    let (dense, every) = (shape.layers - shape.expert_layers(), shape.window_every.max(1));
    let by_window = |first: u64, end: u64| {
        let windowed = end.div_ceil(every) - first.div_ceil(every);
        [windowed, end - first - windowed]
    };
    let [windowed, plain] = by_window(range.start.min(dense), range.end.min(dense));
    let [expert_windowed, expert_plain] = by_window(range.start.max(dense), range.end.max(dense));
    [windowed, plain, expert_windowed, expert_plain]
}
