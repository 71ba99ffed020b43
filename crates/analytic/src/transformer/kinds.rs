//! Kinds of layers: with a dense MLP or with experts, with a window or without, by what goes backward.

use std::ops::Range;
use stepcast_core::model::transformer::{Backward, Transformer};
use stepcast_core::strategy::{Recompute, Recomputed};

pub(super) const COUNT: usize = 12;

/// Layers that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerKind {
    pub with_experts: bool,
    /// Keys that a query sees.
    pub window: Option<u64>,
    /// What they compute in the backward pass.
    pub backward: Backward,
}

impl LayerKind {
    /// The same where `recompute` applies: with adapters, the input of the first layer then has a gradient, too
    /// (PEFT's `enable_input_require_grads`).
    #[must_use]
    pub fn recomputing(self, shape: &Transformer, recompute: Recomputed) -> Self {
        let whole =
            [Recompute::Mlp, Recompute::Operators, Recompute::Layer].iter().any(|part| recompute.has(*part));
        match self.backward {
            Backward::Own if whole && !shape.trains_matrices() => Self { backward: Backward::All, ..self },
            _ => self,
        }
    }

    /// What is computed again of such layers: nothing if they do not go backward.
    pub fn recomputes(self, recompute: Recomputed) -> Recomputed {
        if self.backward == Backward::Nothing { Recomputed::NONE } else { recompute }
    }
}

pub(super) fn each<T: Default>(shape: &Transformer, of: impl Fn(LayerKind) -> T) -> [T; COUNT] {
    let experts = shape.expert_layers();
    let tuning = shape.tuning;
    std::array::from_fn(|index| {
        let with_experts = index % 4 >= 2;
        let window = if index.is_multiple_of(2) { shape.window } else { None };
        let (backward, any) = match index / 4 {
            0 => (Backward::All, true),
            1 => (Backward::Own, tuning.frozen_embedding),
            _ => (Backward::Nothing, tuning.frozen_layers > 0),
        };
        let exists = if with_experts { experts > 0 } else { experts < shape.layers };
        if any && exists { of(LayerKind { with_experts, window, backward }) } else { T::default() }
    })
}

/// Layers of a range by kind: frozen layers come first, then the first that is trained; dense layers come before those with
/// experts, and every n-th layer has the window. Other patterns are counted layer by layer.
pub(super) fn count(shape: &Transformer, range: &Range<u64>) -> [u64; COUNT] {
    if shape.global_every > 0 || shape.experts.is_some_and(|experts| experts.every > 1) {
        let mut counts = [0; COUNT];
        let frozen = shape.tuning.frozen_layers;
        for layer in range.clone() {
            let backward = match layer {
                _ if layer < frozen => 2,
                _ if layer == frozen && shape.tuning.frozen_embedding => 1,
                _ => 0,
            };
            let plain = usize::from(shape.window_of(layer).is_none());
            counts[4 * backward + 2 * usize::from(shape.has_experts(layer)) + plain] += 1;
        }
        return counts;
    }
    let (dense, every) = (shape.layers - shape.expert_layers(), shape.window_every.max(1));
    let by_window = |first: u64, end: u64| {
        let windowed = end.div_ceil(every) - first.div_ceil(every);
        [windowed, end - first - windowed]
    };
    let frozen = shape.tuning.frozen_layers;
    let first = frozen + u64::from(shape.tuning.frozen_embedding);
    let cuts = [first, range.end, frozen, first, 0, frozen];
    let mut counts = [0; COUNT];
    for (index, count) in counts.chunks_exact_mut(4).enumerate() {
        let start = range.start.max(cuts[2 * index]).min(range.end);
        let end = range.end.min(cuts[2 * index + 1]).max(start);
        let [windowed, plain] = by_window(start.min(dense), end.min(dense));
        let [expert_windowed, expert_plain] = by_window(start.max(dense), end.max(dense));
        count.copy_from_slice(&[windowed, plain, expert_windowed, expert_plain]);
    }
    counts
}
