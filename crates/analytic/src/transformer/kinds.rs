//! Kinds of layers: by block, window and backward pass.

use std::ops::Range;
use stepcast_core::model::transformer::{Backward, Block, MOST_BLOCKS, Transformer};
use stepcast_core::strategy::{Recompute, Recomputed};

pub(super) const COUNT: usize = 3 * MOST_BLOCKS;

/// Layers that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerKind {
    pub block: Block,
    /// Keys that a query sees.
    pub window: Option<u64>,
    /// Gradients that they compute in the backward pass.
    pub backward: Backward,
}

impl LayerKind {
    /// The kind of these layers where `recompute` applies: with adapters, the input of the first layer then has a gradient, too
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

    /// The recomputation of such layers: none if they do not go backward.
    pub fn recomputes(self, recompute: Recomputed) -> Recomputed {
        if self.backward == Backward::Nothing { Recomputed::NONE } else { recompute }
    }
}

/// Blocks and windows that occur: dense layers with a window and without, then those with experts; of a pattern, its blocks.
fn varieties(shape: &Transformer) -> [Option<(Block, Option<u64>)>; MOST_BLOCKS] {
    let blocks = shape.blocks();
    match shape.pattern {
        Some(_) => blocks.map(|block| Some((block?, None))),
        None => {
            let [dense, experts, ..] = blocks;
            let of = |block: Option<Block>, window| Some((block?, window));
            [of(dense, shape.window), of(dense, None), of(experts, shape.window), of(experts, None)]
        }
    }
}

pub(super) fn each<T: Default>(shape: &Transformer, of: impl Fn(LayerKind) -> T) -> [T; COUNT] {
    let varieties = varieties(shape);
    let tuning = shape.tuning;
    std::array::from_fn(|index| {
        let (backward, any) = match index / MOST_BLOCKS {
            0 => (Backward::All, true),
            1 => (Backward::Own, tuning.frozen_embedding),
            _ => (Backward::Nothing, tuning.frozen_layers > 0),
        };
        match varieties[index % MOST_BLOCKS] {
            Some((block, window)) if any => of(LayerKind { block, window, backward }),
            _ => T::default(),
        }
    })
}

/// Layers of a range by kind: frozen layers come first, then the first that is trained. Unless they follow another pattern, dense
/// layers come before those with experts, and every n-th layer has the window.
pub(super) fn count(shape: &Transformer, range: &Range<u64>) -> [u64; COUNT] {
    let frozen = shape.tuning.frozen_layers;
    let first = frozen + u64::from(shape.tuning.frozen_embedding);
    let cuts = [first, range.end, frozen, first, 0, frozen];
    let mut counts = [0; COUNT];
    for (index, count) in counts.chunks_exact_mut(MOST_BLOCKS).enumerate() {
        let start = range.start.max(cuts[2 * index]).min(range.end);
        let end = range.end.min(cuts[2 * index + 1]).max(start);
        count.copy_from_slice(&count_varieties(shape, &(start..end)));
    }
    counts
}

fn count_varieties(shape: &Transformer, range: &Range<u64>) -> [u64; MOST_BLOCKS] {
    if shape.pattern.is_some() {
        return shape.count_blocks(range);
    }
    if shape.global_every > 0 || shape.experts.is_some_and(|experts| experts.every > 1) {
        let mut counts = [0; MOST_BLOCKS];
        for layer in range.clone() {
            let plain = usize::from(shape.window_of(layer).is_none());
            counts[2 * usize::from(shape.block(layer).has_experts()) + plain] += 1;
        }
        return counts;
    }
    let (dense, every) = (shape.layers - shape.expert_layers(), shape.window_every.max(1));
    let by_window = |first: u64, end: u64| {
        let windowed = end.div_ceil(every) - first.div_ceil(every);
        [windowed, end - first - windowed]
    };
    let [windowed, plain] = by_window(range.start.min(dense), range.end.min(dense));
    let [expert_windowed, expert_plain] = by_window(range.start.max(dense), range.end.max(dense));
    [windowed, plain, expert_windowed, expert_plain]
}
