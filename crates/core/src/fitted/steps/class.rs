//! Classes of layers: what is fitted for each, and what is counted instead.

use crate::precision::Precision;
use serde::{Deserialize, Serialize};

/// Half of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// From the input to the loss.
    Forward,
    /// From the loss to the gradients.
    Backward,
}

impl Phase {
    /// In the order of a step.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];
}

/// Layers whose kernels behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A convolution with one group for each channel.
    Depthwise,
    /// A convolution over an image of few channels: the first of a network.
    Stem,
    /// A convolution of single pixels.
    Pointwise,
    /// A 3×3 convolution of stride 1, for which libraries have fast algorithms.
    Square,
    /// Any other convolution.
    Window,
    /// A matrix product with weights.
    Linear,
    /// Batch normalisation.
    BatchNorm,
    /// Layer normalisation.
    LayerNorm,
    /// Pooling in windows.
    Pool,
    /// Scaled dot-product attention.
    Attention,
    /// Non-linearities, and whatever else touches each element.
    Elementwise,
    /// Sums of tensors.
    Add,
    /// Dropout.
    Dropout,
    /// Concatenation.
    Concat,
    /// Look-up of rows in a table.
    Embedding,
    /// Pooling of whole images.
    GlobalPool,
    /// A GELU written out operation by operation, each a pass over memory.
    UnfusedGelu,
    /// Softmax and cross-entropy.
    Loss,
}

/// What a layer's time grows with, each a time at the nominal rates of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// Operations at the peak rate.
    Compute,
    /// Bytes of inputs and output at the memory rate.
    Memory,
    /// The matrix products it amounts to, as they were fitted by themselves.
    Product,
    /// The reduction over all pixels behind one tile of a weight gradient, on one multiprocessor.
    Reduction,
    /// One tile of the output on one multiprocessor: a wave that is not full.
    Wave,
    /// Bytes of the weights at the memory rate: they are transformed, or read once.
    Weights,
    /// Elements of one channel at one a nanosecond: one block for each channel.
    Channel,
}

/// Bytes of a number in 32 bits.
pub(super) const WIDE: f64 = 4.0;

impl Class {
    /// Those whose coefficients are fitted.
    pub const FITTED: [Self; 10] = [
        Self::Depthwise,
        Self::Stem,
        Self::Pointwise,
        Self::Square,
        Self::Window,
        Self::Linear,
        Self::BatchNorm,
        Self::LayerNorm,
        Self::Pool,
        Self::Attention,
    ];

    /// What the time of a fitted class grows with; `products`: whether matrix products were fitted by themselves.
    pub fn features(self, precision: Precision, phase: Phase, products: bool) -> &'static [Feature] {
        use Feature::{Channel, Compute, Memory, Product, Reduction, Wave, Weights};
        let wide = precision == Precision::Fp32;
        match (self, phase) {
            (Self::Linear, _) if products => &[Memory, Product],
            (Self::Pointwise, Phase::Forward) if products => &[Memory, Product],
            (Self::Pointwise, Phase::Backward) if products => &[Memory, Product, Reduction],
            (Self::Stem, Phase::Forward) => &[Compute, Memory],
            (Self::Stem, Phase::Backward) => &[Compute, Memory, Reduction],
            (Self::Pointwise, Phase::Forward) if wide => &[Compute, Memory, Wave],
            (Self::Pointwise, Phase::Backward) if wide => &[Compute, Memory, Reduction, Wave],
            (Self::Square | Self::Window, Phase::Forward) if wide => &[Compute, Memory, Wave, Weights],
            (Self::Square | Self::Window, Phase::Backward) if wide => {
                &[Compute, Memory, Reduction, Wave, Weights]
            }
            (Self::Pointwise | Self::Square | Self::Window, Phase::Forward) => &[Compute, Memory],
            (Self::Pointwise | Self::Square | Self::Window, Phase::Backward) => &[Compute, Memory, Reduction],
            (Self::Linear, _) => &[Compute, Memory, Weights],
            (Self::BatchNorm, _) => &[Channel, Memory],
            (Self::Attention, _) => &[Compute, Memory],
            _ => &[Memory],
        }
    }

    /// Passes over memory of a class that is not fitted: chosen by hand on the H200 steps in `validation/steps`.
    pub(super) fn passes(self, phase: Phase) -> f64 {
        let [forward, backward] = match self {
            Self::Dropout => [1.1, 1.25],
            Self::Concat => [1.0, 1.5],
            Self::Embedding => [1.5, 3.0],
            Self::GlobalPool => [2.0, 2.0],
            Self::Loss => [5.0, 4.0],
            Self::UnfusedGelu => [18.0, 28.0],
            Self::Add => [1.0, 1.0],
            _ => [0.95, 1.5],
        };
        match phase {
            Phase::Forward => forward,
            Phase::Backward => backward,
        }
    }

    /// Whether it is a convolution.
    pub(super) fn convolves(self) -> bool {
        matches!(self, Self::Depthwise | Self::Stem | Self::Pointwise | Self::Square | Self::Window)
    }

    /// Whether it multiplies by weights, which are cast where 16 bits are computed with.
    pub(super) fn multiplies(self) -> bool {
        self.convolves() || self == Self::Linear
    }

    /// Bytes of an element, chosen by hand on the H200 steps in `validation/steps`: normalisation and loss stay in 32
    /// bits under automatic casting; depth-wise kernels take as long in 16 bits as in 32.
    pub(super) fn element(self, precision: Precision) -> f64 {
        match (self, precision) {
            (Self::LayerNorm | Self::Loss | Self::Depthwise, _) | (_, Precision::Fp32 | Precision::Tf32) => {
                WIDE
            }
            _ => WIDE / 2.0,
        }
    }
}
