//! Learning coefficients from measurements. Coefficients of times are times per unit of work, so they are
//! never negative: [`nnls`] solves for them. [`golden_section`] is for what is not linear.

mod minimum;
mod nnls;

pub use minimum::golden_section;
pub use nnls::{Fit, FitError, nnls};
