//! Published throughput and its predictions: one form for all sources.

use crate::errors::signed_error;
use crate::{ErrorBounds, Errors, Evidence, Measured, Report, Section, ValidationError, bounds};
use serde::Serialize;
use stepcast_report::format::name;
use stepcast_report::table::{Column, Table};
use stepcast_study::predict::interval::Case;

/// One published throughput and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ThroughputCase {
    /// The machines, in words.
    pub(super) what: String,
    /// Published.
    pub(super) measured: f64,
    /// Predicted.
    pub(super) predicted: f64,
    /// Whether an input of the prediction was fitted on this row.
    pub(super) fitted: bool,
    /// The row as a measured run.
    #[serde(skip)]
    pub(super) case: Case,
}

impl ThroughputCase {
    pub(super) fn new(what: String, case: Case, fitted: bool) -> Self {
        Self { what, measured: case.measured.get(), predicted: case.predicted.get(), fitted, case }
    }
}

/// What a source is about.
pub(super) struct Description {
    /// Name of the set.
    pub(super) set: &'static str,
    /// Method that predicts it.
    pub(super) method: &'static str,
    /// What was measured, and what it is predicted from.
    pub(super) about: &'static str,
    /// Unit of the throughput.
    pub(super) unit: &'static str,
    /// Other figures of the source, and why they are not used.
    pub(super) left_out: &'static str,
}

/// All throughputs of a source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ThroughputPredictions {
    set: &'static str,
    about: &'static str,
    unit: &'static str,
    pub(super) rows: Vec<ThroughputCase>,
    /// Errors over all rows on which nothing was fitted.
    pub(super) errors: Errors,
    bounds: ErrorBounds,
    left_out: &'static str,
}

impl ThroughputPredictions {
    pub(super) fn new(description: &Description, rows: Vec<ThroughputCase>) -> Result<Self, ValidationError> {
        let &Description { set, method, about, unit, left_out } = description;
        let judged = rows.iter().filter(|row| !row.fitted);
        let errors = Errors::of(method, judged.map(|row| row.predicted / row.measured));
        Ok(Self { set, about, unit, rows, errors, bounds: bounds::of(set)?, left_out })
    }

    /// Every throughput on which nothing was fitted.
    pub(super) fn cases(&self) -> Vec<Case> {
        self.rows.iter().filter(|row| !row.fitted).map(|row| row.case.clone()).collect()
    }

    /// Whether the bounds are kept.
    pub(super) fn holds(&self) -> bool {
        self.bounds.keeps(&self.errors)
    }

    pub(super) fn report(&self) -> Result<Report, ValidationError> {
        let evidence = Evidence::Measured(Measured {
            cases: self.cases(),
            other_cases: Vec::new(),
            bounds: self.bounds,
            bounded_by_group: false,
        });
        let mut report = Report::new(self.set, self.holds(), self.about, evidence, self)?;
        report.push(self.table());
        report.push(Errors::table("Errors", "method", &[self.errors]));
        report.push(Section::paragraph(format!("Bounds: {}. Left out: {}", self.bounds, self.left_out)));
        Ok(report)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(
            "",
            [
                Column::names("machines"),
                Column::numbers(self.unit),
                Column::numbers("predicted"),
                Column::numbers("error"),
                Column::names(""),
            ],
        );
        for row in &self.rows {
            table.row([
                name(&row.what),
                format!("{:.2}", row.measured),
                format!("{:.2}", row.predicted),
                signed_error(row.predicted / row.measured),
                if row.fitted { "fitted on this" } else { "" }.to_owned(),
            ]);
        }
        table
    }
}
