//! From files with measurements to fitted artefacts: one module per kind of measurement.

mod date;
pub mod efficiency;
pub mod gemm;
pub mod kernels;
mod measured;
pub mod steps;
pub mod transfer;

pub use date::today;

use serde::Serialize;
use std::path::Path;
use stepcast_fit::artefact::Errors;
use stepcast_fit::{FitError, Quality};
use stepcast_trace::TraceError;

/// What is wrong with measurements, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}; {remedy}")]
pub struct DataError {
    /// File, with the line where there is one: "gemm.csv:12".
    pub place: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// A fit, told to people and kept in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fitted {
    /// How far predictions are from measurements.
    pub rows: Vec<Row>,
    /// How far predictions of models are that were left out of the fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<steps::LeftOut>,
    /// What was found, assumed or cannot be told.
    pub notes: Vec<String>,
    /// The artefact: the text of a TOML file.
    #[serde(skip)]
    pub artefact: String,
}

/// What is told to programs about a fit.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Told<'a> {
    written: Option<&'a str>,
    errors: &'a [Row],
    left_out: &'a [steps::LeftOut],
    notes: &'a [String],
}

impl Fitted {
    /// Writes the artefact, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), TraceError> {
        stepcast_trace::write_text(path, &self.artefact)
    }

    /// What was found, and the file that it was written to.
    pub fn told<'a>(&'a self, written: Option<&'a str>) -> Told<'a> {
        Told { written, errors: &self.rows, left_out: &self.left_out, notes: &self.notes }
    }
}

/// Errors of one model on one set of measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was fitted.
    pub what: String,
    /// The measurements: `fit` or `held`.
    pub set: &'static str,
    /// The errors.
    #[serde(flatten)]
    pub quality: Quality,
}

impl Row {
    /// The rows of a model's errors.
    fn of(what: &str, errors: &Errors) -> impl Iterator<Item = Self> {
        let row = |set, quality| Self { what: what.to_owned(), set, quality };
        [Some(row("fit", errors.fit)), errors.held.map(|quality| row("held", quality))].into_iter().flatten()
    }
}

impl DataError {
    fn new(place: impl Into<String>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.into(), reason: reason.into(), remedy: remedy.into() }
    }

    /// Measurements that do not tell the coefficients called `names`.
    fn untold(path: &Path, what: &str, error: &FitError, names: &[&str]) -> Self {
        let place = path.display().to_string();
        match error {
            FitError::TooFew { rows, .. } => Self::new(
                place,
                format!("{what} has {rows} measurements, too few to tell {}", names.join(" and ")),
                format!("measure at least {} different sizes", names.len() + 1),
            ),
            FitError::Collinear { undetermined, .. } => {
                let untold: Vec<&str> =
                    undetermined.iter().filter_map(|&place| names.get(place).copied()).collect();
                Self::new(
                    place,
                    format!("the measurements of {what} cannot tell {}", untold.join(" from ")),
                    "measure sizes that differ by a factor of ten or more",
                )
            }
            FitError::BadRow { row } => {
                Self::new(place, format!("measurement {row} of {what} is not finite"), "check its numbers")
            }
        }
    }

    /// The system has no more room for numbers: never seen, but not to be hidden.
    fn unprintable(path: &Path, error: &dyn std::error::Error) -> Self {
        Self::new(path.display().to_string(), format!("the fit cannot be written: {error}"), "report this")
    }
}

impl From<TraceError> for DataError {
    fn from(error: TraceError) -> Self {
        Self { place: error.place, reason: error.reason, remedy: error.remedy }
    }
}

/// "gemm.csv: 1,000 measurements" without the folder, so that artefacts do not depend on where data lie.
fn source(path: &Path, measurements: usize) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{name}, {measurements} measurements")
}
