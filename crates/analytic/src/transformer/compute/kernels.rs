//! Products of matrices in tiles over multiprocessors, core attention, experts, and the host that issues kernels.

use super::shard::ExpertShard;
use super::{Compute, Computed, Input, Parts, Shard, Software, Work};
use stepcast_core::machine::Device;
use stepcast_core::model::transformer::Mixer;
use stepcast_core::quantity::{Bytes, Flops, FlopsPerSec, Seconds};
use stepcast_core::strategy::{Attention, Recipe, Recompute};

/// Tiles of the result that kernels of cuBLAS compute at once, rows × columns.
const TILES: [[f64; 2]; 6] =
    [[128.0, 256.0], [256.0, 128.0], [128.0, 128.0], [64.0, 128.0], [128.0, 64.0], [64.0, 64.0]];

/// Parts of the depth that multiprocessors may share where there are fewer tiles than multiprocessors.
const PARTS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// Least depth of a part.
const LEAST_DEPTH: f64 = 512.0;

/// Bytes that a part of the depth writes and reads again for each number of the result, in 32 bits.
const PART_BYTES: f64 = 8.0;

/// `count` equal products of rows × depth and depth × columns in one kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    /// Rows of the result; tokens.
    pub rows: f64,
    /// Columns of the result; width of the output.
    pub columns: f64,
    /// Length of the sums; width of the input.
    pub depth: f64,
    /// Number of products.
    pub count: f64,
}

impl Product {
    /// One product.
    pub const fn new(rows: f64, columns: f64, depth: f64) -> Self {
        Self { rows, columns, depth, count: 1.0 }
    }

    /// None, to fill a list.
    pub(super) const NONE: Self = Self { rows: 0.0, columns: 0.0, depth: 0.0, count: 0.0 };

    /// The gradient of its input.
    pub(super) const fn of_input(self) -> Self {
        Self { columns: self.depth, depth: self.columns, ..self }
    }

    /// The gradient of its weight.
    pub(super) const fn of_weight(self) -> Self {
        Self { rows: self.columns, columns: self.depth, depth: self.rows, count: self.count }
    }

    /// Numbers of its weights.
    pub(super) const fn weights(&self) -> f64 {
        self.columns * self.depth * self.count
    }
}

/// Number format of a product's operands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Operands {
    /// Achieved rate of its tensor units relative to the precision's.
    pub(super) faster: f64,
    /// Bytes of a number relative to the precision's.
    pub(super) bytes: f64,
    /// Share of that rate that products of several experts reach.
    grouped: f64,
}

impl Operands {
    /// Operands in the format of the precision.
    pub(super) const WIDE: Self = Self { faster: 1.0, bytes: 1.0, grouped: 1.0 };

    /// Operands of a recipe on a device: 8-bit products reach `gain` of their peak over `peak`; 4-bit reach `narrower` of that.
    pub(super) fn new(
        device: &Device,
        peak: FlopsPerSec,
        software: Software,
        gain: f64,
        narrower: f64,
    ) -> Self {
        let (rate, share) = match software.recipe.bits() {
            Some(4) => (device.float4, gain * narrower),
            Some(_) if software.recipe == Recipe::Fp8Block => (device.float8, gain * BLOCKS),
            Some(_) => (device.float8, gain),
            None => (None, 1.0),
        };
        let width = f64::from(8 * software.precision.width());
        let bits = software.recipe.bits().map_or(width, f64::from);
        let grouped = if software.recipe.scales_in_hardware() { 1.0 } else { GROUPED[1] };
        rate.map_or(Self::WIDE, |rate| Self { faster: rate / peak * share, bytes: bits / width, grouped })
    }
}

/// Rate of products whose scales are applied block by block outside of the tensor units, against one scale a tensor.
const BLOCKS: f64 = 0.93;

/// Rate of products of several experts against one product in 16 bits, and what they keep of the gain of fewer bits: on one H200
/// 0.9 to 0.95 of it, and 1.45 to 1.75 times as fast in 8 bits where single products are 1.85 to 1.9 (PyTorch 2.11). Tensor units
/// that apply scales themselves lose none of the gain.
const GROUPED: [f64; 2] = [0.95, 0.82];

/// Time to issue and start one more product of several experts, which Transformer Engine does in one call on four streams, against a
/// kernel of its own. Assumed from the number of streams, not measured.
const ONE_MORE: f64 = 0.3;

impl Parts {
    /// Kernels issued for a product: Transformer Engine issues one for every expert.
    pub(super) fn issued(&self, product: &Product) -> f64 {
        if self.software.is_written() { 1.0 + ONE_MORE * (product.count - 1.0).max(0.0) } else { 1.0 }
    }

