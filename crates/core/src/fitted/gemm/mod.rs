//! Times of matrix products C(m×n) = A(m×k)·B(k×n) on a fitted device.
//!
//! [`GemmModel`] models the kernels of a library: tiles, waves over the multiprocessors, a loop over k, splits of k,
//! memory and launches ([`costs`]), with smooth [`Corrections`] for the residuals. The coefficients are fitted
//! elsewhere.
//!
//! Matrices are stored row by row. Rows whose length is a multiple of 16 bytes can be copied in bulk, rows of a
//! multiple of 4 bytes only word by word, and others only element by element. Libraries have separate tensor-core
//! kernels for each case, with their own coefficients ([`Alignment::family`]). Without tensor cores, one kind of
//! kernel serves all cases: on an H200, 360 fp32 products with sizes just below powers of two took the same time as
//! those powers of two within 1 % in the median, aligned or not (`validation/gemm/alignment_fp32_h200.csv.gz`).

mod corrections;
pub mod costs;
mod file;

pub use corrections::{Corners, Corrections, interpolate};

use crate::precision::Precision;
use crate::quantity::{Flops, Seconds};
use costs::{Costs, Product};
use file::GemmFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Sizes of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
}

impl Shape {
    /// 2mnk: a multiply-add is two operations.
    pub fn flops(self) -> Flops {
        let [m, n, k] = self.sizes();
        Flops::new(2.0 * m * n * k)
    }

    /// m, n and k.
    pub fn sizes(self) -> [f64; 3] {
        [self.m, self.n, self.k].map(f64::from)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.m, self.n, self.k)
    }
}

/// Which operands are stored transposed: the first letter is A, the second B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transposition {
    /// Neither.
    Nn,
    /// B.
    Nt,
    /// A.
    Tn,
    /// Both.
    Tt,
}

crate::variant_names!(Transposition { Nn = "nn", Nt = "nt", Tn = "tn", Tt = "tt", });

impl FromStr for Transposition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| format!("\"{text}\" is no transposition"))
    }
}

/// Properties other than the sizes that select a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Variant {
    pub precision: Precision,
    /// Storage order of the operands.
    pub transposition: Transposition,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.precision, self.transposition)
    }
}

/// Largest C, in elements, for which kernels that copy single elements launch a second kernel; estimated from
/// `validation/gemm/alignment_h200.csv.gz` (docs/methods/gemm.md, Alignment).
const SMALL_RESULT: f64 = 48e3;

/// Largest unit in which every row of every operand can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alignment {
    /// 16 bytes.
    Bulk,
    /// 4 bytes.
    Word,
    Element,
}

impl Alignment {
    pub fn of_rows(variant: Variant, shape: Shape) -> Self {
        let element = u64::from(variant.precision.width());
        let Shape { m, n, k } = shape;
        let (row_of_a, row_of_b) = match variant.transposition {
            Transposition::Nn => (k, n),
            Transposition::Nt => (k, k),
            Transposition::Tn => (m, n),
            Transposition::Tt => (m, k),
        };
        let multiple_of = |bytes: u64| {
            [row_of_a, row_of_b, n].iter().all(|row| (u64::from(*row) * element).is_multiple_of(bytes))
        };
        match (multiple_of(16), multiple_of(4)) {
            (true, _) => Self::Bulk,
            (false, true) => Self::Word,
            (false, false) => Self::Element,
        }
    }

    /// The alignments that have their own kernels; without tensor cores, one kind serves all.
    pub fn families(precision: Precision) -> &'static [Self] {
        match precision {
            Precision::Fp32 => &[Self::Bulk],
            Precision::Tf32 => &[Self::Bulk, Self::Word],
            Precision::Fp16 | Precision::Bf16 | Precision::AmpFp16 | Precision::AmpBf16 => {
                &[Self::Bulk, Self::Word, Self::Element]
            }
        }
    }

    /// The alignment whose kernels compute a product.
    pub fn family(variant: Variant, shape: Shape) -> Self {
        match variant.precision {
            Precision::Fp32 => Self::Bulk,
            _ => Self::of_rows(variant, shape),
        }
    }

    /// Whether a second kernel is launched even if k is not split.
    pub(super) fn always_second(self, precision: Precision, elements: f64) -> bool {
        self == Self::Element && precision != Precision::Fp32 && elements <= SMALL_RESULT
    }
}

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
