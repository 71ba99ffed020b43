//! The software of a step, as far as times of kernels depend on it.

use super::Sums;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{Implementation, OverlapPreset, Plan, Recipe, Strategy};

/// How a step is run, as far as its kernels depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Software {
    /// Number format.
    pub precision: Precision,
    /// Whether autocast finds weights in 32 bits, casts them for every product, and leaves sums between layers in 32 bits.
    pub casts: bool,
    /// Whether element-wise work is fused: by a compiler, or by kernels written for it.
    pub fused: bool,
    /// Whether a compiler issues kernels, with less time of the host.
    pub compiled: bool,
    /// Whether layers are modules of Megatron core, whose Python takes the host longer than kernels do.
    pub modules: bool,
    /// Number format of the layers' products.
    pub recipe: Recipe,
    /// Whether several devices run a training loop of PyTorch, whose host, copies and casts show beside fast devices.
    pub is_loop: bool,
    /// Where gradients of weights in 16 bits are added to sums in 32 bits.
    pub sums: Sums,
}

/// Seconds that torch.compile takes in the first step. PyTorch 2.11 on the 16 cores beside an H200, without a cache: 7.3 and 8.2 s for
/// Llama layers that are compiled one by one, whether 16 or 4; 32.3 and 14.9 s for whole models of Hugging Face with as many.
pub fn compilation(layers: u64, implementation: Implementation) -> f64 {
    match implementation {
        Implementation::HuggingFace | Implementation::Liger => 9.1 + 1.45 * layers as f64,
        _ => 7.8,
    }
}

impl Software {
    /// PyTorch's own kernels on one device, one by one.
    pub const fn eager(precision: Precision) -> Self {
        let (recipe, sums) = (Recipe::None, Sums::None);
        let casts = precision.is_mixed();
        Self { precision, casts, fused: false, compiled: false, modules: false, recipe, is_loop: false, sums }
    }

    /// Whether kernels were written for transformers, as those of Megatron-LM and Transformer Engine.
    pub(super) const fn is_written(&self) -> bool {
        self.fused && !self.compiled
    }

    /// The software of a strategy and its plan.
    pub fn from_strategy(strategy: &Strategy, plan: &Plan, workers: u64) -> Self {
        let written = !plan.implemented_by().is_eager();
        Self {
            precision: strategy.precision,
            casts: strategy.precision.is_mixed(),
            fused: strategy.compiled || written,
            compiled: strategy.compiled,
            modules: written && !strategy.compiled && plan.overlap == OverlapPreset::Megatron,
            recipe: plan.recipe,
            is_loop: !written && workers > 1,
            sums: Sums::of(plan),
        }
    }
}
