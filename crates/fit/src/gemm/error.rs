//! Errors of fits of matrix products.

use crate::FitError;
use stepcast_core::fitted::gemm::{Shape, Variant};
use stepcast_core::quantity::Seconds;

/// Why measured products cannot be fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GemmError {
    /// Too few to fit the coefficients.
    #[error("{variant} has {found} measured products; {needed} are needed to fit its coefficients")]
    TooFew {
        /// The variant.
        variant: Variant,
        /// Measured.
        found: usize,
        /// Needed.
        needed: usize,
    },
    /// A time that no product takes.
    #[error("{variant} {shape} takes {time}")]
    BadTime {
        /// The variant.
        variant: Variant,
        /// The sizes.
        shape: Shape,
        /// The measured time.
        time: Seconds,
    },
    /// The same product twice.
    #[error("{variant} {shape} is there twice")]
    Twice {
        /// The variant.
        variant: Variant,
        /// The sizes.
        shape: Shape,
    },
    /// The measurements do not determine the coefficients.
    #[error(transparent)]
    Linear(#[from] FitError),
    /// A table with a hole.
    #[error("{variant} {shape} is missing: a table needs every combination of its sizes")]
    Hole {
        /// The variant.
        variant: Variant,
        /// The sizes.
        shape: Shape,
    },
}
