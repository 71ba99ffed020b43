//! A layer as PyTorch computes it, operation by operation: tensors kept for the backward pass, and memory needed during
//! the backward pass.
//!
//! Every operation keeps its inputs, so that more is kept than by fused kernels: the output of the gate's non-linearity
//! (8f instead of 6f), queries and keys before and after their rotation, and, as rotated queries lie head by head, a
//! second copy of the attention output. Under autocast, hidden states between layers are in 32 bits, and 16-bit copies of
//! matrices are kept.
//!
//! Tensors kept by models of Hugging Face were read from allocations of PyTorch 2.11 and transformers 5.17 at the peak of steps of
//! sixteen models: root mean squares keep their input in 32 bits and their result before the weights; autocast casts the
//! input of every matrix by itself, and leaves experts in 32 bits; queries and keys are not kept before their rotation, and
//! attention lies token by token, unless one matrix computes queries, keys and values. With Liger's kernels, norms keep their input
//! as it is, and gated MLPs gate and factor alone.

use super::widths::{is_autocast, norm_width, stream_width};
use super::{LayerKind, MemoryInputs};
use stepcast_core::model::transformer::{
    Backward, FeedForward, Mixer, Mlp, Modules, NormKind, Packing, Target,
};
use stepcast_core::strategy::{Attention, Implementation, Recompute, Recomputed};

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
    /// The recomputed parts.
    pub(super) recompute: Recomputed,
    autocast: bool,
    /// Whether queries and keys are kept before their rotation, too, which lays them out head by head.
    rotated: bool,
    /// Whether attention lies head by head, so that its output is copied.
    by_heads: bool,
    gated: bool,
    /// Tensors of the inner width that are kept beside the input of the last matrix.
    within: f64,
    /// Hidden states that pass from layer to layer.
    pub(super) stream: f64,
    /// How many copies of them a recomputed layer keeps: two for adapters beside sharded weights (Accelerate's FSDP; validation
    /// set `tuning`).
    inputs_kept: f64,
    /// Whether it has a mixer, and whether it has a feed-forward: 1 or 0.
    halves: [f64; 2],
    /// Bytes that the norms of a half keep.
    norms: f64,
    /// Bytes that scales, shifts and gates keep in a half: its normalised input, and its output.
    modulated: f64,
    /// These hidden states in 16 bits.
    hidden: f64,
    /// Copies of them for matrices: of queries, keys and values; of the MLP.
    casts: [f64; 2],
    queries: f64,
    keys: f64,
    values: f64,
    /// Keys and values repeated for all heads, and the originals.
    repeated: f64,
    attended: f64,
    /// Temporary memory of the backward pass of attention.
    sums: f64,
    /// Kept by the softmax: logarithms of sums, or scores.
    core: f64,
    inner: f64,
    /// Copies of the hidden states for experts, statistics of norms and masks.
    beside: f64,
    /// Parameters of the matrices: queries, keys and values; attention output; one of the MLP's.
    matrices: [f64; 3],
    /// The 16-bit copy of the matrix of a condition.
    modulation: f64,
    /// Parameters of the MLP that autocast copies.
    mlp_copies: f64,
    /// Parameters that are trained, all of them and those outside of the matrices.
    pub(super) trained: f64,
    outside: f64,
    /// Which inputs are kept for gradients of weights: of queries, keys and values; of the attention output; of the MLP;
    /// of its last matrix.
    inputs: [bool; 4],
    /// Whether the input of the layer has a gradient.
    of_input: bool,
    /// The adapters of the layer, if it has any.
    adapters: Option<AdapterMemory>,
    /// The largest matrix in 16 bits, where matrices are stored in fewer.
    expanded: f64,
}

