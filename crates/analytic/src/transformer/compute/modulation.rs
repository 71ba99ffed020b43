//! Matrices that turn a signal into tokens, and conditions that scale, shift and gate the halves of a layer.

use super::{Computed, Parts, Product, Shard, Work};

/// Passes of a scale and a shift over hidden states, and of a gate, forward and backward: a product and a sum; gradients of the states, and
/// of the vectors, which are products that are summed over tokens. And their kernels.
const SHIFTED: [f64; 2] = [4.0, 7.0];
const GATED: [f64; 2] = [2.0, 6.0];
const SHIFTED_KERNELS: [f64; 2] = [2.0, 4.0];
const GATED_KERNELS: [f64; 2] = [1.0, 3.0];

/// These passes where they are fused with the norm before them and the sum behind them: sums over tokens read gradients and states.
const SHIFTED_FUSED: [f64; 2] = [0.0, 2.0];
const GATED_FUSED: [f64; 2] = [1.0, 2.0];

/// Kernels of the condition in a layer beside its product: a non-linearity, and sums of gradients.
const CONDITION_KERNELS: [f64; 2] = [1.0, 3.0];

impl Parts {
    /// The modulation of one stream of a layer.
    pub(super) fn modulation(&self, shard: &Shard<'_>) -> Computed {
        let vectors = shard.shape.modulation_of(shard.block.mixer) / shard.block.mixer.streams();
        self.modulated(shard, vectors, shard.block.halves() as f64)
    }

    /// The scale and the shift before the output layer.
    pub(super) fn last_modulation(&self, shard: &Shard<'_>) -> Computed {
        self.modulated(shard, shard.shape.last_modulation(), 0.0)
    }

    /// Modulation by vectors of a condition, gates among them: their product, and the passes over hidden states.
    fn modulated(&self, shard: &Shard<'_>, vectors: u64, gates: f64) -> Computed {
        if vectors == 0 {
            return Computed::default();
        }
        let columns = vectors as f64 * shard.hidden / shard.tensor;
        let product = Product::new(shard.samples, columns, shard.hidden);
        let sum = self.matrices(&[product], [true, shard.shape.trains_matrices()]);
        let numbers = shard.own_tokens * shard.hidden;
        let (r, w) = (self.residual_width(shard), self.width());
        let shifts = gates.max(1.0);
        let (shifted, gated) = match self.software.fused {
            true => (SHIFTED_FUSED, GATED_FUSED),
            false => (SHIFTED, GATED),
        };
        let work = |index: usize| Work {
            device: self.passing(numbers * (shifts * shifted[index] * r + gates * gated[index] * w)),
            kernels: match self.software.fused {
                true => index as f64 * (shifts + gates),
                false => shifts * SHIFTED_KERNELS[index] + gates * GATED_KERNELS[index],
            } + CONDITION_KERNELS[index],
        };
        sum.and(Computed { forward: work(0), input: work(1), ..Computed::default() })
    }

    /// Matrices that turn a signal into tokens, and those of conditions before the first layer.
    pub(super) fn receiving(&self, shard: &Shard<'_>) -> Computed {
        let trained = !shard.shape.tuning.frozen_embedding;
        let (r, w) = (self.residual_width(shard), self.width());
        let mut sum = Computed::default();
        for (place, (rows, input)) in shard.shape.signal_matrices().into_iter().enumerate() {
            if rows * input == 0 {
                continue;
            }
            let rows = rows as f64 * shard.samples;
            let product = Product::new(rows, shard.hidden, input as f64);
            // The first of a pair has no gradient of its input.
            let of_input = trained && place % 2 == 1;
            let numbers = rows * shard.hidden;
            // A bias, a non-linearity or positions, and their gradients.
            let passes = Computed {
                forward: Work { device: self.passing(2.0 * r * numbers), kernels: 2.0 },
                input: Work {
                    device: self.passing(if trained { 3.0 * w } else { 0.0 } * numbers),
                    kernels: 2.0,
                },
                ..Computed::default()
            };
            sum = sum.and(self.matrices(&[product], [of_input, trained])).and(passes);
        }
        sum
    }
}
