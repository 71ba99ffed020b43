//! Errors of fits of matrix products.

use crate::FitError;
use stepcast_core::fitted::gemm::{Shape, Variant};
use stepcast_core::quantity::Seconds;

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