/// Adapters of a layer.
#[derive(Debug, Clone, Copy)]
struct AdapterMemory {
    /// Narrow hidden states of one adapter.
    narrow: f64,
    /// How many adapters are among queries, keys and values; on the attention output; on gate and way up; on the way back.
    count: [f64; 4],
    /// Bytes of the gradients of one adapter's weights.
    gradient: f64,
    /// Masks and results of dropout, for each adapter of the hidden width.
    dropped: f64,
}

impl Layer {
    pub(super) fn new(held: &MemoryInputs<'_>, kind: LayerKind, recompute: Recomputed) -> Self {
        let LayerKind { block, backward, .. } = kind.recomputing(held.shape, recompute);
        let with_experts = block.has_experts();
        let (shape, split) = (held.shape, held.split());
        let (t, h) = (split.tensor as f64, shape.hidden as f64);
        let tokens = held.tokens_of(block);
        let own = tokens / split.token_ranks() as f64;
        let key_tokens = match block.mixer {
            Mixer::Cross => held.tokens(),
            _ => tokens,
        };
        let autocast = is_autocast(held);
        let (key, value) = shape.widths();
        let kv_heads = if shape.mla.is_some() { shape.heads } else { shape.kv_heads };
        let kv_heads = kv_heads.max(split.tensor) as f64 / t;
        let heads = shape.heads as f64 / t;
        let keys_seen = if shape.target > 0 { shape.keys_of(block) } else { held.sequence() } as f64;
        let hugging_face = held.plan.implemented_by().is_hugging_face();
        let modules = if hugging_face { shape.modules } else { Modules::Plain };
        let drops_out = held.plan.dropout || (hugging_face && shape.drops_out());
        let biased = hugging_face && shape.biases_scores(block);
        let core = match held.plan.attention_kind() {
            // Softmax and, with their mask, the scores that dropout leaves, in 32 bits.
            _ if biased => (if drops_out { 9.0 } else { 4.0 }) * heads * keys_seen,
            Attention::Flash | Attention::Cudnn | Attention::Triton => 4.0 * heads,
            Attention::Unfused if recompute.has(Recompute::Attention) => 0.0,
            Attention::Unfused => {
                let scores = if held.plan.dropout { 5.0 } else { 2.0 };
                scores * heads * keys_seen
            }
        };
        let statistics = match shape.norm {
            NormKind::Layer | NormKind::LayerNoBias | NormKind::LayerPlain => 16.0,
            NormKind::Rms => 8.0,
        };
        let liger = held.plan.implemented_by() == Implementation::Liger;
        let norms = match modules {
            // Both halves have one input.
            own if own == Modules::Neox || own.shares_norm() => 0.5,
            _ if hugging_face && shape.sandwich => 2.0,
            _ => 1.0,
        };
        let masks = if drops_out { block.halves() as f64 * h } else { 0.0 };
        let (q, k) = (heads * key as f64, kv_heads * key as f64);
        let of_heads = match hugging_face && shape.qk_norm && block.mixer == Mixer::Attention {
            true if liger => (q + k) * 2.0,
            true => (q + k) * if shape.sandwich { 8.0 } else { 6.0 },
            false => 0.0,
        };
        let gated = shape.mlp == Mlp::Swiglu;
        let rotates =
            shape.rotates() && block.mixer == Mixer::Attention && (!hugging_face || modules.joins_heads());
        let by_heads = rotates || (modules == Modules::Whisper && block.mixer.attends());
        let routed_wide = hugging_face && autocast && with_experts;
        let parameters = shape.trained_layer_parameters(block);
        let dense = parameters.dense_shard(split.tensor, shape.kv_heads) as f64;
        let routed = parameters.expert_shard(split.expert) as f64;
        let mlp_matrices = shape.mlp.matrices() as f64;
        // A visit of an expert: hidden states sent there, sent back and weighted; index, weight and place. A token:
        // probabilities of all experts.
        let (inner, visits, matrix) = match shape.experts.filter(|_| with_experts) {
            Some(experts) => {
                let active = experts.active as f64 * held.expert_load;
                let copies = match hugging_face {
                    true if autocast => 8.0,
                    true => 4.0,
                    false => 6.0,
                };
                let visits = active * (copies * h + 18.0) + 4.0 * experts.count as f64;
                let shared = tokens * experts.shared_width as f64 / t;
                (shared + own * active * experts.width as f64, visits, routed / mlp_matrices)
            }
            None if block.feed == FeedForward::None => (0.0, 0.0, 0.0),
            None => {
                let width = shape.mlp_width as f64 / t;
                (tokens * width, 0.0, h * width)
            }
        };
        let has_heads = block.mixer.attends();
        let streams = block.mixer.streams() as f64;
        let projected = if biased { 4.0 } else { 2.0 };
        // Widths of a mixer's projections and of its result, and further bytes of a token that it keeps.
        let mixer = |widths: Option<[u64; 3]>| {
            let [projected, inner, kept] = widths.unwrap_or_default().map(|width| width as f64 / t);
            [projected, inner, kept - 2.0 * (projected + inner)]
        };
        let [input, inner_mixer, beside_mixer] = match block.mixer {
            Mixer::Attention | Mixer::Encoder | Mixer::Cross | Mixer::Joint | Mixer::JointLast => {
                let gate = if shape.attention_gate { heads * value as f64 } else { 0.0 };
                // The gate, and its product with the output.
                [q + kv_heads * (key + value) as f64 + gate, heads * value as f64, 4.0 * gate + core]
            }
            Mixer::Linear => mixer(shape.delta.map(|own| [own.projected(), own.inner(), own.kept()])),
            Mixer::Mamba => mixer(shape.mamba.map(|own| [own.projected(), own.inner(), own.kept()])),
            Mixer::None => [0.0; 3],
        };
        let halves = [block.mixer != Mixer::None, block.feed != FeedForward::None];
        let halves = halves.map(|has| f64::from(u8::from(has)));
        Self {
            recompute,
            autocast,
            // A compiler and the rotation of fine-tuned decoders keep neither.
            rotated: rotates && shape.trains_matrices() && !held.compiled,
            by_heads,
            gated,
            within: match modules {
                // A compiler keeps the input of GELU alone.
                Modules::Gpt2 if held.compiled => 1.0,
                Modules::Gpt2 if autocast => 7.0,
                Modules::Gpt2 => 4.0,
                Modules::Opt => 0.0,
                // Behind ReLU, or beside the operations of the gate, a mask.
                Modules::T5 if gated && autocast => 10.5,
                Modules::T5 if gated => 6.5,
                Modules::T5 => 1.5,
                // A compiler and Liger compute the non-linearity of the gate again.
                _ if gated && (held.compiled || liger) => 2.0,
                _ if gated => 3.0,
                _ => 1.0,
            },
            inputs_kept: match hugging_face && held.choice.sharding.stage() == 3 && !shape.trains_matrices() {
                true => 2.0,
                false => 1.0,
            },
            halves,
            norms: own * h * norms * norm_width(held),
            casts: match hugging_face && autocast {
                true => [
                    if modules.joins_heads() { 1.0 } else { 3.0 },
                    if gated && !with_experts && modules != Modules::Phi3 { 2.0 } else { 1.0 },
                ],
                false => [1.0; 2],
            },
            stream: own * h * stream_width(held),
            modulated: match shape.condition {
                Some(_) => own * h * (stream_width(held) + 2.0),
                None => 0.0,
            },
            hidden: own * h * 2.0,
            queries: projected * tokens * if has_heads { q } else { input },
            keys: if has_heads { projected * key_tokens * k } else { 0.0 },
            values: if has_heads { projected * key_tokens * kv_heads * value as f64 } else { 0.0 },
            // Flash attention sums the gradient of queries in 32 bits; with biases, gradients of scores before and behind the softmax.
            sums: match biased {
                true => 8.0 * tokens * heads * keys_seen,
                false => 4.0 * tokens * if has_heads { q } else { input },
            },
            repeated: match shape.documents {
                Some(own) if own.packing == Packing::Within && has_heads => {
                    2.0 * tokens * (heads - kv_heads).max(0.0) * (key + value) as f64
                }
                _ => 0.0,
            },
            // Parts of attention of two streams are copied.
            attended: 2.0 * tokens * inner_mixer * streams,
            core: tokens * beside_mixer,
            inner: if routed_wide { 4.0 } else { 2.0 } * inner,
            beside: own * (visits + statistics + masks) + tokens * of_heads,
            matrices: [h * input * streams, h * inner_mixer * streams, matrix * streams],
            modulation: 2.0 * h * h * shape.modulation_of(block.mixer) as f64 / t,
            mlp_copies: if routed_wide { 0.0 } else { mlp_matrices },
            trained: dense + routed,
            outside: match shape.trains_matrices() {
                true => (dense + routed - (h * input + h * inner_mixer + matrix * mlp_matrices) * streams)
                    .max(0.0),
                false => 0.0,
            },
            inputs: [
                shape.needs_input(&[Target::Q, Target::K, Target::V]),
                shape.needs_input(&[Target::O]),
                shape.needs_input(&[Target::Gate, Target::Up, Target::Experts]),
                shape.needs_input(&[Target::Down, Target::Experts]),
            ],
            of_input: backward == Backward::All,
            adapters: shape.tuning.adapters.map(|adapters| {
                let count = |targets: &[Target]| {
                    targets.iter().filter(|target| adapters.targets.has(**target)).count() as f64
                };
                let all = [
                    count(&[Target::Q, Target::K, Target::V]),
                    count(&[Target::O]),
                    count(&[Target::Gate, Target::Up]),
                    count(&[Target::Down]),
                ];
                let total: f64 = all.iter().sum();
                AdapterMemory {
                    narrow: 2.0 * tokens * adapters.rank as f64,
                    count: all,
                    gradient: 2.0 * (dense + routed) / total.max(1.0),
                    dropped: if adapters.dropout { 3.0 * tokens * h } else { 0.0 },
                }
            }),
            expanded: match shape.tuning.adapters {
                Some(adapters) if adapters.base.is_expanded() => 2.0 * matrix.max(h * input),
                _ => 0.0,
            },
        }
    }

