//! Cost of one layer: operations per sample and parameters, and the rows of tables with a sparse gradient.
//!
//! A bias is one addition per output element, pooling one operation per element of each window; non-linearities include the
//! softmax of an attention ([`Activation::operations`](super::Activation::operations)), normalisations count as
//! [`Norm::operations`](super::Norm::operations). Weights are kernels, matrices, embeddings and scales of a normalisation;
//! biases include shifts of a normalisation; buffers are the running mean and variance of a batch normalisation and its step
//! counter.

use super::op::Op;
use super::{Layer, Model};
use crate::quantity::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares [`Cost`] and [`CostKind`] with one line for each count.
macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident, $kind:ident;)*) => {
        /// Operations per sample in the forward pass, by kind, and the parameters of a layer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Cost { $($(#[$doc])* pub $field: u64,)* }

        /// One count of a [`Cost`], as a file names it; operations first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum CostKind { $($(#[$doc])* $kind,)* }

        impl CostKind {
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];
        }

        impl Cost {
            pub fn count_mut(&mut self, kind: CostKind) -> &mut u64 {
                match kind { $(CostKind::$kind => &mut self.$field,)* }
            }
        }
    };
}

counts! {
    /// Multiply-adds of convolutions, matrix products and attention; each counts as two.
    multiply_add, MultiplyAdd;
    /// Additions of a bias.
    bias, Bias;
    /// Non-linearities.
    activation, Activation;
    /// Pooling.
    pooling, Pooling;
    /// Normalisation.
    normalisation, Normalisation;
    /// Sums and products of tensors, scaling, dropout.
    elementwise, Elementwise;
    /// Trainable parameters that multiply.
    weights, Weights;
    /// Trainable parameters that are added.
    biases, Biases;
    /// Untrained state.
    buffers, Buffers;
}

/// Kinds of operations that are counted in addition to multiply-adds; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counting {
    pub bias: bool,
    /// Non-linearities.
    pub activation: bool,
    pub pooling: bool,
    pub normalisation: bool,
    /// Sums and products of tensors, scaling, dropout.
    pub elementwise: bool,
}

impl Counting {
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

    pub fn count(&self, kind: CostKind) -> u64 {
        let mut copy = *self;
        *copy.count_mut(kind)
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

/// Bytes of the index of a row.
const INDEX: f64 = 8.0;

/// The rows of a table with a sparse gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Rows of the table.
    pub count: u64,
    /// Elements of a row.
    pub width: u64,
    /// Rows that each sample looks up, counting repeated ones.
    pub lookups: u64,
}

impl Rows {
    /// Expected number of different rows that `samples` look up, if each of the n rows is as likely as any other:
    ///
    /// ```text
    /// n (1 − (1 − 1/n)^k)        for k lookups
    /// ```
    ///
    /// This is the largest expectation under any distribution: where some rows are more likely than others, fewer are touched.
    pub fn touched(&self, samples: f64) -> f64 {
        let (rows, lookups) = (self.count as f64, self.lookups as f64 * samples);
        if lookups <= 0.0 {
            return 0.0;
        }
        // For millions of rows 1 − 1/n loses most digits; the logarithm keeps them.
        -rows * (lookups * (-1.0 / rows).ln_1p()).exp_m1()
    }

    pub fn elements(&self, samples: f64) -> f64 {
        self.touched(samples) * self.width as f64
    }

    /// Size of the gradient of `samples` with elements of `element` bytes: the touched rows with their indices, or
    /// the whole table where that is smaller.
    pub fn bytes(&self, samples: f64, element: f64) -> Bytes {
        let dense = (self.count as f64) * (self.width as f64) * element;
        let row = self.width as f64 * element + INDEX;
        Bytes::new(dense.min(self.touched(samples) * row))
    }
}

impl Layer {
    /// The rows of its table, if the gradient of the table is sparse.
    pub fn rows(&self) -> Option<Rows> {
        match self.op {
            Op::Embedding { count, width, sparse: true } => {
                Some(Rows { count, width, lookups: self.output.elements() / width.max(1) })
            }
            _ => None,
        }
    }

    /// Parameters that a step of `samples` updates: all, or those in the touched rows.
    pub fn updated(&self, samples: f64) -> f64 {
        let weights = self.rows().map_or(self.cost.weights as f64, |rows| rows.elements(samples));
        weights + self.cost.biases as f64
    }

    /// Size of its gradients after a backward pass of `samples`, with elements of `element` bytes.
    pub(crate) fn gradient_bytes(&self, samples: f64, element: f64) -> f64 {
        let weights = self.cost.weights as f64 * element;
        let weights = self.rows().map_or(weights, |rows| rows.bytes(samples, element).get());
        weights + self.cost.biases as f64 * element
    }
}

impl Model {
    pub fn updated(&self, samples: f64) -> f64 {
        self.layers().iter().map(|layer| layer.updated(samples)).sum()
    }
}
