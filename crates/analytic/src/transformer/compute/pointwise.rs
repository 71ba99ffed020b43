//! Everything that is bound by memory: norms, sums, activations, casts, the loss and the embedding.
//!
//! Bytes are counted for kernels of eager PyTorch: each reads its inputs and writes its output once. r is the width of
//! a number between layers (4 under automatic mixed precision, where norms and sums stay in 32 bits), w that of
//! operands of products.

use super::{Computed, Input, Parts, Shard, Work};
use stepcast_core::model::transformer::{Mlp, Modules};
use stepcast_core::strategy::Loss;
use stepcast_core::strategy::Recipe;

/// Bytes of a number in 16 bits.
pub(super) const HALF: f64 = 2.0;

/// Bytes moved to cast a number from 32 to 16 bits or back.
pub(super) const CAST: f64 = 6.0;

/// Bytes moved, and kernels, to cast a number of the input, of the weights and of the gradient from 16 bits to fewer, in
/// separate kernels: read, for one scale a tensor read once more for its largest value, and written.
pub(super) const fn cast(recipe: Recipe) -> ([f64; 3], [f64; 3]) {
    match recipe {
        Recipe::Fp8Delayed | Recipe::Fp8Row | Recipe::Fp8Block | Recipe::Mxfp8 | Recipe::Int8 => {
            ([3.0; 3], [1.0; 3])
        }
        Recipe::Nvfp4 => ([4.6; 3], [2.0; 3]),
        Recipe::Mxfp4 => ([2.6; 3], [1.0; 3]),
        Recipe::None | Recipe::Fp8 => ([5.0; 3], [2.0; 3]),
    }
}

/// Bytes and kernels of these casts by Transformer Engine in Megatron's layers. Norms write 8 bits in place of 16, and once more
/// transposed. A separate kernel reads gradients and the outputs of attention and activations, and writes them both ways. Weights are
/// cast once in a step. NVFP4 reads tensors once more for their largest values, and turns them by a Hadamard matrix for gradients of weights.
pub(super) const fn cast_fused(recipe: Recipe, input: Input) -> ([f64; 3], [f64; 3]) {
    match (recipe, input) {
        (Recipe::Nvfp4, _) => ([4.0, 0.0, 6.0], [2.0, 0.0, 2.0]),
        (_, Input::Normed) => ([0.0, 0.0, 4.0], [0.0, 0.0, 1.0]),
        (_, Input::Plain) => ([4.0, 0.0, 4.0], [1.0, 0.0, 1.0]),
    }
}

/// Passes of a norm, in units of r: input and output; backward, gradient and input for its input and for its weights,
/// and the result.
const NORM: [f64; 2] = [2.0, 5.0];

/// Backward passes of a norm whose weights are frozen.
const NORM_FROZEN: f64 = 3.0;

/// Bytes of a root mean square of separate operations for each number of 16 bits, forward and backward: cast to 32 bits, square,
/// mean, factor, cast back, weights; and the gradients of each, with the sums where paths meet.
const SEPARATE_NORM: [f64; 2] = [36.0, 80.0];
/// Bytes of such a norm for each number of 32 bits, without the casts.
const SEPARATE_NORM_WIDE: [f64; 2] = [34.0, 76.0];
/// Part of these bytes that gradients of the weights move.
const SEPARATE_WEIGHTS: f64 = 10.0;
/// Time of the host for a small operation against one of a module with its own gradients.
pub(super) const SMALL: f64 = 0.6;
/// Additional kernels of such a norm over a fused one; then those of Gemma's norm, whose weights are in 32 bits; counted in steps of
/// transformers 5.17.
const SEPARATE_KERNELS: [[f64; 2]; 2] = [[7.0, 16.0], [9.0, 17.0]];

/// Passes of rotary positions for each number of queries and keys, in units of w, forward and backward: halves
/// exchanged, two factors and a sum; fused, one read and one write.
const ROTARY: [f64; 2] = [10.0, 2.0];

/// Kernels of rotary positions of queries and keys, forward and backward, unfused, fused, and by Hugging Face.
const ROTARY_KERNELS: [[f64; 2]; 2] = [[6.0, 10.0], [2.0, 2.0]];
const ROTARY_SEPARATE: [f64; 2] = [10.0, 14.0];

/// Host time of a Liger operation, a Python autograd function that launches a Triton kernel, in units of that of a PyTorch kernel.
/// From a small Llama on an H200, whose steps take 13 % less time with Liger's kernels.
const LIGER_CALL: f64 = 5.0;

