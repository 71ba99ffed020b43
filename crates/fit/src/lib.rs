//! Learning coefficients from measurements: solvers ([`least_squares`], [`nnls`], [`golden_section`], [`Problem`]), what is
//! fitted with them ([`efficiency`], [`gemm`], [`kernels`], [`machine`], [`steps`], [`transfer`]), how well ([`Quality`]), and what is kept of it ([`artefact`]).
//!
//! Coefficients of times are times per unit of work, so they are never negative: models use [`nnls`].
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

pub mod artefact;
pub mod efficiency;
mod error;
pub mod gemm;
pub mod kernels;
mod linear;
pub mod machine;
mod minimum;
mod quality;
mod robust;
pub mod steps;
pub mod transfer;

pub use error::FitError;
pub use linear::{Fit, least_squares, nnls, nnls_while};
pub use minimum::golden_section;
pub use quality::Quality;
pub use robust::Problem;
