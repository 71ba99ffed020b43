//! Times of matrix products C(m×n) = A(m×k)·B(k×n) on a fitted device.
//!
//! [`GemmModel`] models the kernels of a library: tiles, waves over the multiprocessors, a loop over k, splits of k,
//! memory and launches ([`costs`]), with smooth [`Corrections`] for the residuals. The coefficients are fitted
//! elsewhere.

mod alignment;
mod corrections;
pub mod costs;
mod file;
mod model;

pub use alignment::Alignment;
pub use corrections::{Corners, Corrections, interpolate};
pub use model::{Coverage, Family, GemmModel, GemmTime, Machine};

use crate::precision::Precision;
use crate::quantity::Flops;
use serde::{Deserialize, Serialize};
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