/// Passes of the activation for each number of the MLP's width, in units of w, forward and backward.
const GELU: [f64; 2] = [2.0, 3.0];
/// Passes of GELU from separate operations (0.5 x (1 + tanh(c (x + 0.044715 x³)))) in 16 bits, and under autocast, which
/// computes its power and all behind it in 32. They are plain passes over long tensors, at the rate of copies.
const GELU_SEPARATE: [[f64; 2]; 2] = [[18.0, 28.0], [38.0, 59.0]];
const GELU_SEPARATE_KERNELS: [f64; 2] = [8.0, 11.0];
/// Passes of a gate and its factor in two kernels; below, in one.
const GATED: [f64; 2] = [5.0, 8.0];
const GATED_FUSED: [f64; 2] = [3.0, 5.0];

/// Mask and output of dropout on the residual path, bytes of a number.
const DROPOUT: f64 = 5.0;

/// Bytes moved for each logit beside its product, forward and backward, in eager PyTorch: a copy in 32 bits, its maximum,
/// its sum and its logarithm; a gradient filled with zeros, the softmax's gradient, and its cast.
const LOSS: [f64; 2] = [22.0, 20.0];

/// Bytes moved for each logit by a loss in one kernel, which reads logits in their own width.
const LOSS_FUSED: [f64; 2] = [10.0, 8.0];

/// Bytes moved for each logit by a loss that computes its gradient at once and in place: logits are read for their sum, read again, and
/// overwritten by their gradient, in 16 bits.
const LOSS_CHUNKED: [f64; 2] = [6.0, 0.0];

/// Bytes of a logit that is bounded by a hyperbolic tangent (Gemma 2), in three kernels each way.
const BOUNDED: [f64; 2] = [12.0, 14.0];

/// Kernels of norm and loss.
const LOSS_KERNELS: [f64; 2] = [5.0, 6.0];

/// A norm and the sum before it in one kernel, passes in units of r and of w: the stream is read and written, the sum's other
/// part is read and the result written; backward, both gradients and the stream are read, the gradient is written, and the
/// gradient and the stream are read for the weights.
const COMPILED_HALF: [f64; 2] = [2.0, 4.0];
const COMPILED_KERNELS: [f64; 2] = [1.0, 3.0];

/// Kernels of a norm and a sum, forward, and of their gradients with the sums of gradients that meet.
const REST_KERNELS: [f64; 2] = [2.0, 5.0];

impl Parts {
    fn work(&self, bytes: f64, kernels: f64) -> Work {
        Work { device: self.passing(bytes), kernels }
    }

    /// The host's work for `count` small operations, beside the bytes that they move.
    pub(super) fn small(&self, count: f64) -> Work {
        Work { device: self.starting(count * (1.0 - SMALL)), kernels: count * SMALL }
    }

    /// The additional host time of Liger operations that are already counted as one kernel each; the device does nothing more.
    fn called(&self, calls: f64) -> Work {
        let beside = calls * (LIGER_CALL - 1.0);
        Work { device: self.starting(-beside), kernels: beside }
    }

    /// Bytes that a norm moves for each number of `width` bytes, forward and backward.
    fn norm_bytes(&self, shard: &Shard<'_>, width: f64) -> [f64; 2] {
        let trained = shard.shape.trains_matrices();
        if shard.separate_norms() {
            let [forward, backward] = if width > HALF { SEPARATE_NORM_WIDE } else { SEPARATE_NORM };
            return [forward, backward - if trained { 0.0 } else { SEPARATE_WEIGHTS }];
        }
        // Liger's backward kernel also sums the gradients of the weights.
        let own_weights = trained && !shard.liger;
        [NORM[0] * width, if own_weights { NORM[1] } else { NORM_FROZEN } * width]
    }

    fn fused(&self) -> bool {
        self.software.fused
    }

