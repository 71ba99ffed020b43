//! A layer as PyTorch computes it, operation by operation: what it keeps for the backward pass, and what it needs
//! while it goes backward.
//!
//! Every operation keeps its inputs, so that more is kept than by fused kernels: the output of the gate's non-linearity
//! (8f instead of 6f), queries and keys before and after their rotation, and, as rotated queries lie head by head, a
//! second copy of the attention output. Under autocast, what passes between layers is in 32 bits, and 16-bit copies of
//! matrices are kept.

use super::MemoryInputs;
use stepcast_core::model::transformer::{Mlp, NormKind};
use stepcast_core::strategy::{Attention, Recompute, States};

/// Memory in use while operations come and go, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    now: f64,
    pub(super) most: f64,
}

impl Use {
    pub(super) fn take(&mut self, bytes: f64) {
        self.now += bytes;
        self.most = self.most.max(self.now);
    }

    pub(super) fn free(&mut self, bytes: f64) {
        self.now -= bytes;
    }
}

/// Where gradients of weights go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gradients {
    /// They are kept.
    New,
    /// They are added to those of earlier micro-batches.
    Added,
}

/// One layer for one micro-batch on one rank; all figures in bytes, those of matrices in elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layer {
    /// What is computed again.
    pub(super) recompute: Recompute,
    autocast: bool,
    rotated: bool,
    gated: bool,
    /// What passes from layer to layer.
    pub(super) stream: f64,
    /// The same in 16 bits.
    hidden: f64,
    queries: f64,
    keys: f64,
    values: f64,
    attended: f64,
    /// Of the softmax: logarithms of sums, or scores.
    core: f64,
    inner: f64,
    /// Copies of the hidden states for experts, statistics of norms and masks.
    beside: f64,
    /// Parameters of the matrices: queries, keys and values; attention output; one of the MLP's.
    matrices: [f64; 3],
    mlp_matrices: f64,
    pub(super) parameters: f64,
}

/// Whether weights are held in 32 bits and cast for every step; sharded ones are gathered in 16 bits instead.
pub(super) fn is_autocast(held: &MemoryInputs<'_>) -> bool {
    held.states == States::Fp32 && held.sharding.stage() < 3
}

/// Elements of the embedding or of the output layer on one rank.
pub(super) fn vocabulary_matrix(held: &MemoryInputs<'_>) -> f64 {
    (held.shape.vocabulary * held.shape.hidden) as f64 / held.split.tensor as f64
}

/// The 16-bit copy of the output layer under autocast.
pub(super) fn output_copy(held: &MemoryInputs<'_>) -> f64 {
    if is_autocast(held) { 2.0 * vocabulary_matrix(held) } else { 0.0 }
}

impl Layer {
    pub(super) fn new(held: &MemoryInputs<'_>, with_experts: bool, recompute: Recompute) -> Self {
        let (shape, split) = (held.shape, held.split);
        let (t, h) = (split.tensor as f64, shape.hidden as f64);
        let (tokens, own) = (held.tokens(), held.tokens() / split.token_ranks() as f64);
        let autocast = is_autocast(held);
        let (key, value) = shape.widths();
        let kv_heads = if shape.mla.is_some() { shape.heads } else { shape.kv_heads };
        let kv_heads = kv_heads.max(split.tensor) as f64 / t;
        let heads = shape.heads as f64 / t;
        let core = match (held.attention, recompute) {
            (Attention::Flash | Attention::Cudnn, _) => 4.0 * heads,
            (Attention::Unfused, Recompute::Attention) => 0.0,
            (Attention::Unfused, _) => {
                let scores = if held.dropout { 5.0 } else { 2.0 };
                scores * heads * shape.sequence as f64
            }
        };
        let statistics = match shape.norm {
            NormKind::Layer | NormKind::LayerNoBias => 16.0,
            NormKind::Rms => 8.0,
        };
        let masks = if held.dropout { 2.0 * h } else { 0.0 };
        let parameters = shape.layer_parameters(with_experts);
        let dense = parameters.dense_shard(split.tensor, shape.kv_heads) as f64;
        let routed = parameters.expert_shard(split.expert) as f64;
        let mlp_matrices = shape.mlp.matrices() as f64;
        // A visit of an expert: hidden states sent there, sent back and weighted; index, weight and place. A token:
        // probabilities of all experts.
        let (inner, visits, matrix) = match shape.experts.filter(|_| with_experts) {
            Some(experts) => {
                let active = experts.active as f64;
                let visits = active * (6.0 * h + 18.0) + 4.0 * experts.count as f64;
                let shared = tokens * experts.shared_width as f64 / t;
                (shared + own * active * experts.width as f64, visits, routed / mlp_matrices)
            }
            None => {
                let width = shape.mlp_width as f64 / t;
                (tokens * width, 0.0, h * width)
            }
        };
        let input = heads * key as f64 + kv_heads * (key + value) as f64;
        Self {
            recompute,
            autocast,
            rotated: shape.positions == 0,
            gated: shape.mlp == Mlp::Swiglu,
            stream: own * h * if autocast { 4.0 } else { 2.0 },
            hidden: own * h * 2.0,
            queries: 2.0 * tokens * heads * key as f64,
            keys: 2.0 * tokens * kv_heads * key as f64,
            values: 2.0 * tokens * kv_heads * value as f64,
            attended: 2.0 * tokens * heads * value as f64,
            core: tokens * core,
            inner: 2.0 * inner,
            beside: own * (visits + statistics + masks),
            matrices: [h * input, h * heads * value as f64, matrix],
            mlp_matrices,
            parameters: dense + routed,
        }
    }

