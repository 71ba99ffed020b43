//! Cost of one layer: operations per sample and parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operations per sample in the forward pass, by kind, and the parameters of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Multiply-adds of convolutions, matrix products and attention; each counts as two.
    pub multiply_add: u64,
    /// Additions of a bias: one per output element.
    pub bias: u64,
    /// Non-linearities, including the softmax of an attention (see
    /// [`Activation::operations`](super::Activation::operations)).
    pub activation: u64,
    /// Pooling: one per element of each window.
    pub pooling: u64,
    /// Normalisation (see [`Norm::operations`](super::Norm::operations)).
    pub normalisation: u64,
    /// Sums and products of tensors, scaling, dropout.
    pub elementwise: u64,
    /// Trainable parameters that multiply: kernels, matrices, embeddings, scales of a normalisation.
    pub weights: u64,
    /// Trainable parameters that are added: biases, shifts of a normalisation.
    pub biases: u64,
    /// Untrained state: running mean and variance of a batch normalisation and its step counter.
    pub buffers: u64,
}

/// One count of a [`Cost`], as a file names it; operations first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostKind {
    /// Multiply-adds of convolutions, matrix products and attention; each counts as two.
    MultiplyAdd,
    /// Additions of a bias.
    Bias,
    /// Non-linearities.
    Activation,
    /// Pooling.
    Pooling,
    /// Normalisation.
    Normalisation,
    /// Sums and products of tensors, scaling, dropout.
    Elementwise,
    /// Trainable parameters that multiply.
    Weights,
    /// Trainable parameters that are added.
    Biases,
    /// Untrained state.
    Buffers,
}

impl CostKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::MultiplyAdd,
        Self::Bias,
        Self::Activation,
        Self::Pooling,
        Self::Normalisation,
        Self::Elementwise,
        Self::Weights,
        Self::Biases,
        Self::Buffers,
    ];
}

/// Kinds of operations that are counted in addition to multiply-adds; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counting {
    /// Additions of a bias.
    pub bias: bool,
    /// Non-linearities.
    pub activation: bool,
    /// Pooling.
    pub pooling: bool,
    /// Normalisation.
    pub normalisation: bool,
    /// Sums and products of tensors, scaling, dropout.
    pub elementwise: bool,
}

impl Counting {
    /// Counts every kind.
    pub const ALL: Self =
        Self { bias: true, activation: true, pooling: true, normalisation: true, elementwise: true };
}

impl Cost {
    /// Forward operations under a counting convention.
    ///
    /// Saturates; in a built model, the sum over all kinds and layers is known to fit.
    pub fn forward(&self, counting: Counting) -> u64 {
        [
            (counting.bias, self.bias),
            (counting.activation, self.activation),
            (counting.pooling, self.pooling),
            (counting.normalisation, self.normalisation),
            (counting.elementwise, self.elementwise),
        ]
        .into_iter()
        .filter(|(counted, _)| *counted)
        .fold(self.multiply_add, |sum, (_, operations)| sum.saturating_add(operations))
    }

    /// Whether the layer computes nothing.
    pub fn is_free(&self) -> bool {
        self.forward(Counting::ALL) == 0
    }

    /// The count of one kind.
    pub fn count(&self, kind: CostKind) -> u64 {
        let mut copy = *self;
        *copy.count_mut(kind)
    }

    /// The count of one kind, to change it.
    pub fn count_mut(&mut self, kind: CostKind) -> &mut u64 {
        match kind {
            CostKind::MultiplyAdd => &mut self.multiply_add,
            CostKind::Bias => &mut self.bias,
            CostKind::Activation => &mut self.activation,
            CostKind::Pooling => &mut self.pooling,
            CostKind::Normalisation => &mut self.normalisation,
            CostKind::Elementwise => &mut self.elementwise,
            CostKind::Weights => &mut self.weights,
            CostKind::Biases => &mut self.biases,
            CostKind::Buffers => &mut self.buffers,
        }
    }

    /// The sum of two costs, if it and its forward operations of all kinds fit into 64 bits.
    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        let mut sum = self;
        for kind in CostKind::ALL {
            let count = sum.count_mut(kind);
            *count = count.checked_add(other.count(kind))?;
        }
        let (operations, _) = CostKind::ALL.split_at(6);
        operations.iter().try_fold(0_u64, |all, kind| all.checked_add(sum.count(*kind)))?;
        sum.weights.checked_add(sum.biases)?;
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_what_is_asked_for() {
        let cost = Cost {
            multiply_add: 1,
            bias: 10,
            activation: 100,
            pooling: 1000,
            normalisation: 10_000,
            elementwise: 100_000,
            ..Cost::default()
        };
        assert_eq!(cost.forward(Counting::default()), 1);
        assert_eq!(cost.forward(Counting { pooling: true, ..Counting::default() }), 1001);
        assert_eq!(cost.forward(Counting::ALL), 111_111);
    }

    #[test]
    fn refuses_a_sum_beyond_64_bits_even_across_kinds() {
        let most = Cost { multiply_add: u64::MAX, ..Cost::default() };
        let bias = Cost { bias: 1, ..Cost::default() };
        assert_eq!(most.checked_add(bias), None);
        assert_eq!(bias.checked_add(bias).map(|cost| cost.bias), Some(2));
    }
}
