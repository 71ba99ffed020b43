//! Validation: published figures recomputed, measured ones predicted, bounds kept.

mod bounds;
mod cakelab;
pub mod coverage;
pub mod ddp_gloo;
mod errors;
pub mod hkbu;
pub mod liu2022;
mod one_worker;
pub mod published;
mod report;
pub mod steps;
pub mod table;
mod tf_k80;
pub mod tf_ps;
mod tf_saturation;
pub mod zeng2023;

pub use bounds::{CoverageBound, ErrorBounds};
pub use errors::Errors;
pub use report::{Options, Report, run, set, sets};

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepcast_core::fault::Fault;

/// Why the validation could not run.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// A file of `validation/` is damaged.
    #[error("validation data: {0}")]
    Data(String),
    /// A fit did not succeed.
    #[error("calibration: {0}")]
    Fit(#[from] stepcast_fit::FitError),
    /// Measured runs cannot be read, or a scenario made of them is refused.
    #[error("{0}")]
    Fault(#[from] Fault),
}

/// One bound and whether it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundCheck {
    /// What is bounded.
    pub what: String,
    /// The bound, in words.
    pub bound: String,
    /// What was found.
    pub found: String,
    /// Whether it is kept.
    pub holds: bool,
}

/// The rows of an embedded table; lines that begin with # are comments.
fn rows<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, ValidationError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows: Result<Vec<T>, csv::Error> = reader.deserialize().collect();
    rows.map_err(|error| ValidationError::Data(error.to_string()))
}
