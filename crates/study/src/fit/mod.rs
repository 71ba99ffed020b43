//! From files with measurements to fitted artefacts: one module per kind of measurement.

mod date;
pub mod efficiency;
mod fault;
pub mod gemm;
pub mod kernels;
mod left_out;
pub mod machine;
mod measured;
mod report;
pub mod steps;
pub mod transfer;

pub use date::today;
pub use report::{FitErrorRow, FitReport, FitSummary};
