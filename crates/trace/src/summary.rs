//! What was found in a recording, as figures and tables that a caller can print without knowing the format.

use stepcast_core::quantity::{Bytes, Seconds};

/// Figures and tables, in the order in which they are to be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Single figures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// For programs: `idle`, without a unit.
    pub key: &'static str,
    /// For people.
    pub label: &'static str,
    /// How much.
    pub value: Value,
    /// What to know about it; may be empty.
    pub note: String,
}

/// Several figures of several things.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// For programs: `buckets`.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    /// For programs and for people, in order.
    pub columns: Vec<(&'static str, &'static str)>,
    /// One value for each column.
    pub rows: Vec<Vec<Value>>,
}

/// A quantity or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number of things.
    Count(u64),
    /// A duration.
    Time(Seconds),
    /// A size.
    Size(Bytes),
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
        value: Value,
        note: impl Into<String>,
    ) {
        self.figures.push(Figure { key, label, value, note: note.into() });
    }
}