    /// Norms, sums on the residual path, dropout, biases and positions of a layer.
    pub(super) fn between(&self, shard: &Shard<'_>) -> Computed {
        let (r, w) = (self.residual_width(shard), self.width());
        let trained = shard.shape.trains_matrices();
        let [query, keys, _] = shard.widths;
        let mixed = self.software.casts && trained;
        let halves = shard.block.halves() as f64;
        let norms = shard.shape.norms_of(shard.block) as f64;
        let cast = if mixed { CAST } else { 0.0 };
        // Each half of a layer: a norm, a cast of its output, and the sum of r and w into r.
        let norm = self.norm_bytes(shard, r);
        let mut forward = norms * norm[0] + halves * (cast + 2.0 * r + w);
        let mut backward = norms * norm[1] + halves * (2.0 * cast + 3.0 * r);
        let mut kernels = REST_KERNELS.map(|count| count * halves);
        let mut small = [0.0; 2];
        if self.software.compiled {
            // Each half of a layer: the sum, the norm and the cast in one kernel.
            forward = norms * COMPILED_HALF[0] * (r + w);
            backward = norms * (COMPILED_HALF[1] * r + 2.0 * w);
            kernels = COMPILED_KERNELS.map(|count| count * halves);
        } else if !trained {
            kernels[1] -= halves;
        }
        if mixed && !self.software.compiled {
            kernels = [kernels[0] + halves, kernels[1] + 2.0 * halves];
        }
        if shard.dropout {
            (forward, backward) = (forward + halves * DROPOUT, backward + halves * DROPOUT);
            kernels = kernels.map(|count| count + halves);
        }
        if shard.shape.bias && trained {
            backward += halves * w;
            kernels[1] += 2.0 * halves;
        }
        let rotated = if shard.shape.rotates() { query + keys } else { 0.0 };
        let separate = SEPARATE_KERNELS[usize::from(shard.shape.sandwich)];
        if shard.separate_norms() {
            small = separate.map(|count| norms * count);
        }
        let (mut of_heads, mut of_heads_back) = (0.0, 0.0);
        if shard.shape.qk_norm && query > 0.0 {
            let norm = self.norm_bytes(shard, w);
            (of_heads, of_heads_back) = (norm[0] * (query + keys), norm[1] * (query + keys));
            if shard.separate_norms() {
                small = [0, 1].map(|index| small[index] + 2.0 * separate[index]);
            } else {
                kernels = [kernels[0] + 2.0, kernels[1] + 4.0];
            }
        }
        if shard.shape.attention_gate {
            of_heads += w * GATED[0] * query;
            of_heads_back += w * GATED[1] * query;
            let gate = if query > 0.0 { [2.0, 3.0] } else { [0.0; 2] };
            kernels = [kernels[0] + gate[0], kernels[1] + gate[1]];
        }
        if shard.separate {
            // Heads lie beside tokens behind attention; gradients of its three projections and of the MLP's two are added.
            of_heads += 2.0 * w * query;
            backward += if shard.joined { 0.0 } else { 7.0 * w };
            kernels[0] += 1.0;
        }
        if shard.separate && shard.joined {
            // Gradients of parts of one product are put together; rotated parts are joined to the others.
            of_heads_back += 2.0 * w * (query + 2.0 * keys);
            let put = if shard.shape.rotates() { 4.0 * w * (query + keys) } else { 0.0 };
            (of_heads, of_heads_back) = (of_heads + put, of_heads_back + put);
        }
        let rotary = usize::from(self.fused() || shard.liger);
        if rotated > 0.0 && shard.separate && !shard.liger {
            small = [0, 1].map(|index| small[index] + ROTARY_SEPARATE[index]);
        } else if rotated > 0.0 {
            let [forward, backward] = ROTARY_KERNELS[rotary];
            kernels = [kernels[0] + forward, kernels[1] + backward];
        }
        let positions = ROTARY[rotary] * w * rotated;
        let biases = if shard.shape.qkv_bias && trained { w * (query + keys) } else { 0.0 };
        let own = shard.own_tokens * shard.hidden;
        if shard.liger {
            // One operation for each norm, and one that rotates queries and keys.
            let calls = norms + if rotated > 0.0 { 1.0 } else { 0.0 };
            small = [calls; 2];
        }
        let small = small.map(|count| if shard.liger { self.called(count) } else { self.small(count) });
        let forward = self.work(own * forward + shard.tokens * (positions + of_heads), kernels[0]);
        let input =
            self.work(own * backward + shard.tokens * (positions + biases + of_heads_back), kernels[1]);
        Computed { forward: forward.and(small[0]), input: input.and(small[1]), ..Computed::default() }
    }

    /// Norms of a layer that Transformer Engine does not compute in the kernel of a product, forward: before the narrow projections
    /// of latent attention, and before experts.
    pub(super) fn separate_norms(&self, shard: &Shard<'_>) -> Work {
        let norms =
            [shard.shape.mla.is_some(), shard.experts.is_some()].iter().filter(|has| **has).count() as f64;
        let [forward, _] = self.norm_bytes(shard, self.residual_width(shard));
        self.work(norms * forward * shard.own_tokens * shard.hidden, norms)
    }

