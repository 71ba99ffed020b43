//! Fitting: from files with measurements to fitted artefacts.
//!
//! Solvers ([`least_squares`], [`nnls`], [`golden_section`], [`Problem`]); one module for each kind of measurement, which
//! reads it, fits it and reports the errors ([`efficiency`], [`gemm`], [`kernels`], [`machine`], [`sprint`], [`steps`], [`transfer`]);
//! and the result of a fit ([`FitReport`]); [`streams`] reads a recording.
//!
//! Coefficients of times are times per unit of work, so they are never negative: models use [`nnls`].

pub mod efficiency;
pub mod gemm;
pub mod kernels;
mod linear;
pub mod machine;
mod measurements;
mod nonlinear;
mod report;
pub mod sprint;
pub mod steps;
pub mod streams;
pub mod transfer;

pub use linear::{Fit, least_squares, nnls, nnls_while};
pub use measurements::Split;
pub use nonlinear::{Problem, golden_section};
pub use report::{FitError, FitErrorRow, FitErrors, FitReport, FitSummary, Quality, civil, today};