    /// What the forward pass keeps; `of` accounts for attention that is computed again.
    pub(super) fn kept(&self) -> f64 {
        match self.recompute {
            Recompute::None | Recompute::Attention => self.whole(),
            Recompute::Operators => {
                let attention = self.queries + self.values + self.attended + self.core;
                self.stream + attention + self.inner + self.hidden
            }
            Recompute::Mlp => self.whole() - self.within_mlp(),
            Recompute::Layer => self.stream,
        }
    }

    /// What the MLP keeps beside its input.
    fn within_mlp(&self) -> f64 {
        self.inner * if self.gated { 4.0 } else { 2.0 }
    }

    /// What the backward pass needs, with the 16-bit copies of matrices under autocast.
    pub(super) fn whole(&self) -> f64 {
        let rotated = if self.rotated { self.queries + self.keys + self.attended } else { 0.0 };
        let projected = self.queries + self.keys + self.values;
        let inner = self.within_mlp();
        let streams = 2.0 * self.stream + 2.0 * self.hidden;
        streams + projected + rotated + self.attended + self.core + inner + self.beside + self.copies()
    }

    /// 16-bit copies of matrices under autocast.
    pub(super) fn copies(&self) -> f64 {
        let [input, output, mlp] = self.matrices;
        if self.autocast { 2.0 * (input + output + mlp * self.mlp_matrices) } else { 0.0 }
    }

    /// Most that its backward pass needs beyond what it has kept and beyond the gradient of its output.
    pub(super) fn backward(&self, gradients: Gradients) -> f64 {
        let mut memory = Use::default();
        self.backward_of_mlp(&mut memory, gradients);
        self.backward_of_norm(&mut memory);
        self.backward_of_attention(&mut memory, gradients);
        self.backward_of_norm(&mut memory);
        let [input, output, mlp] = self.matrices;
        let matrices = input + output + mlp * self.mlp_matrices;
        if gradients == Gradients::New {
            memory.take((self.parameters - matrices).max(0.0) * self.width());
        }
        memory.most
    }

    /// Bytes of an element of a gradient.
    fn width(&self) -> f64 {
        if self.autocast { 4.0 } else { 2.0 }
    }

    /// A matrix: the gradient of its input and its own come, that of its output and its saved input go.
    fn matrix(&self, memory: &mut Use, parameters: f64, input: f64, gone: f64, gradients: Gradients) {
        memory.take(input);
        memory.take(2.0 * parameters);
        memory.free(gone);
        if self.autocast {
            memory.free(2.0 * parameters);
            memory.take(4.0 * parameters);
            memory.free(2.0 * parameters);
        }
        if gradients == Gradients::Added {
            memory.free(self.width() * parameters);
        }
    }

    /// The gradient of what passes between layers, as matrices take it.
    fn cast(&self, memory: &mut Use) -> f64 {
        if !self.autocast {
            return 0.0;
        }
        memory.take(self.hidden);
        self.hidden
    }

    fn backward_of_mlp(&self, memory: &mut Use, gradients: Gradients) {
        let (inner, [_, _, matrix]) = (self.inner, self.matrices);
        let cast = self.cast(memory);
        self.matrix(memory, matrix, inner, cast + inner, gradients);
        if self.gated {
            // The product: its gradient and both factors go when theirs have come; then the non-linearity.
            memory.take(2.0 * inner);
            memory.free(3.0 * inner);
            memory.take(inner);
            memory.free(2.0 * inner);
            self.matrix(memory, matrix, self.hidden, inner, gradients);
        } else {
            memory.take(inner);
            memory.free(2.0 * inner);
        }
        self.matrix(memory, matrix, self.hidden, inner + self.hidden, gradients);
        if self.gated {
            memory.take(self.hidden);
            memory.free(2.0 * self.hidden);
        }
    }

    fn backward_of_attention(&self, memory: &mut Use, gradients: Gradients) {
        let projected = self.queries + self.keys + self.values;
        let rotated = if self.rotated { self.queries + self.keys } else { 0.0 };
        let copy = if self.rotated { self.attended } else { 0.0 };
        let cast = self.cast(memory);
        self.matrix(memory, self.matrices[1], self.attended, cast + copy, gradients);
        // Flash attention sums the gradient of queries in 32 bits.
        let sums = 2.0 * self.queries;
        memory.take(projected + sums);
        memory.free(sums + 2.0 * self.attended + self.core + rotated);
        memory.take(rotated);
        memory.free(rotated);
        memory.take(projected);
        memory.free(2.0 * projected);
        self.matrix(memory, self.matrices[0], self.hidden, projected + self.hidden, gradients);
    }

    /// A norm and the sum with the gradient that passes by.
    fn backward_of_norm(&self, memory: &mut Use) {
        if self.autocast {
            memory.take(self.stream);
            memory.free(self.hidden);
        }
        memory.take(self.stream);
        memory.free(2.0 * self.stream);
        memory.take(self.stream);
        memory.free(2.0 * self.stream);
    }
}
