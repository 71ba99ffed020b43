//! The model of products: kernels with fitted coefficients, and smooth corrections.

use super::costs::{Costs, Product};
use super::file::GemmFile;
use super::{Alignment, Corrections, Shape, Variant};
use crate::quantity::{Flops, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Calls in the longest queues: a guess. Between 10 and endless queues the errors of the H200 recording
/// (`validation/gemm/h200.csv.gz`) hardly differ.
const MOST_CALLS: f64 = 20.0;

/// What all variants share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Units that run one block of a kernel at a time.
    pub multiprocessors: u32,
    /// Operations after which a queue of timed calls ended; none: queues were long for every product.
    pub budget: Option<Flops>,
}

impl Machine {
    /// A product on it.
    pub fn product(&self, variant: Variant, shape: Shape) -> Product {
        Product::new(shape, variant, self.multiprocessors, self.first_share(shape.flops()))
    }

    /// One divided by the calls in a queue of products.
    pub fn first_share(&self, flops: Flops) -> f64 {
        self.budget.map_or(0.0, |budget| (budget / flops).floor().clamp(1.0, MOST_CALLS).recip())
    }
}

/// A predicted product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmTime {
    /// Of the call, as it was timed.
    pub time: Seconds,
    /// Of the device: computing or reading, writing and merging, without launch and start.
    pub device: Seconds,
    /// Whether anything like it was measured.
    pub coverage: Coverage,
}

/// Whether a prediction rests on measurements nearby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Its sizes lie within the measured range, its rows are aligned like measured ones.
    Measured,
    /// No rows of this alignment were measured: their cost relative to measured ones is assumed.
    OtherAlignment,
    /// A size lies outside the measured range: the kernels are extrapolated.
    OutsideSizes,
}

/// Times of products on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GemmFile", into = "GemmFile")]
pub struct GemmModel {
    /// What all variants share.
    pub machine: Machine,
    /// Kernels by kind of product and alignment of rows.
    pub variants: BTreeMap<Variant, BTreeMap<Alignment, Family>>,
}

/// What is known of one family of kernels of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Coefficients.
    pub costs: Costs,
    /// None where the costs are assumed.
    pub corrections: Option<Corrections>,
}

impl GemmModel {
    /// The time of a product; none where the variant was not measured.
    pub fn predict(&self, variant: Variant, shape: Shape) -> Option<GemmTime> {
        let families = self.variants.get(&variant)?;
        // Where nothing is known of these kernels, others are the best guess.
        let own = families.get(&Alignment::family(variant, shape));
        let Family { costs, corrections } = own.or_else(|| families.values().next())?;
        let product = self.machine.product(variant, shape);
        let kernel = product.kernel(costs);
        let correction = corrections.as_ref().map_or(1.0, |found| found.log_ratio(shape).exp());
        let covered = families.values().filter_map(|family| family.corrections.as_ref());
        Some(GemmTime {
            time: product.time(costs, &kernel) * correction,
            device: product.device_time(costs, &kernel) * correction,
            coverage: match own.and_then(|family| family.corrections.as_ref()) {
                Some(corrections) if corrections.covers(shape) => Coverage::Measured,
                None if covered.into_iter().any(|found| found.covers(shape)) => Coverage::OtherAlignment,
                _ => Coverage::OutsideSizes,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_share_a_budget() {
        let machine = Machine { multiprocessors: 132, budget: Some(Flops::new(2e9)) };
        for (flops, calls) in [(1e3, 20.0), (2.7e8, 7.0), (5.4e8, 3.0), (1.1e9, 1.0), (1e12, 1.0)] {
            assert!((machine.first_share(Flops::new(flops)) * calls - 1.0).abs() < 1e-12, "{flops}");
        }
        let endless = Machine { budget: None, ..machine };
        assert!(endless.first_share(Flops::new(1e12)).abs() < 1e-12);
    }
}
