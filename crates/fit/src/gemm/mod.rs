//! Times of matrix products C(m×n) = A(m×k)·B(k×n).
//!
//! Two ways: [`GemmTable`] is that of Oyama 2016 (interpolation between measured sizes); [`GemmModel`] fits what
//! a library's kernels do (tiles, waves over the multiprocessors, a loop over k, splits of k, memory, launches)
//! finds out how fast the host was and how calls were timed, and interpolates only what that leaves unexplained.

mod alignment;
mod artefact;
mod corrections;
mod costs;
mod host;
mod learn;
mod model;
mod table;
mod timing;

pub use alignment::Alignment;
pub use model::{Coverage, GemmModel, GemmTime, Machine};
pub use table::GemmTable;

use crate::FitError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use stepcast_core::device::Precision;
use stepcast_core::quantity::{Flops, Seconds};

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

    fn sizes(self) -> [f64; 3] {
        [self.m, self.n, self.k].map(f64::from)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.m, self.n, self.k)
    }
}

/// Which operands are stored transposed: first A, then B.
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

impl Transposition {
    const ALL: [(&'static str, Self); 4] =
        [("nn", Self::Nn), ("nt", Self::Nt), ("tn", Self::Tn), ("tt", Self::Tt)];
}

impl fmt::Display for Transposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, value)| value == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for Transposition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, value)| *value).ok_or_else(|| format!("\"{text}\" is no transposition"))
    }
}

/// What tells kernels apart beside their sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Variant {
    /// Number format.
    pub precision: Precision,
    /// How the operands are stored.
    pub transposition: Transposition,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.precision, self.transposition)
    }
}

/// One measured product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Which kind of kernel.
    pub variant: Variant,
    /// How large.
    pub shape: Shape,
    /// How long.
    pub time: Seconds,
}

/// Why measured products give no model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GemmError {
    /// Too few to tell what kernels cost.
    #[error("{variant} has {found} measured products; {needed} are needed to tell its coefficients")]
    TooFew {
        /// Whose.
        variant: Variant,
        /// Measured.
        found: usize,
        /// Needed.
        needed: usize,
    },
    /// A time that no product takes.
    #[error("{variant} {shape} takes {time}")]
    BadTime {
        /// Whose.
        variant: Variant,
        /// Of which sizes.
        shape: Shape,
        /// What it is said to take.
        time: Seconds,
    },
    /// The same product twice.
    #[error("{variant} {shape} is there twice")]
    Twice {
        /// Whose.
        variant: Variant,
        /// Of which sizes.
        shape: Shape,
    },
    /// The measurements do not determine the coefficients.
    #[error(transparent)]
    Linear(#[from] FitError),
    /// A table with a hole.
    #[error("{variant} {shape} is missing: a table needs every combination of its sizes")]
    Hole {
        /// Whose.
        variant: Variant,
        /// Of which sizes.
        shape: Shape,
    },
}

#[cfg(test)]
mod tests;
