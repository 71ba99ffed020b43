//! Figures of a recording, in a form that a caller can print without knowing the format.

use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// Figures and tables, in reading order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Single figures.
    pub figures: Vec<SummaryFigure>,
    /// Tables.
    pub tables: Vec<SummaryTable>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryFigure {
    /// For programs: `idle`, without a unit.
    pub key: &'static str,
    /// For people.
    pub label: &'static str,
    /// The figure.
    pub value: SummaryValue,
    /// An explanation; may be empty.
    pub note: String,
}

/// Figures of several things, one row each.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryTable {
    /// For programs: `buckets`.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    /// For programs and for people, in order.
    pub columns: Vec<(&'static str, &'static str)>,
    /// One value for each column.
    pub rows: Vec<Vec<SummaryValue>>,
}

/// A quantity or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum SummaryValue {
    /// A number of things.
    Count(u64),
    /// A duration.
    Time(Seconds),
    /// A size.
    Size(Bytes),
    /// The rate of a link.
    Rate(BytesPerSec),
    /// A part of a whole, from 0 to 1.
    Share(f64),
    /// Words.
    Text(String),
    /// Not known.
    Unknown,
}

impl Summary {
    pub(crate) fn figure(
        &mut self,
        key: &'static str,
        label: &'static str,
        value: SummaryValue,
        note: impl Into<String>,
    ) {
        self.figures.push(SummaryFigure { key, label, value, note: note.into() });
    }
}
