//! Times of matrix products C(m×n) = A(m×k)·B(k×n), fitted.
//!
//! Two ways: [`GemmTable`] is that of Oyama 2016 (interpolation between measured sizes); [`fit`] finds the coefficients
//! of [`GemmModel`](stepcast_core::fitted::gemm::GemmModel), what a library's kernels do. It finds out how fast the host was and how
//! calls were timed, and interpolates only what that leaves unexplained.

mod artefact;
mod assumed;
mod error;
mod host;
mod learn;
mod model;
mod products;
mod smooth;
mod table;
mod timing;

pub use artefact::to_toml;
pub use error::GemmError;
pub use model::fit;
pub use products::MeasuredProduct;
pub use table::GemmTable;

#[cfg(test)]
mod tests;
