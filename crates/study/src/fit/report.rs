//! The result of a fit: errors, notes and the text of the artefact.

use super::left_out::LeftOutErrors;
use serde::Serialize;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_fit::Quality;
use stepcast_fit::artefact::FitErrors;

/// A fit: its errors for people to read, and the artefact to keep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// How far predictions are from measurements.
    pub rows: Vec<FitErrorRow>,
    /// How far predictions of models are that were left out of the fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutErrors>,
    /// What was found, what was assumed and what the data leave open.
    pub notes: Vec<String>,
    /// The artefact: the text of a TOML file.
    #[serde(skip)]
    pub artefact: String,
}

/// A fit as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FitSummary<'a> {
    written: Option<&'a str>,
    errors: &'a [FitErrorRow],
    left_out: &'a [LeftOutErrors],
    notes: &'a [String],
}

impl FitReport {
    /// Writes the artefact, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Fault> {
        stepcast_trace::write_text(path, &self.artefact)
    }

    /// The fit as JSON, with the file that it was written to.
    pub fn summary<'a>(&'a self, written: Option<&'a str>) -> FitSummary<'a> {
        FitSummary { written, errors: &self.rows, left_out: &self.left_out, notes: &self.notes }
    }
}

/// Errors of one model on one set of measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitErrorRow {
    /// The model that was fitted.
    pub what: String,
    /// The measurements: `fit` or `held`.
    pub set: &'static str,
    /// The errors.
    #[serde(flatten)]
    pub quality: Quality,
}

impl FitErrorRow {
    /// One row for the fitted measurements, and one for the held ones if there are any.
    pub(super) fn rows(what: &str, errors: &FitErrors) -> impl Iterator<Item = Self> {
        let row = |set, quality| Self { what: what.to_owned(), set, quality };
        [Some(row("fit", errors.fit)), errors.held.map(|quality| row("held", quality))].into_iter().flatten()
    }
}

/// "gemm.csv: 1,000 measurements" without the folder, so that artefacts do not depend on where data are stored.
pub(super) fn source(path: &Path, measurements: usize) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{name}, {measurements} measurements")
}