    /// Bytes kept by the forward pass; `of` accounts for recomputed attention.
    pub(super) fn kept(&self) -> f64 {
        match self.recompute {
            own if own.has(Recompute::Layer) => self.stream * self.inputs_kept,
            own if own.has(Recompute::Operators) => {
                let attention = self.queries + self.values + self.attended + self.core;
                self.stream + attention + self.inner + self.hidden * self.halves[1]
            }
            own if own.has(Recompute::Mlp) => self.whole() - self.within_mlp(),
            _ => self.whole(),
        }
    }

    /// Bytes that the MLP keeps beside its input.
    fn within_mlp(&self) -> f64 {
        let last = if self.inputs[3] { 1.0 } else { 0.0 };
        self.inner * (last + self.within)
    }

    /// Bytes that the backward pass needs, with the 16-bit copies of matrices under autocast.
    pub(super) fn whole(&self) -> f64 {
        let [projecting, output, mlp, _] = self.inputs.map(|kept| f64::from(u8::from(kept)));
        let copied = if self.by_heads { self.attended * output } else { 0.0 };
        let rotated = copied + if self.rotated { self.queries + self.keys } else { 0.0 };
        let projected = self.queries + self.keys + self.values;
        let inner = self.within_mlp();
        let [mixer, feed] = self.halves;
        let casts = mixer * projecting * self.casts[0] + feed * mlp * self.casts[1];
        let normed = mixer + feed - if self.of_input { 0.0 } else { 1.0 };
        let streams = normed * self.norms + casts * self.hidden + (mixer + feed) * self.modulated;
        let adapters =
            self.adapters.map_or(0.0, |own| own.count.iter().sum::<f64>() * (own.narrow + own.dropped));
        let kept =
            streams + projected + self.repeated + rotated + self.attended + self.core + inner + self.beside;
        kept + adapters + self.copies()
    }

