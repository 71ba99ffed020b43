//! Times of matrix products C(m×n) = A(m×k)·B(k×n), fitted.
//!
//! Two ways: [`GemmTable`] is that of Oyama 2016 (interpolation between measured sizes); [`fit`] finds the coefficients
//! of [`GemmModel`](stepcast_core::fitted::gemm::GemmModel), what a library's kernels do. It finds out how fast the host was and how
//! calls were timed, and interpolates only what that leaves unexplained.

mod artefact;
mod assumed;
mod host;
mod learn;
mod model;
mod smooth;
mod table;
mod timing;

pub use artefact::to_toml;
pub use model::fit;
pub use table::GemmTable;

use crate::FitError;
use stepcast_core::fitted::gemm::{Shape, Variant};
use stepcast_core::quantity::Seconds;

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
