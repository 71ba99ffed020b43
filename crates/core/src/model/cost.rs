//! Cost of one layer: operations per sample and parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operations per sample in the forward pass, by kind, and the parameters of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Cost {
    /// Multiply-adds of convolutions, matrix products and attention; each counts as two.
    #[serde(skip_serializing_if = "is_zero")]
    pub multiply_add: u64,
    /// Additions of a bias: one per output element.
    #[serde(skip_serializing_if = "is_zero")]
    pub bias: u64,
    /// Non-linearities, including the softmax of an attention (see
    /// [`Activation::operations`](super::Activation::operations)).
    #[serde(skip_serializing_if = "is_zero")]
    pub activation: u64,
    /// Pooling: one per element of each window.
    #[serde(skip_serializing_if = "is_zero")]
    pub pooling: u64,
    /// Normalisation (see [`Norm::operations`](super::Norm::operations)).
    #[serde(skip_serializing_if = "is_zero")]
    pub normalisation: u64,
    /// Sums and products of tensors, scaling, dropout.
    #[serde(skip_serializing_if = "is_zero")]
    pub elementwise: u64,
    /// Trainable parameters that multiply: kernels, matrices, embeddings, scales of a normalisation.
    #[serde(skip_serializing_if = "is_zero")]
    pub weights: u64,
    /// Trainable parameters that are added: biases, shifts of a normalisation.
    #[serde(skip_serializing_if = "is_zero")]
    pub biases: u64,
    /// Untrained state: running mean and variance of a batch normalisation and its step counter.
    #[serde(skip_serializing_if = "is_zero")]
    pub buffers: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
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

    /// The sum of two costs, if it and its forward operations of all kinds fit into 64 bits.
    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        let sum = Self {
            multiply_add: self.multiply_add.checked_add(other.multiply_add)?,
            bias: self.bias.checked_add(other.bias)?,
            activation: self.activation.checked_add(other.activation)?,
            pooling: self.pooling.checked_add(other.pooling)?,
            normalisation: self.normalisation.checked_add(other.normalisation)?,
            elementwise: self.elementwise.checked_add(other.elementwise)?,
            weights: self.weights.checked_add(other.weights)?,
            biases: self.biases.checked_add(other.biases)?,
            buffers: self.buffers.checked_add(other.buffers)?,
        };
        let operations =
            [sum.multiply_add, sum.bias, sum.activation, sum.pooling, sum.normalisation, sum.elementwise];
        operations.into_iter().try_fold(0_u64, u64::checked_add)?;
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