    /// Time of a product in the precision.
    pub fn product(&self, product: &Product) -> Seconds {
        self.product_of(product, Operands::WIDE)
    }

    /// Time of a product in the number format of the recipe.
    pub fn narrow_product(&self, product: &Product) -> Seconds {
        self.product_of(product, self.narrow)
    }

    /// Time of a product, without the start of its kernel: the fastest tile,
    ///
    /// ```text
    /// waves · 2·rows·columns of the tile · (depth / faster + depth₀) · multiprocessors / rate
    /// ```
    ///
    /// with waves = tiles / multiprocessors, at least 1 and partly rounded up; depth₀ is what filling and emptying a tile
    /// costs. Small tiles load more bytes for each operation and are slower by that much. Where tiles are few, parts of
    /// the depth are summed apart. No product is faster than memory delivers its operands.
    pub(super) fn product_of(&self, product: &Product, operands: Operands) -> Seconds {
        let faster = operands.faster * if product.count > 1.0 { operands.grouped } else { 1.0 };
        let Product { rows, columns, depth, count } = *product;
        let own = &self.constants;
        let processors = self.multiprocessors;
        let loaded = |[rows, columns]: [f64; 2]| 1.0 / rows + 1.0 / columns;
        let mut best = Seconds::new(f64::INFINITY);
        for tile in TILES {
            let tiles = (rows / tile[0]).ceil() * (columns / tile[1]).ceil() * count;
            let slower = 1.0 + own.tile * (loaded(tile) / loaded(TILES[0]) - 1.0);
            for parts in PARTS {
                if parts > 1.0 && (tiles * parts / 2.0 >= processors || depth / parts < LEAST_DEPTH) {
                    break;
                }
                let each = tiles * parts / processors;
                let waves = (own.wave * each.ceil() + (1.0 - own.wave) * each).max(1.0);
                let operations =
                    waves * 2.0 * tile[0] * tile[1] * (depth / parts / faster + own.depth) * processors;
                let mut time = Flops::new(operations * slower) / self.product;
                if parts > 1.0 {
                    time += self.streaming(PART_BYTES * parts * rows * columns * count);
                }
                best = best.min(time);
            }
        }
        let moved = ((rows * depth + depth * columns) * operands.bytes + rows * columns) * count;
        best.max(Bytes::new(self.width() * moved) / self.stream)
    }
}

/// Slowdown of an output layer whose rows do not start at multiples of 16 bytes: forward, for the input and for the weights;
/// first for an even vocabulary, then for an odd one. Kernels for Ampere and Turing compute them, as Hopper's units cannot copy
/// such tensors. Medians on an H200 of 115 sets of vocabulary, width and tokens beside their aligned neighbours:
/// 260, 250 and 270 TFLOP/s, and 97, 140 and 147 (research/transformers/misaligned.py).
const MISALIGNED: [[f64; 3]; 2] = [[2.8, 2.8, 2.6], [7.6, 5.2, 4.8]];

impl Parts {
    /// Slowdown of the output layer for a vocabulary that is no multiple of eight, forward, for the input and for the weights.
    pub(super) fn misaligned(&self, vocabulary: f64) -> [f64; 3] {
        match vocabulary % 8.0 {
            _ if !self.is_new || self.software.fused => [1.0; 3],
            0.0 => [1.0; 3],
            rest if rest % 2.0 == 0.0 => MISALIGNED[0],
            _ => MISALIGNED[1],
        }
    }
}

/// Rate of products of a warp (`mma`) against those of four (`wgmma`), which Triton of 2023 did not use, on Hopper (Luo 2024,
/// arXiv:2402.13499: 0.63).
pub(super) const WARP_PRODUCTS: f64 = 0.63;

/// Operations of flash attention's backward pass relative to its forward: four products, and the scores again.
const FLASH_BACKWARD: f64 = 2.5;

/// Keys on the diagonal of cuDNN's attention, forward and backward, as `diagonal` of the priors: on one H200 its causal rates at
/// 512, 2048, 4096 and 8192 tokens are 0.53, 0.82, 0.90 and 0.95 of the best forward, and 0.36, 0.72, 0.85 and 0.93 backward
/// (heads of 128, PyTorch 2.11).
const CUDNN_DIAGONAL: [f64; 2] = [220.0, 380.0];

/// Keys on the diagonal of FlashAttention 2, backward relative to forward: on the same H200 its causal rates at 512, 2048, 4096 and 8192
/// tokens are 0.54, 0.85, 0.91 and 0.95 of the best forward, and 0.35, 0.68, 0.81 and 0.89 backward, as with 200 and 480 keys.
const FLASH_DIAGONAL: [f64; 2] = [1.0, 2.4];