    /// 16-bit copies of matrices under autocast.
    pub(super) fn copies(&self) -> f64 {
        let [input, output, mlp] = self.matrices;
        if self.autocast { 2.0 * (input + output + mlp * self.mlp_copies) + self.modulation } else { 0.0 }
    }

    /// Peak of its backward pass beyond the kept tensors and the gradient of its output.
    pub(super) fn backward(&self, gradients: Gradients) -> f64 {
        let mut memory = Use::default();
        if self.halves[1] > 0.0 {
            self.backward_of_mlp(&mut memory, gradients);
            self.backward_of_norm(&mut memory);
        }
        if self.halves[0] > 0.0 {
            self.backward_of_attention(&mut memory, gradients);
            self.backward_of_norm(&mut memory);
        }
        if gradients == Gradients::New {
            memory.take(self.outside * self.width());
        }
        memory.most + self.expanded
    }

    /// Bytes of an element of a gradient.
    fn width(&self) -> f64 {
        if self.autocast { 4.0 } else { 2.0 }
    }

    /// A matrix, the first of its group: the gradient of its input and its own come, that of its output and its saved input go.
    /// With adapters, the scaled gradient and a second one of the input, which are added.
    fn matrix(
        &self,
        memory: &mut Use,
        (parameters, group): (f64, usize),
        [input, output, saved]: [f64; 3],
        gradients: Gradients,
    ) {
        let saved = if self.inputs[group] { saved } else { 0.0 };
        if let Some(own) = self.adapters {
            if own.count[group] > 0.0 {
                memory.take(output + own.narrow);
                memory.take(input);
                memory.free(output + own.narrow);
                if gradients == Gradients::New {
                    memory.take(own.gradient * own.count[group]);
                }
                memory.take(input);
                memory.free(input + own.narrow * own.count[group] + own.dropped);
            } else {
                memory.take(input);
            }
            memory.free(output + saved);
            return;
        }
        let gone = output + saved;
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

    /// The gradient of the hidden states, in the width that matrices take.
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
        self.matrix(memory, (matrix, 3), [inner, cast, inner], gradients);
        if self.gated {
            // The product: its gradient and both factors are freed once the gradients of the factors exist; then the non-linearity.
            memory.take(2.0 * inner);
            memory.free(3.0 * inner);
            memory.take(inner);
            memory.free(2.0 * inner);
            self.matrix(memory, (matrix, 2), [self.hidden, inner, 0.0], gradients);
        } else {
            memory.take(inner);
            memory.free(2.0 * inner);
        }
        self.matrix(memory, (matrix, 2), [self.hidden, inner, self.hidden], gradients);
        if self.gated {
            memory.take(self.hidden);
            memory.free(2.0 * self.hidden);
        }
    }

    fn backward_of_attention(&self, memory: &mut Use, gradients: Gradients) {
        let projected = self.queries + self.keys + self.values;
        let rotated = if self.rotated { self.queries + self.keys } else { 0.0 };
        let copy = if self.by_heads { self.attended } else { 0.0 };
        let cast = self.cast(memory);
        self.matrix(memory, (self.matrices[1], 1), [self.attended, cast, copy], gradients);
        memory.take(projected + self.sums);
        memory.free(self.sums + 2.0 * self.attended + self.core + rotated);
        memory.take(rotated);
        memory.free(rotated);
        memory.take(projected);
        memory.free(2.0 * projected);
        self.matrix(memory, (self.matrices[0], 0), [self.hidden, projected, self.hidden], gradients);
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
