//! Learning coefficients from measurements: solvers ([`least_squares`], [`nnls`]), what is fitted with them
//! ([`gemm`]), and how well ([`Quality`]).
//!
//! Coefficients of times are times per unit of work, so they are never negative: models use [`nnls`].

mod error;
pub mod gemm;
mod linear;
mod quality;

pub use error::FitError;
pub use linear::{Fit, least_squares, nnls};
pub use quality::Quality;
