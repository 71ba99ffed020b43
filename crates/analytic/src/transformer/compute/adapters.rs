//! Adapters beside frozen matrices, and frozen matrices that are stored in fewer bits.

use super::shard::AdapterProducts;
use super::{Computed, Parts, Product, Shard, Work, pointwise};
use stepcast_core::model::transformer::{Backward, Target};

/// Passes over the output, in units of w: B's product is multiplied by its scale and added to the frozen one's; backward, the
/// gradient is scaled. In one kernel where element-wise work is fused.
const SCALED: [f64; 2] = [5.0, 2.0];
const SCALED_FUSED: [f64; 2] = [3.0, 0.0];

/// Passes over the input where the gradients through the frozen matrix and through A are added.
const SUMMED: f64 = 3.0;

/// Bytes of dropout's mask, and its passes over A's input.
const DROPOUT: (f64, f64) = (1.0, 2.0);

/// DoRA, forward and backward: passes over the matrix, whose columns with BA are measured, and over the output, which is scaled
/// by their lengths (as PEFT computes it).
const DORA_MATRIX: [f64; 2] = [6.0, 0.0];
const DORA_OUTPUT: [f64; 2] = [6.0, 6.0];
const DORA_KERNELS: [f64; 2] = [8.0, 8.0];

/// Kernels that write a frozen matrix in 16 bits: its scales, then its weights.
const EXPANDED_KERNELS: f64 = 2.0;

impl Parts {
    /// All adapters of a layer.
    pub(super) fn adapters(&self, shard: &Shard<'_>) -> Computed {
        shard.adapters().iter().fold(Computed::default(), |sum, own| sum.and(self.adapter(shard, own)))
    }

    fn adapter(&self, shard: &Shard<'_>, own: &AdapterProducts) -> Computed {
        let AdapterProducts { a, b, of_layer } = own;
        let of_input = shard.backward == Backward::All || !of_layer;
        let mut sum = self.matrices(&[*a], [of_input, true]).and(self.matrices(&[*b], [true, true]));
        let w = self.width();
        let (input, output) = (a.rows * a.depth * a.count, b.rows * b.columns * b.count);
        let pass = |bytes: f64, kernels: f64| Work { device: self.passing(bytes), kernels };
        let (scaled, kernels) = match self.software.fused {
            true => (SCALED_FUSED, [1.0, 0.0]),
            false => (SCALED, [2.0, 1.0]),
        };
        sum.forward = sum.forward.and(pass(w * scaled[0] * output, kernels[0]));
        sum.input = sum.input.and(pass(w * scaled[1] * output, kernels[1]));
        if of_input {
            sum.input = sum.input.and(pass(w * SUMMED * input, 1.0));
        }
        let adapters = shard.shape.tuning.adapters;
        if adapters.is_some_and(|own| own.dropout) {
            let dropped = pass((DROPOUT.0 + w * DROPOUT.1) * input, 1.0);
            sum.forward = sum.forward.and(dropped);
            sum.input = sum.input.and(dropped);
        }
        if adapters.is_some_and(|own| own.dora) {
            let matrix = a.depth * b.columns * a.count;
            let merged = Product { rows: b.columns, columns: a.depth, depth: a.columns, count: a.count };
            let work = |index: usize| {
                pass(w * (DORA_MATRIX[index] * matrix + DORA_OUTPUT[index] * output), DORA_KERNELS[index])
            };
            let product = Work { device: self.product(&merged), kernels: 1.0 };
            sum.forward = sum.forward.and(product).and(work(0));
            sum.input = sum.input.and(work(1));
        }
        sum
    }

    /// Expanding weights: each product first reads them in few bits and writes them in 16.
    pub(super) fn expanded(&self, shard: &Shard<'_>, products: &[Product], of_input: bool) -> Computed {
        let base = shard.shape.tuning.adapters.map(|own| own.base).filter(|base| base.is_expanded());
        let Some(base) = base else { return Computed::default() };
        let mut sum = Work::default();
        for product in products.iter().filter(|product| product.count > 0.0) {
            let device = self.streaming((base.bytes() + pointwise::HALF) * product.weights());
            sum = sum.and(Work { device, kernels: EXPANDED_KERNELS });
        }
        Computed { forward: sum, input: if of_input { sum } else { Work::default() }, ..Computed::default() }
    }

    /// The last product of a layer and the sum behind it, where no gradient needs that product's input: PyTorch's
    /// checkpoints stop recomputing as soon as all saved tensors exist. Constants for layers that are trained themselves were fitted to
    /// steps that count it.
    pub(super) fn behind_last_kept(&self, shard: &Shard<'_>) -> Work {
        if shard.experts.is_some() || shard.shape.needs_input(&[Target::Down]) {
            return Work::default();
        }
        let down = Product::new(shard.tokens, shard.hidden, shard.mlp);
        let sum = self.passing(3.0 * self.width() * shard.own_tokens * shard.hidden);
        Work { device: self.product(&down) + sum, kernels: 2.0 }
    }
}
