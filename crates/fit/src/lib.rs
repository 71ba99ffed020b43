//! Learning coefficients from measurements. Coefficients of times are times per unit of work, so they are
//! never negative: [`nnls`] is the only solver.

mod nnls;

pub use nnls::{Fit, FitError, nnls};