/// Kernels of flash attention, forward and backward: the sums of gradients before and after have their own.
const FLASH_KERNELS: [f64; 2] = [1.0, 3.0];

/// Passes over keys and values that are repeated for all heads: read and written; backward, their gradients are added up.
const REPEATED: f64 = 4.0;

/// Passes of every step around a ring, in units of the width: forward its output is scaled and added to the sum, three quarters of
/// all tokens on average; backward the gradients of queries, and those of keys and values, are added up (`AttnFuncWithCP` of
/// Transformer Engine). And their kernels.
pub(super) const RING: [f64; 2] = [4.5, 2.25];
/// These passes in PyTorch 2.5 to 2.9, operation by operation in 32 bits, counted by operands (`_SDPAMerger` and
/// `_templated_ring_attention_backward`); timed on one H200, 15.4 to 16.6 and 8.5 to 8.9 (research/transformers/attention.py).
pub(super) const RING_EAGER: [f64; 2] = [16.25, 8.4];
const RING_KERNELS: [f64; 2] = [2.0, 3.0];

/// Width of a head at which shares of flash attention are stated.
const HEAD: f64 = 128.0;

/// Passes over the scores of unfused attention in units of their width, forward and backward: written by the product,
/// read and written by the fused scale, mask and softmax, read by the product; backward the same of their gradients, and
/// the softmax once more.
const SCORES: [f64; 2] = [4.0, 7.0];

/// Passes of dropout, in a separate kernel each way: scores read and written, and a mask of half their width.
const SCORES_DROPOUT: [f64; 2] = [2.5, 2.5];

/// Kernels of unfused attention: products, softmax and copies of heads.
const UNFUSED_KERNELS: [f64; 2] = [5.0, 10.0];

/// Attention with biases in 32 bits (`_scaled_dot_product_attention_math` of PyTorch 2.11): bytes that pass for every score, forward and
/// backward, by kernel: products, bias, softmax, rows without keys, dropout; and the gradients of each, with the sum of those of
/// biases. Its kernels. And the rate of its products against single ones in 32 bits (T5 with heads of 64 on an H200).
const BIASED: [f64; 2] = [45.0, 49.0];
const BIASED_KERNELS: [f64; 2] = [16.0, 22.0];
const BIASED_PRODUCTS: f64 = 0.8;

impl Parts {
    /// Core attention.
    pub(super) fn attention(&self, shard: &Shard<'_>) -> Computed {
        let core = match shard.attention {
            _ if shard.biased => self.biased(shard),
            Attention::Flash | Attention::Cudnn | Attention::Triton => self.flash(shard),
            Attention::Unfused => self.unfused(shard),
        };
        Computed { forward: core[0], input: core[1], core, ..Computed::default() }
    }

    /// Flash attention: its operations, with the masked half of the blocks on the diagonal, at a share of the peak rate
    /// that narrow heads lower, the more the faster tensor units are against the units that compute exponentials; no
    /// faster than memory delivers queries, keys and values.
    fn flash(&self, shard: &Shard<'_>) -> [Work; 2] {
        let own = &self.constants;
        let (width, _) = shard.shape.widths();
        let (head, faster, diagonal) = match shard.attention {
            Attention::Cudnn if self.cudnn > 1.0 => (own.head_cudnn, self.cudnn, CUDNN_DIAGONAL),
            _ => (own.head, 1.0, FLASH_DIAGONAL.map(|times| times * own.diagonal)),
        };
        let rates = if shard.attention == Attention::Triton { self.triton } else { self.flash };
        let lost = head * self.pace;
        let narrow = (1.0 + lost / width as f64) / (1.0 + lost / HEAD);
        let operations = diagonal.map(|keys| {
            let causal = shard.shape.causal && shard.block.mixer == Mixer::Attention;
            let blocks = if causal { 1.0 + keys / shard.keys.max(1.0) } else { 1.0 };
            shard.core * blocks * narrow
        });
        let [query, keys, values] = shard.widths;
        let each = self.width() * shard.tokens;
        let (moved, repeated) = match shard.repeats {
            true => (each * 4.0 * query, REPEATED * each * query),
            false if shard.block.mixer == Mixer::Cross => {
                let of_keys = self.width() * shard.key_tokens;
                (each * 2.0 * query + of_keys * (keys + values), 0.0)
            }
            false => (each * (2.0 * query + keys + values), 0.0),
        };
        let gradients = if shard.repeats { 3.0 * query } else { query + keys + values };
        let added = [query, gradients].map(|width| shard.ring * each * width);
        let work = |index: usize, operations: f64, moved: f64| {
            let computing: Seconds = Flops::new(operations) / (rates[index] * faster);
            let kernels = FLASH_KERNELS[index] * shard.ring.max(1.0)
                + RING_KERNELS[index] * shard.ring
                + if shard.repeats { 2.0 } else { 0.0 };
            let passes = self.passing(repeated + shard.ring_passes[index] * added[index]);
            Work { device: computing.max(self.passing(moved)) + passes, kernels }
        };
        [work(0, operations[0], moved), work(1, FLASH_BACKWARD * operations[1], 3.0 * moved)]
    }

