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
use stepcast_core::fault::Fault;
use stepcast_fit::artefact::Errors;
use stepcast_fit::{FitError, Quality};

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
    pub fn write(&self, path: &Path) -> Result<(), Fault> {
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

/// Measurements that do not determine the coefficients called `names`.
fn undetermined(path: &Path, what: &str, error: &FitError, names: &[&str]) -> Fault {
    let (reason, remedy) = match error {
        FitError::TooFew { rows, .. } => (
            format!("{what} has {rows} measurements, too few to tell {}", names.join(" and ")),
            format!("measure at least {} different sizes", names.len() + 1),
        ),
        FitError::Collinear { undetermined, .. } => {
            let confused: Vec<&str> =
                undetermined.iter().filter_map(|&place| names.get(place).copied()).collect();
            (
                format!("the measurements of {what} cannot tell {}", confused.join(" from ")),
                "measure sizes that differ by a factor of ten or more".to_owned(),
            )
        }
        FitError::BadRow { row } => {
            (format!("measurement {row} of {what} is not finite"), "check its numbers".to_owned())
        }
    };
    Fault::in_file(path.display().to_string(), reason, remedy)
}

/// The artefact cannot be printed: never seen, but not to be hidden.
fn unprintable(path: &Path, error: &dyn std::error::Error) -> Fault {
    Fault::in_file(path.display().to_string(), format!("the fit cannot be written: {error}"), "report this")
}

/// "gemm.csv: 1,000 measurements" without the folder, so that artefacts do not depend on where data lie.
fn source(path: &Path, measurements: usize) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{name}, {measurements} measurements")
}
