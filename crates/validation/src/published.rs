//! Published throughput of training with parameter servers, predicted from that of one worker: one report for all sources.

use super::{ErrorBounds, Errors, ValidationError, cakelab, tf_k80, tf_saturation};
use serde::Serialize;
use stepcast_study::predict::interval::Case;

/// One published figure and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The machines, in words.
    pub what: String,
    /// Published.
    pub measured: f64,
    /// Predicted.
    pub predicted: f64,
    /// Whether a figure was fitted on this row.
    pub fitted: bool,
    /// What it tells about the method.
    #[serde(skip)]
    pub case: Case,
}

impl Row {
    /// A row about `case`.
    pub(super) fn new(what: String, case: Case, fitted: bool) -> Self {
        Self { what, measured: case.measured.get(), predicted: case.predicted.get(), fitted, case }
    }
}

/// The whole validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Name of the set.
    pub set: &'static str,
    /// What was measured, and what it is predicted from.
    pub about: &'static str,
    /// What is counted in a second.
    pub unit: &'static str,
    /// All figures.
    pub rows: Vec<Row>,
    /// Errors, rows that a figure was fitted on left out.
    pub errors: Errors,
    /// What the errors must be at most.
    pub bounds: ErrorBounds,
    /// What the source has beside, and why it is no case.
    pub left_out: &'static str,
}

impl Report {
    pub(super) fn new(about: About, rows: Vec<Row>, bounds: ErrorBounds) -> Self {
        let judged = rows.iter().filter(|row| !row.fitted);
        let errors = Errors::of(about.method, judged.map(|row| row.predicted / row.measured));
        let About { set, about, unit, left_out, .. } = about;
        Self { set, about, unit, rows, errors, bounds, left_out }
    }

    /// Every figure that nothing was fitted on.
    pub fn cases(&self) -> Vec<Case> {
        self.rows.iter().filter(|row| !row.fitted).map(|row| row.case.clone()).collect()
    }

    /// Whether the bounds are kept.
    pub fn holds(&self) -> bool {
        self.bounds.keeps(&self.errors)
    }
}

/// What a source is about.
pub(super) struct About {
    pub(super) set: &'static str,
    pub(super) method: &'static str,
    pub(super) about: &'static str,
    pub(super) unit: &'static str,
    pub(super) left_out: &'static str,
}

/// Names of the sets.
pub const SETS: [&str; 3] = [tf_k80::SET, tf_saturation::SET, cakelab::SET];

/// Runs the set of that name.
pub fn run(set: &str) -> Result<Report, ValidationError> {
    match set {
        tf_k80::SET => tf_k80::run(),
        tf_saturation::SET => tf_saturation::run(),
        cakelab::SET => cakelab::run(),
        _ => Err(ValidationError::Data(format!("there is no set {set}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_keeps_its_bounds() {
        for (set, judged) in SETS.into_iter().zip([6, 2, 28]) {
            let report = run(set).unwrap();
            assert!(report.holds(), "{set}: {:#?}", report.errors);
            assert_eq!(report.cases().len(), judged, "{set}");
            for row in report.rows.iter().filter(|row| row.fitted) {
                assert!((row.predicted / row.measured - 1.0).abs() < 0.03, "{set}: {row:?}");
            }
        }
    }
}
