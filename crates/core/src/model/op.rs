//! The operations of layers, and the cost conventions of the element-wise ones.
//!
//! Sizes of two-dimensional windows are pairs of height and width. `infer.rs` computes output shapes.

use super::cost::Cost;

/// The operation of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// An input tensor; its shape is the layer's output.
    Input,
    Conv2d(Conv2d),
    /// Matrix product over the last dimension of features or of a sequence.
    Linear {
        out: u64,
        bias: bool,
        /// Whether the weight is shared with an embedding, so that only the bias is a new parameter.
        tied: bool,
    },
    Pool {
        kind: Pool,
        kernel: (u64, u64),
        stride: (u64, u64),
        padding: Padding,
        /// Whether a last window that only partly fits is used.
        ceil: bool,
    },
    /// Pooling over an image with windows chosen for a given output size.
    AdaptivePool {
        kind: Pool,
        size: (u64, u64),
    },
    Normalise(Norm),
    Activate(Activation),
    /// Looks up a row for each token: `[tokens]` becomes `[tokens, width]`.
    Embedding {
        /// Rows of the table.
        count: u64,
        width: u64,
        /// Whether the gradient consists of the rows that a batch touches.
        sparse: bool,
    },
    /// Adds the first rows of a learned table to a sequence.
    PositionEmbedding {
        /// Rows of the table: the maximum sequence length.
        count: u64,
    },
    /// Prepends one learned token to a sequence.
    ClassToken,
    /// Scaled dot-product attention: softmax(Q·Kᵀ/√d)·V in every head.
    ///
    /// Reads queries, keys and values from three inputs, or from one that contains them side by side. The projections
    /// before and after it are separate layers.
    Attention {
        heads: u64,
        /// Whether a query only sees keys up to its own position; then only those pairs are counted.
        causal: bool,
    },
    /// Sum of tensors with the same shape.
    Add,
    /// Product of two tensors; dimensions of size 1 in the second are broadcast (squeeze and excitation).
    Multiply,
    /// Concatenates tensors along their first dimension.
    Concat,
    Flatten,
    Dropout,
    /// Converts an image to a sequence of its pixels: `[c, h, w]` becomes `[h·w, c]`.
    ToSequence,
    SelectToken {
        /// Its position, counted from 0.
        index: u64,
    },
    /// Shortcut without parameters: every `stride`-th pixel, with zero channels added up to `out` (He 2015, option
    /// A).
    Shortcut {
        out: u64,
        /// Step in both directions.
        stride: u64,
    },
    /// Any other operation, with given output shape and counts.
    Counted(Cost),
}

/// Two-dimensional convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2d {
    pub out: u64,
    pub kernel: (u64, u64),
    pub stride: (u64, u64),
    pub padding: Padding,
    pub dilation: (u64, u64),
    /// Number of channel groups that are convolved separately; equals the channels in a depth-wise convolution.
    pub groups: u64,
    pub bias: bool,
}

/// Padding of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// No padding.
    Valid,
    /// Padding for which the output has the input size divided by the stride, rounded up (TensorFlow).
    Same,
    Explicit {
        top: u64,
        bottom: u64,
        left: u64,
        right: u64,
    },
}

impl Padding {
    pub const fn all(size: u64) -> Self {
        Self::Explicit { top: size, bottom: size, left: size, right: size }
    }
}

/// Reduction of a pooling window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Max,
    Average,
}

/// A normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// Over the batch, for each channel (Ioffe and Szegedy 2015).
    Batch {
        /// Whether it has a trained scale and shift.
        affine: bool,
    },
    /// Over the last dimension (Ba et al. 2016).
    Layer {
        /// Whether it has a trained scale and shift.
        affine: bool,
    },
    /// Over neighbouring channels (Krizhevsky et al. 2012).
    LocalResponse {
        /// Number of channels, including the channel itself.
        depth: u64,
    },
}

impl Norm {
    /// Operations per element.
    ///
    /// Mean 1, variance 3, subtraction and division 2, scale and shift 2. Local response: square and sum for each
    /// neighbour, factor and offset, a power computed as a logarithm and an exponential, and the product.
    pub fn operations(self) -> u64 {
        match self {
            Self::Batch { affine } | Self::Layer { affine } => 6 + 2 * u64::from(affine),
            Self::LocalResponse { depth } => depth.saturating_mul(2).saturating_add(2 + 2 * EXPONENTIAL + 1),
        }
    }
}

/// A non-linearity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// 1/(1+e⁻ˣ).
    Sigmoid,
    /// (e²ˣ−1)/(e²ˣ+1).
    Tanh,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
    /// ½x(1+tanh(√(2/π)(x+0.044715x³))).
    Gelu,
    /// x·sigmoid(x), also called swish.
    Silu,
    /// x·relu6(x+3)/6.
    Hardswish,
    /// Exponentials divided by their sum along the last dimension.
    Softmax,
}

/// Operations of an exponential computed as a series of 20 terms: 1 + 4·20 (Zeng 2023, eq. 26).
pub const EXPONENTIAL: u64 = 1 + 4 * 20;

impl Activation {
    /// Operations per element, with 81 for an exponential (Zeng 2023, eqs. 15, 25 and 26).
    pub const fn operations(self) -> u64 {
        match self {
            Self::Sigmoid => EXPONENTIAL + 2,
            Self::Tanh => EXPONENTIAL + 4,
            Self::Relu => 1,
            Self::Relu6 => 2,
            Self::Gelu => Self::Tanh.operations() + 8,
            Self::Silu => Self::Sigmoid.operations() + 1,
            Self::Hardswish => Self::Relu6.operations() + 3,
            // The maximum, its subtraction, the sum, the division.
            Self::Softmax => EXPONENTIAL + 4,
        }
    }
}