    /// Unfused attention: a product for every head, and passes over the scores, whatever is masked.
    fn unfused(&self, shard: &Shard<'_>) -> [Work; 2] {
        let [rows, keys] = [shard.shape.tokens_of(shard.block), shard.shape.keys_of(shard.block)]
            .map(|tokens| tokens as f64);
        let (key, value) = shard.shape.widths();
        // Every rank has a part of the queries and all keys.
        let count = shard.heads * shard.tokens / rows;
        let product = |columns, depth| Product { rows, columns, depth, count };
        let products = self.product(&product(keys, key as f64)) + self.product(&product(value as f64, keys));
        let scores = count * rows * keys * self.width();
        let passes = |index: usize| SCORES[index] + if shard.dropout { SCORES_DROPOUT[index] } else { 0.0 };
        let work = |index: usize, times: f64| Work {
            device: products * times + self.passing(passes(index) * scores),
            kernels: UNFUSED_KERNELS[index],
        };
        [work(0, 1.0), work(1, 2.0)]
    }
}

impl Parts {
    /// Attention whose scores get biases: products and passes in 32 bits, whatever is masked.
    fn biased(&self, shard: &Shard<'_>) -> [Work; 2] {
        let keys = shard.shape.keys_of(shard.block) as f64;
        let scores = shard.heads * shard.tokens * keys;
        let (key, value) = shard.shape.widths();
        let operations = Flops::new(2.0 * scores * (key + value) as f64);
        let products: Seconds = operations / (self.single * BIASED_PRODUCTS);
        let work = |index: usize, times: f64| Work {
            device: products * times + self.passing(BIASED[index] * scores),
            kernels: BIASED_KERNELS[index],
        };
        [work(0, 1.0), work(1, 2.0)]
    }
}

/// Passes over the router's tokens for norm, softmax and sum, in units of the width.
const ROUTED: [f64; 2] = [10.0, 15.0];

/// Kernels beside products: top-k, sorting, gathers and weighted sums; and small ones of Hugging Face.
const KERNELS: [f64; 2] = [20.0, 30.0];
const KERNELS_SEPARATE: [f64; 2] = [38.0, 57.0];

/// Passes over every visit of a token by operations of Hugging Face, forward and backward: gather, order, weights and sum, and rows that
/// belong to no expert are overwritten before both products, where the broadcast mask lets memory reach a third of its rate. Means of
/// Qwen3-30B (14.6 and 24.8) and Mixtral-8x7B (18 and 30, weighted in 32 bits), 4,096 tokens, transformers 5.17 on an H200.
const VISITED: [f64; 2] = [16.0, 27.0];

/// Passes over the inner width of every visit, which is overwritten likewise.
const OVERWRITTEN: [f64; 2] = [12.0, 16.0];

/// Share of the peak rate in 32 bits without tensor units that single products of experts reach (0.63 for eight experts of 3584,
/// 0.47 for 32 of 512, transformers 5.17 on an H200): PyTorch's grouped product is not one of those that autocast casts.
pub(super) const SINGLE: f64 = 0.65;

/// Passes over every visit of a token, and kernels, of Transformer Engine's fused permutation: read and written on the way
/// there, read on the way back and added up; backward the same, and the weights' gradients. Kernels are those of router, sorting,
/// notification and probabilities as well, chosen so that steps of Qwen3-30B and -235B with one sequence a micro-batch, which
/// the host bounds on H100 and B200 alike, take their 9 to 10 ms a layer.
const PERMUTED: [f64; 2] = [4.0, 5.0];
const PERMUTE_KERNELS: [f64; 2] = [20.0, 25.0];

