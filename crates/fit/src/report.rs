//! The result of a fit: errors, notes, and the artefact, a TOML text with formula, coefficients with units and meaning,
//! source, date and errors. [`Artefact`](stepcast_core::fitted::artefact::Artefact) reads it back. [`Quality`] has the errors
//! of predictions, [`FitError`] the reason why measurements cannot be fitted.

use crate::steps::LeftOutErrors;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::fitted::machine::{CONSTANTS, ConstantRow};
use stepcast_core::method::Stopped;
use stepcast_stats::quantile_of_sorted;

/// A fit: its errors for readers, and the artefact to keep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// Errors of predictions against measurements.
    pub rows: Vec<FitErrorRow>,
    /// Errors of predictions for models that were held out of the fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutErrors>,
    /// Findings, assumptions, and open questions.
    pub notes: Vec<String>,
    /// The artefact: the text of a TOML file.
    #[serde(skip)]
    pub artefact: String,
}

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

    /// The fit as JSON, with the path of its file.
    pub fn summary<'a>(&'a self, written: Option<&'a str>) -> FitSummary<'a> {
        FitSummary { written, errors: &self.rows, left_out: &self.left_out, notes: &self.notes }
    }
}

/// Errors of one model on one set of measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitErrorRow {
    pub what: String,
    /// The measurements: `fit` or `held`.
    pub set: &'static str,
    #[serde(flatten)]
    pub quality: Quality,
}

impl FitErrorRow {
    /// One row for the fitted measurements, and one for the held ones if there are any.
    pub(crate) fn rows(what: &str, errors: &FitErrors) -> impl Iterator<Item = Self> {
        let row = |set, quality| Self { what: what.to_owned(), set, quality };
        [Some(row("fit", errors.fit)), errors.held.map(|quality| row("held", quality))].into_iter().flatten()
    }
}

/// Errors on the measurements of the fit, and on others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FitErrors {
    pub fit: Quality,
    /// Errors on measurements that took no part in the fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Quality>,
}

/// Formula and meaning of coefficients, by kind of fit.
const TEXTS: &str = include_str!("artefacts.toml");

#[derive(Deserialize)]
struct ArtefactText {
    formula: String,
    meaning: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Provenance<'a> {
    formula: &'a str,
    source: String,
    /// Year-month-day.
    date: &'a str,
    meaning: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ArtefactFile<'a, E, M> {
    kind: ArtefactKind,
    provenance: Provenance<'a>,
    errors: &'a E,
    model: &'a M,
}

/// The text of a TOML file with a model that was fitted to this many measurements of `data`. Its source is named without
/// the folder, so that artefacts do not depend on where data are stored.
pub(crate) fn artefact<E: Serialize, M: Serialize>(
    kind: ArtefactKind,
    data: &Path,
    measurements: usize,
    date: &str,
    errors: &E,
    model: &M,
) -> Result<String, Fault> {
    let unwritten = |reason: String| {
        let reason = format!("the fit cannot be written: {reason}");
        Fault::in_file(data.display().to_string(), reason, "report this")
    };
    let texts: Result<BTreeMap<String, ArtefactText>, _> = stepcast_core::text::parse(TEXTS);
    let text = texts.map_err(|error| unwritten(error.to_string()))?.remove(&kind.to_string());
    let ArtefactText { formula, mut meaning } =
        text.ok_or_else(|| unwritten(format!("no text of {kind}")))?;
    if kind == ArtefactKind::Machine {
        let of_row =
            |row: &ConstantRow| (row.name.replace('_', "-"), format!("{}, {}", row.meaning, row.unit));
        meaning.extend(CONSTANTS.iter().map(of_row));
    }
    let name = data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let source = format!("{name}, {measurements} measurements");
    let provenance = Provenance { formula: &formula, source, date, meaning };
    toml::to_string(&ArtefactFile { kind, provenance, errors, model })
        .map_err(|error| unwritten(error.to_string()))
}

/// The fault of a cancelled fit, or of measurements that do not determine the coefficients called `names`.
pub(crate) fn stopped(path: &Path, what: &str, error: &FitError, names: &[&str]) -> Stopped {
    let (reason, remedy) = match error {
        FitError::Cancelled => return Stopped::Cancelled,
        FitError::TooFew { rows, .. } => (
            format!("{what} has {rows} measurements, too few to determine {}", names.join(" and ")),
            format!("measure at least {} different sizes", names.len() + 1),
        ),
        FitError::Collinear { undetermined, .. } => {
            let confused: Vec<&str> =
                undetermined.iter().filter_map(|&place| names.get(place).copied()).collect();
            (
                format!("the measurements of {what} cannot distinguish {}", confused.join(" from ")),
                "measure sizes that differ by a factor of ten or more".to_owned(),
            )
        }
        FitError::BadRow { row } => {
            (format!("measurement {row} of {what} is not finite"), "check its numbers".to_owned())
        }
    };
    Fault::in_file(path.display().to_string(), reason, remedy).into()
}

/// The date in UTC: year-month-day.
pub fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01, by eras of 400 years from March on (Hinnant 2013).
pub fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Quantiles of relative errors |predicted/measured − 1|.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Quality {
    /// Measurements.
    pub points: usize,
    /// Half of the errors are below.
    pub median: f64,
    /// Three quarters of the errors are below.
    pub third_quartile: f64,
    /// 95 of 100 errors are below.
    pub percentile_95: f64,
    pub worst: f64,
}

impl Quality {
    /// The quality of pairs (predicted, measured) of one quantity; none without pairs.
    pub fn from_pairs<Q: Into<f64>>(pairs: impl IntoIterator<Item = (Q, Q)>) -> Option<Self> {
        let error = |(predicted, measured): (Q, Q)| (predicted.into() / measured.into() - 1.0).abs();
        let mut errors: Vec<f64> = pairs.into_iter().map(error).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let worst = *errors.last()?;
        Some(Self {
            points: errors.len(),
            median: quantile_of_sorted(&errors, 0.5),
            third_quartile: quantile_of_sorted(&errors, 0.75),
            percentile_95: quantile_of_sorted(&errors, 0.95),
            worst,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// The fit is no longer wanted.
    #[error("it was cancelled before it was done")]
    Cancelled,
    /// Fewer measurements than coefficients.
    #[error("{rows} measurements cannot determine {columns} coefficients")]
    TooFew {
        /// Measurements.
        rows: usize,
        /// Coefficients.
        columns: usize,
    },
    /// Rows of unequal length, or values that are not finite.
    #[error("measurement {row} is incomplete or not finite")]
    BadRow { row: usize },
    /// A combination of coefficients has no effect on any measurement.
    #[error(
        "the measurements have rank {rank} of {columns}: coefficients {undetermined:?} cannot be determined separately"
    )]
    Collinear {
        rank: usize,
        /// Coefficients.
        columns: usize,
        /// Indices of the coefficients that take part in the combination.
        undetermined: Vec<usize>,
    },
}
