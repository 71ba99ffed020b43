//! Validation: published figures are recomputed, measured runs are predicted, and both must stay within bounds.
//!
//! A [`Set`] is one source of figures: a paper, a published benchmark, or runs measured for this project. It is a folder
//! of `validation/` with `set.toml` (what it is about, its bounds, what its report shows, the recipe that turns a case into a
//! scenario) and its cases; [`all`] lists them. `sets` has code for cases that are no scenarios. Running a set gives a
//! [`Report`]; [`overview::run`] runs all of them and judges the coverage of intervals across sets.
//!
//! Small data sets are embedded in the binary, larger ones are read from files. The longest set (`tf-ps`) simulates
//! about a thousand runs and takes tens of seconds.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod checks;
pub mod coverage;
mod groups;
mod judged;
pub mod overview;
pub mod priors;
mod recipe;
mod records;
mod report;
mod set;
mod sets;
mod template;

pub use checks::{BoundCheck, CoverageBound, ErrorBounds, Errors};
pub use report::{Evidence, Report, Section, predicted_measured};
pub use set::{Observer, Options, Progress, Set, all, find};

use stepcast_core::fault::Fault;
use stepcast_core::method::Stopped;
use stepcast_fit::FitError;

/// Why a validation could not run.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    #[error("validation data: {0}")]
    Data(String),
    #[error("calibration: {0}")]
    Fit(FitError),
    #[error("it was cancelled before it was done")]
    Cancelled,
    /// Measured runs cannot be read, or a scenario made from them is rejected.
    #[error("{0}")]
    Fault(#[from] Fault),
}

impl From<FitError> for ValidationError {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Cancelled => Self::Cancelled,
            error => Self::Fit(error),
        }
    }
}

impl From<Stopped> for ValidationError {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Cancelled => Self::Cancelled,
            Stopped::Fault(fault) => Self::Fault(fault),
        }
    }
}