impl Parts {
    /// Router, experts and shared expert of a layer, in place of its MLP.
    pub(super) fn experts(&self, shard: &Shard<'_>, experts: &ExpertShard) -> Computed {
        let router = Product::new(experts.tokens, experts.all, shard.hidden);
        let routed = shard.mlp_of(experts.visits / experts.count, experts.width, experts.count);
        // Products of experts in 8 bits are Transformer Engine's alone.
        let written = self.software.is_written();
        let trained = [true, shard.shape.trains_matrices()];
        let products = |own: &[Product]| match written {
            true => self.mlp(shard, own, Input::Plain),
            false => self.matrices(own, trained).and(self.expanded(shard, own, true)),
        };
        let mut sum = self.matrices(&[router], trained);
        let inner = experts.visits * experts.width;
        if shard.separate && self.software.casts {
            let each = routed.map(|product| Product { count: product.count.min(1.0), ..product });
            let wide = Operands { faster: self.single / self.product, bytes: 2.0, ..Operands::WIDE };
            // One operation calls them all.
            let single = self.matrices_of(&each, trained, wide).times(experts.count);
            let once = |work: Work| Work { kernels: work.kernels / 2.0, ..work };
            sum = sum.and(Computed {
                forward: once(single.forward),
                input: once(single.input),
                weight: once(single.weight),
                ..single
            });
            sum = sum.and(self.activation(shard, 2.0 * inner));
        } else {
            sum = sum.and(products(&routed).slower(1.0 / GROUPED[0])).and(self.activation(shard, inner));
        }
        if shard.separate {
            let masked = |index: usize| {
                let device = self.passing(self.width() * OVERWRITTEN[index] * inner);
                Work { device, kernels: 0.0 }.and(self.small(KERNELS_SEPARATE[index]))
            };
            sum = sum.and(Computed { forward: masked(0), input: masked(1), ..Computed::default() });
        }
        if experts.shared > 0.0 {
            sum = sum.and(products(&shard.mlp_of(shard.tokens, experts.shared, 1.0)));
            sum = sum.and(self.activation(shard, shard.tokens * experts.shared));
        }
        let w = self.width() * shard.hidden;
        let (dispatch, kernels) = match written {
            true => (PERMUTED, PERMUTE_KERNELS),
            false if shard.separate => (VISITED, [0.0; 2]),
            false => ([self.constants.dispatch, self.constants.dispatch_back], KERNELS),
        };
        let moved = |index: usize| Work {
            device: self.passing(w * (experts.visits * dispatch[index] + experts.tokens * ROUTED[index])),
            kernels: kernels[index],
        };
        let activation = self.activation(shard, inner).forward;
        sum.and(Computed { forward: moved(0), input: moved(1), ..Computed::default() })
            .repeating(Recompute::Activation, activation)
    }
}

/// Share of the host's time for each kernel that remains where a compiler issues them, and of that for saved random states.
const COMPILED: [f64; 2] = [0.5, 0.2];

/// Time of the host to enter a compiled layer, forward or backward: guards and the call of its graph; chosen on compiled steps of
/// small decoders on an H200 (validation set `tuning`).
const GRAPH: Seconds = Seconds::new(0.4e-3);

impl Parts {
    fn each(&self) -> Seconds {
        let compiled = if self.software.compiled { COMPILED[0] } else { 1.0 };
        self.constants.host * compiled * self.host_slowness
    }
}

impl Compute {
    /// Time of the host to issue the kernels of `work`; nothing at one rate.
    pub fn issuing(&self, work: Work) -> Seconds {
        match self {
            Self::OneRate { .. } => Seconds::ZERO,
            Self::Parts(parts) => parts.each() * work.kernels,
        }
    }

    /// Time of the host to compute a layer again, beside issuing its kernels: saved random states and a second graph.
    pub fn checkpoint(&self) -> Seconds {
        match self {
            Self::OneRate { .. } => Seconds::ZERO,
            Self::Parts(parts) => {
                let compiled = if parts.software.compiled { COMPILED[1] } else { 1.0 };
                parts.constants.checkpoint * (compiled * parts.host_slowness)
            }
        }
    }

    /// Host time of each pass through a layer, beside issuing its kernels: to enter its compiled graph, or to call
    /// the modules of Megatron core.
    pub fn entering(&self) -> Seconds {
        match self {
            Self::Parts(parts) if parts.constants.host > Seconds::ZERO => {
                let software = parts.software;
                let once = match (software.compiled, software.modules) {
                    (true, _) => GRAPH,
                    (_, true) => parts.constants.modules,
                    _ => Seconds::ZERO,
                };
                once * parts.host_slowness
            }
            _ => Seconds::ZERO,
        }
    }

    /// Time of the host outside of all layers: update, zeroed gradients, the loop.
    pub fn outside(&self) -> Seconds {
        match self {
            Self::OneRate { .. } => Seconds::ZERO,
            Self::Parts(parts) => parts.each() * parts.constants.outside,
        }
    }
}
