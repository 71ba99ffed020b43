//! Classes of layers: the features that are fitted for each, and the costs that are counted instead.

use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec};
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
    /// Both, in the order of a step.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];
}

/// Class of layers whose kernels behave alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A convolution with one group per channel.
    Depthwise,
    /// A convolution over an image with few channels: the first layer of a network.
    Stem,
    /// A 1×1 convolution.
    Pointwise,
    /// A 3×3 convolution of stride 1, for which libraries have fast algorithms.
    Square,
    /// Any other convolution.
    Window,
    /// A matrix product with a weight.
    Linear,
    BatchNorm,
    LayerNorm,
    Pool,
    Attention,
    /// Non-linearities and other element-wise operations.
    Elementwise,
    Add,
    Dropout,
    Concat,
    /// Table look-up of rows.
    Embedding,
    GlobalPool,
    /// A GELU implemented as separate operations, each a pass over memory.
    UnfusedGelu,
    /// Softmax and cross-entropy.
    Loss,
}

/// Quantities on which a layer's time depends linearly, each expressed as a time at the device's nominal rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// Operations divided by the peak rate.
    Compute,
    /// Bytes of inputs and output divided by the memory rate.
    Memory,
    /// The equivalent matrix products, with times from their own fit.
    Product,
    /// The reduction over all pixels for one tile of a weight gradient, on one multiprocessor.
    Reduction,
    /// One tile of the output on one multiprocessor: the cost of a partially filled wave.
    Wave,
    /// Bytes of the weights divided by the memory rate, for transforming or reading them once.
    Weights,
    /// Elements of one channel at one per nanosecond, because one block handles one channel.
    Channel,
}

/// Bytes of a 32-bit number.
pub(super) const WIDE: f64 = 4.0;

impl Class {
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

    /// Features of a fitted class; `products` tells whether matrix products have their own fit.
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

    /// Passes over memory of a class without a fit, tuned by hand on the H200 steps in `validation/steps`.
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

    pub(super) fn convolves(self) -> bool {
        matches!(self, Self::Depthwise | Self::Stem | Self::Pointwise | Self::Square | Self::Window)
    }

    /// Whether it multiplies by weights, which are cast in 16-bit computing.
    pub(super) fn multiplies(self) -> bool {
        self.convolves() || self == Self::Linear
    }

    /// Bytes per element, tuned by hand on the H200 steps in `validation/steps`: normalisation and loss stay in 32
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

/// Rates close to a device's data sheet. They only serve as units: the coefficients express the share that is
/// reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nominal {
    /// Peak rate in 32 bits.
    pub fp32: FlopsPerSec,
    /// Peak rate in 16 bits, on the tensor cores.
    pub bf16: FlopsPerSec,
    pub memory: BytesPerSec,
    /// Number of units that each run one block of a kernel at a time.
    pub multiprocessors: u32,
}

impl Nominal {
    /// Rates from the H200's data sheet, with memory at five sixths of the printed rate. They only serve as units:
    /// the coefficients absorb any error in them.
    pub fn h200() -> Self {
        Self {
            fp32: FlopsPerSec::new(67e12),
            bf16: FlopsPerSec::new(989e12),
            memory: BytesPerSec::new(4e12),
            multiprocessors: 132,
        }
    }

    pub fn peak(&self, precision: Precision) -> FlopsPerSec {
        if precision.width() == 2 { self.bf16 } else { self.fp32 }
    }
}
