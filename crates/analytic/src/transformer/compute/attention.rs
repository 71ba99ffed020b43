//! Core attention: scores, softmax and weighted values.

use super::{Computed, Parts, Product, Shard, Work};
use stepcast_core::quantity::{Flops, Seconds};
use stepcast_core::strategy::Attention;

/// Operations of flash attention's backward pass against its forward: four products, and the scores again.
const FLASH_BACKWARD: f64 = 2.5;

/// Kernels of flash attention, forward and backward: the sums of gradients before and after have their own.
const FLASH_KERNELS: [f64; 2] = [1.0, 3.0];

/// Width of a head at which shares of flash attention are stated.
const HEAD: f64 = 128.0;

/// Passes over the scores of unfused attention in units of their width, forward and backward: written by the product,
/// read and written by the fused scale, mask and softmax, read by the product; backward the same of their gradients, and
/// the softmax once more.
const SCORES: [f64; 2] = [4.0, 7.0];

/// The same of dropout, a kernel of its own either way: scores read and written, and a mask of half their width.
const SCORES_DROPOUT: [f64; 2] = [2.5, 2.5];

/// Kernels of unfused attention: products, softmax and copies of heads.
const UNFUSED_KERNELS: [f64; 2] = [5.0, 10.0];

impl Parts {
    /// Core attention.
    pub(super) fn attention(&self, shard: &Shard<'_>) -> Computed {
        let core = match shard.attention {
            Attention::Flash => self.flash(shard),
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
        let lost = own.head * self.pace;
        let narrow = (1.0 + lost / width as f64) / (1.0 + lost / HEAD);
        let blocks = if shard.shape.causal { 1.0 + own.diagonal / shard.keys.max(1.0) } else { 1.0 };
        let operations = shard.core * blocks * narrow;
        let [query, keys, values] = shard.widths;
        let moved = self.width() * shard.tokens * (2.0 * query + keys + values);
        let work = |index: usize, operations: f64, moved: f64| {
            let computing: Seconds = Flops::new(operations) / self.flash[index];
            Work { device: computing.max(self.passing(moved)), kernels: FLASH_KERNELS[index] }
        };
        [work(0, operations, moved), work(1, FLASH_BACKWARD * operations, 3.0 * moved)]
    }

    /// Unfused attention: a product for every head, and passes over the scores, whatever is masked.
    fn unfused(&self, shard: &Shard<'_>) -> [Work; 2] {
        let sequence = shard.shape.sequence as f64;
        let (key, value) = shard.shape.widths();
        // Every rank has a part of the queries and all keys.
        let count = shard.heads * shard.tokens / sequence;
        let product = |columns, depth| Product { rows: sequence, columns, depth, count };
        let products =
            self.product(&product(sequence, key as f64)) + self.product(&product(value as f64, sequence));
        let scores = count * sequence * sequence * self.width();
        let passes = |index: usize| SCORES[index] + if shard.dropout { SCORES_DROPOUT[index] } else { 0.0 };
        let work = |index: usize, times: f64| Work {
            device: products * times + self.passing(passes(index) * scores),
            kernels: UNFUSED_KERNELS[index],
        };
        [work(0, 1.0), work(1, 2.0)]
    }
}
