//! Products with weights, forward and backward: casts of their operands, and sums of their gradients.

use super::kernels::Operands;
use super::{Computed, Parts, Product, Shard, Work, pointwise};
use stepcast_core::strategy::{OverlapPreset, Plan, Recipe};

/// Where gradients of weights are accumulated in 32 bits over micro-batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sums {
    /// Nowhere: gradients stay in the format of weights.
    None,
    /// In the product that computes them, as Transformer Engine does.
    InProduct,
    /// A separate kernel after each product.
    Apart,
}

impl Sums {
    /// Where a plan accumulates: eager software has 32-bit sums only where it keeps Megatron's states (nanotron).
    pub(super) fn of(plan: &Plan) -> Self {
        let [weight, gradient, _] = plan.states.bytes();
        match (weight < gradient, plan.implemented_by().is_eager(), plan.overlap) {
            (false, ..) => Self::None,
            (true, false, _) => Self::InProduct,
            (true, true, OverlapPreset::Megatron) => Self::Apart,
            (true, true, _) => Self::None,
        }
    }
}

/// The operation that wrote a product's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// A norm, which Transformer Engine lets write the format of the product.
    Normed,
    /// Attention, an activation or the permutation of tokens, in 16 bits.
    Plain,
}

/// Bytes moved for each weight to add its gradient to a sum in 32 bits: by the product itself, beyond the 16 bits that it would
/// write anyway; and by a separate kernel.
const ADDED: f64 = 6.0;
const ADDED_APART: f64 = 10.0;

/// Share of these transfers that a product does not hide, and the increase of this share as they approach the product's time:
/// on one H200 products of 512 to 16,384 tokens, 3 to 350 million weights, singly and of 4 to 16 experts, take 1.2 to 2 times as long at
/// 512 tokens, 1.1 at 2,048 and 1.02 to 1.04 from 4,096 on (research/transformers/accumulate.py, PyTorch 2.11).
const SHOWN: [f64; 2] = [0.35, 0.65];

impl Parts {
    /// Products of an MLP; the last one reads what the activation has written.
    pub(super) fn mlp(&self, shard: &Shard<'_>, products: &[Product], input: Input) -> Computed {
        let last = products.iter().rposition(|product| product.count > 0.0).unwrap_or(0);
        let (first, last) = products.split_at(last);
        self.linear(shard, first, true, input).and(self.linear(shard, last, true, Input::Plain))
    }

    /// Products of a layer. In 8 or 4 bits, the input, the weights and the gradient of the output are cast.
    pub(super) fn linear(
        &self,
        shard: &Shard<'_>,
        products: &[Product],
        of_input: bool,
        input: Input,
    ) -> Computed {
        let trained = shard.shape.trains_matrices();
        let recipe = self.software.recipe;
        let mut sum = self
            .matrices_of(products, [of_input, trained], self.narrow)
            .and(self.expanded(shard, products, of_input));
        if recipe == Recipe::None {
            return sum;
        }
        for product in products.iter().filter(|product| product.count > 0.0) {
            let (bytes, kernels) = match self.software.is_written() {
                true => pointwise::cast_fused(recipe, input),
                false => pointwise::cast(recipe),
            };
            let cast = |index: usize, numbers: f64| Work {
                device: self.passing(bytes[index] * numbers * product.count),
                kernels: kernels[index] * self.issued(product),
            };
            let Product { rows, columns, depth, .. } = *product;
            sum.forward = sum.forward.and(cast(0, rows * depth)).and(cast(1, depth * columns));
            sum.input = sum.input.and(cast(2, rows * columns));
        }
        sum
    }

    /// Forward and those gradients of products with weights that exist, of inputs and of weights. Under automatic mixed
    /// precision, weights are cast before the first and their gradients after the last.
    pub(super) fn matrices(&self, products: &[Product], passes: [bool; 2]) -> Computed {
        self.matrices_of(products, passes, Operands::WIDE)
    }

    pub(super) fn matrices_of(
        &self,
        products: &[Product],
        [of_input, of_weight]: [bool; 2],
        operands: Operands,
    ) -> Computed {
        let mut sum = Computed::default();
        for product in products.iter().filter(|product| product.count > 0.0) {
            let kernels = self.issued(product);
            let work = |product: Product| Work { device: self.product_of(&product, operands), kernels };
            let cast = match self.software.casts && of_weight {
                true => Work { device: self.streaming(pointwise::CAST * product.weights()), kernels: 1.0 },
                false => Work::default(),
            };
            sum.forward = sum.forward.and(work(*product)).and(cast);
            if of_input {
                sum.input = sum.input.and(work(product.of_input()));
            }
            if of_weight {
                let gradient = work(product.of_weight());
                sum.weight = sum.weight.and(gradient).and(self.summing(product, gradient)).and(cast);
            }
        }
        sum
    }

    /// Additional time to add the gradients of a product's weights to sums in 32 bits instead of writing them in 16.
    fn summing(&self, product: &Product, gradient: Work) -> Work {
        let weights = product.weights();
        match self.software.sums {
            Sums::None => Work::default(),
            Sums::InProduct => {
                let moved = self.streaming(ADDED * weights);
                let depth = (moved / gradient.device).min(1.0);
                Work { device: moved * (SHOWN[0] + SHOWN[1] * depth), kernels: 0.0 }
            }
            Sums::Apart => {
                Work { device: self.streaming(ADDED_APART * weights), kernels: self.issued(product) }
            }
        }
    }
}