    /// Queries, keys and values of latent attention from its narrow projections, with their positions, forward.
    pub(super) fn widening(&self, shard: &Shard<'_>) -> Work {
        if shard.shape.mla.is_none() {
            return Work::default();
        }
        let [query, keys, _] = shard.widths;
        let rotary = usize::from(self.fused());
        let positions = ROTARY[rotary] * self.width() * shard.tokens * (query + keys);
        let rotated = self.work(positions, ROTARY_KERNELS[rotary][0]);
        self.linear(shard, &shard.widening_products(), false, Input::Normed).forward.and(rotated)
    }

    /// The MLP activation over `numbers` elements.
    pub(super) fn activation(&self, shard: &Shard<'_>, numbers: f64) -> Computed {
        let mixed = self.software.precision.is_mixed();
        let small = if shard.separate_activation() { GELU_SEPARATE_KERNELS } else { [0.0; 2] };
        let (passes, kernels) = match shard.shape.mlp {
            Mlp::Gelu if shard.separate_activation() => (GELU_SEPARATE[usize::from(mixed)], [0.0; 2]),
            // The product with the factor beside it.
            Mlp::Swiglu if shard.separate_activation() => {
                let [forward, backward] = GELU_SEPARATE[usize::from(mixed)];
                ([forward + GATED_FUSED[0], backward + GATED_FUSED[1]], [1.0, 2.0])
            }
            Mlp::Gelu => (GELU, [1.0, 1.0]),
            Mlp::Swiglu if self.fused() || shard.liger => (GATED_FUSED, [1.0, 1.0]),
            Mlp::Swiglu => (GATED, [2.0, 3.0]),
        };
        let bias = if shard.shape.bias && shard.shape.trains_matrices() { 1.0 } else { 0.0 };
        // Gradients of gate and factor of one matrix are put together.
        let put = if shard.separate && shard.shape.modules == Modules::Phi3 { 4.0 } else { 0.0 };
        let w = self.width() * numbers;
        let dropped = if shard.drops_inner() { self.work(DROPOUT * numbers, 1.0) } else { Work::default() };
        let moved = |bytes: f64, kernels: f64| match shard.separate_activation() {
            true => Work { device: self.streaming(bytes), kernels },
            false => self.work(bytes, kernels),
        };
        let called = self.called(if shard.liger && shard.shape.mlp == Mlp::Swiglu { 1.0 } else { 0.0 });
        Computed {
            forward: moved(w * passes[0], kernels[0]).and(self.small(small[0])).and(called).and(dropped),
            input: moved(w * (passes[1] + bias + put), kernels[1])
                .and(self.small(small[1]))
                .and(called)
                .and(dropped),
            ..Computed::default()
        }
    }

    /// The last norm and the loss over `vocabulary` logits of every token.
    pub(super) fn loss(&self, shard: &Shard<'_>, vocabulary: f64) -> Computed {
        let r = self.residual_width(shard);
        let usual = if self.fused() { Loss::Compiled } else { Loss::Eager };
        let bounded = shard.separate && shard.shape.sandwich && !shard.shape.qk_norm;
        let bytes = match shard.loss.unwrap_or(usual) {
            Loss::Eager if bounded => [LOSS[0] + BOUNDED[0], LOSS[1] + BOUNDED[1]],
            Loss::Eager if shard.separate && !shard.shape.widens_logits() => LOSS_FUSED,
            Loss::Eager => LOSS,
            Loss::Compiled => LOSS_FUSED,
            Loss::Chunked => LOSS_CHUNKED,
        };
        let logits = shard.tokens * vocabulary;
        let norm = self.norm_bytes(shard, r);
        let numbers = shard.own_tokens * shard.hidden;
        let separate = if shard.separate_norms() { SEPARATE_KERNELS[0] } else { [0.0; 2] };
        let work = |index: usize| {
            let device = self.streaming(bytes[index] * logits) + self.passing(norm[index] * numbers);
            Work { device, kernels: LOSS_KERNELS[index] }.and(self.small(separate[index]))
        };
        Computed { forward: work(0), input: work(1), ..Computed::default() }
    }

    /// Rows of the embedding, and its gradient: filled with zeros and added to; once more if the output layer shares it.
    pub(super) fn lookup(&self, shard: &Shard<'_>, vocabulary: f64) -> Computed {
        let r = self.residual_width(shard);
        let rows = shard.own_tokens * shard.hidden * r;
        let table = vocabulary * shard.hidden * r * if shard.shape.tied { 3.0 } else { 1.0 };
        if shard.shape.tuning.frozen_embedding {
            return Computed { forward: self.work(2.0 * rows, 2.0), ..Computed::default() };
        }
        let gradient = Work { device: self.passing(3.0 * rows) + self.streaming(table), kernels: 3.0 };
        Computed { forward: self.work(2.0 * rows, 2.0), input: gradient, ..Computed::default() }
    }
}
