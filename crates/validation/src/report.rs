//! What a set found, in one form for all sets: verdict, evidence, tables to read and figures for programs.

use crate::coverage::Coverage;
use crate::plot::predicted_measured;
use crate::{ErrorBounds, Errors, ExactCheck, ValidationError};
use serde::{Serialize, Serializer};
use serde_json::Value;
use stepcast_report::table::Table;
use stepcast_study::predict::interval::Case;

/// Runs that were measured and predicted.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Each run, predicted by figures that were fitted without it.
    pub cases: Vec<Case>,
    /// The same runs predicted by other methods.
    pub other_cases: Vec<Case>,
    /// Bounds of the errors.
    pub bounds: ErrorBounds,
    /// Whether the bounds apply to groups of cases, which the set checks itself, and not to all cases together.
    pub bounded_by_group: bool,
}

/// What a set's figures are compared with.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// Measured runs.
    Measured(Measured),
    /// Measured runs whose predictions and intervals follow from priors, not from the errors of other sets.
    Assumed {
        /// Errors of the predictions.
        errors: Errors,
        /// How many measured values lie in their 90 % intervals.
        coverage: Coverage,
        /// The bounds, in words.
        bound: String,
    },
    /// Measured figures with intervals of their own; the set bounds families of them.
    Judged {
        /// Number of figures.
        cases: usize,
        /// How many lie in their 90 % intervals.
        coverage: Coverage,
        /// Errors of the predictions.
        errors: Errors,
        /// The bounds, in words.
        bound: String,
    },
    /// So many cases with printed or exact figures; nothing was measured.
    Exact(usize),
}

impl Evidence {
    /// The cases of all checks.
    pub(crate) fn exact(checks: &[ExactCheck]) -> Self {
        Self::Exact(checks.iter().map(|check| check.cases).sum())
    }
}

/// A part of a report, in reading order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// Paragraphs below a title, which may be empty.
    Text {
        /// The title.
        title: String,
        /// The paragraphs.
        paragraphs: Vec<String>,
    },
    /// A table with its title and note.
    Table(Table),
}

impl Section {
    /// One paragraph without a title.
    pub(crate) fn paragraph(text: impl Into<String>) -> Self {
        Self::Text { title: String::new(), paragraphs: vec![text.into()] }
    }
}

impl From<Table> for Section {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

/// What a set found. Serialised, it is an object with the set's figures under the set's name.
#[derive(Debug, Clone)]
pub struct Report {
    /// Name of the set.
    pub set: &'static str,
    /// Whether every bound is kept.
    pub holds: bool,
    /// How many bounds are kept, in words.
    pub verdict: String,
    /// Where the figures come from and what they are compared with.
    pub about: String,
    /// Measured runs, or the number of exact cases.
    pub evidence: Evidence,
    /// Tables and paragraphs.
    pub sections: Vec<Section>,
    /// A plot of figures that are no runs with a throughput, as SVG.
    pub(crate) drawing: Option<String>,
    figures: Value,
}

impl Report {
    /// A report without sections; `figures` is what programs get.
    pub(crate) fn new(
        set: &'static str,
        holds: bool,
        about: impl Into<String>,
        evidence: Evidence,
        figures: &impl Serialize,
    ) -> Result<Self, ValidationError> {
        let figures =
            serde_json::to_value(figures).map_err(|error| ValidationError::Data(error.to_string()))?;
        let verdict = if holds { "bounds kept" } else { "bounds missed" }.to_owned();
        Ok(Self {
            set,
            holds,
            verdict,
            about: about.into(),
            evidence,
            sections: Vec::new(),
            drawing: None,
            figures,
        })
    }

    pub(crate) fn push(&mut self, section: impl Into<Section>) {
        self.sections.push(section.into());
    }

    /// The plot of predictions against measurements, as SVG; none where nothing was measured.
    pub fn plot(&self) -> Option<String> {
        let of_cases = || (!self.cases().is_empty()).then(|| predicted_measured(self.cases()).svg());
        self.drawing.clone().or_else(of_cases)
    }

    /// The measured runs; none where nothing was measured.
    pub fn cases(&self) -> &[Case] {
        match &self.evidence {
            Evidence::Measured(measured) => &measured.cases,
            Evidence::Assumed { .. } | Evidence::Judged { .. } | Evidence::Exact(_) => &[],
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.set, &self.figures)])
    }
}
