//! Model of matrix products: kernels with fitted coefficients, and smooth corrections.

use super::costs::{Costs, Product};
use super::file::GemmFile;
use super::{Alignment, Corrections, Shape, Variant};
use crate::quantity::{Flops, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of calls in the longest queues: a guess. For any number from 10 to infinity, the errors on the H200
/// recording (`validation/gemm/h200.csv.gz`) hardly differ.
const MOST_CALLS: f64 = 20.0;

/// Properties shared by all variants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Number of units that each run one block of a kernel at a time.
    pub multiprocessors: u32,
    /// Number of operations after which a queue of timed calls ended; none if queues were long for every product.
    pub budget: Option<Flops>,
}

impl Machine {
    pub fn product(&self, variant: Variant, shape: Shape) -> Product {
        Product::new(shape, variant, self.multiprocessors, self.first_share(shape.flops()))
    }

    /// One divided by the number of calls in a queue of products with `flops` operations each.
    pub fn first_share(&self, flops: Flops) -> f64 {
        self.budget.map_or(0.0, |budget| (budget / flops).floor().clamp(1.0, MOST_CALLS).recip())
    }
}

/// A predicted time of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmTime {
    /// Time of the call, as in the measurement.
    pub time: Seconds,
    /// Device time: computing or reading, writing and merging, without launch and fixed cost.
    pub device: Seconds,
    /// Whether similar products were measured.
    pub coverage: Coverage,
}

/// Whether a prediction is based on similar measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The sizes lie within the measured range, and the alignment of the rows was measured.
    Measured,
    /// This alignment was not measured: its cost relative to the measured ones is assumed.
    OtherAlignment,
    /// A size lies outside the measured range: the model is extrapolated.
    OutsideSizes,
}

/// Model of the times of products on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "GemmFile", into = "GemmFile")]
pub struct GemmModel {
    /// Properties shared by all variants.
    pub machine: Machine,
    /// Kernels by variant and alignment of rows.
    pub variants: BTreeMap<Variant, BTreeMap<Alignment, Family>>,
}

/// Fitted model of one family of kernels of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    pub costs: Costs,
    /// None if the costs are assumed.
    pub corrections: Option<Corrections>,
}

impl GemmModel {
    /// The time of a product; none if the variant was not measured.
    pub fn predict(&self, variant: Variant, shape: Shape) -> Option<GemmTime> {
        let families = self.variants.get(&variant)?;
        // If these kernels were not fitted, another family is the best guess.
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
