//! The rows of a sweep that are shown, and what is said about all of them.

use super::sweep::{points, values};
use crate::format::{count, grouped, plain, several};
use crate::sentences;
use crate::table::Table;
use crate::words::{Hint, Wording};
use std::collections::BTreeMap;
use stepcast_study::explore::sweep::{Agreement, SweepRow, Variants, intervals};

/// Rows that are shown.
const SHOWN: usize = 40;

/// The first rows of a sweep, and what is known about all of them.
#[derive(Debug, Clone)]
pub struct FirstRows {
    points: u64,
    rows: Vec<SweepRow>,
    seen: u64,
    refused: u64,
    /// Points that do not fit into memory.
    too_large: u64,
    /// Points with each warning, by its code.
    warnings: BTreeMap<&'static str, u64>,
    /// Why the first of the refused points was refused.
    refusal: Option<String>,
    /// The row with the most samples per second.
    fastest: Option<SweepRow>,
}

impl FirstRows {
    /// Nothing of a sweep with so many points.
    pub fn new(points: u64) -> Self {
        Self {
            points,
            rows: Vec::new(),
            seen: 0,
            refused: 0,
            too_large: 0,
            warnings: BTreeMap::new(),
            refusal: None,
            fastest: None,
        }
    }

    /// Takes the next row.
    pub fn see(&mut self, row: SweepRow) {
        self.seen += 1;
        let rate = |row: &SweepRow| row.answer.as_ref().map_or(0.0, |figures| figures.throughput.get());
        if let Err(why) = &row.answer {
            self.refused += 1;
            self.refusal.get_or_insert_with(|| why.refused.clone());
        }
        if let Ok(figures) = &row.answer {
            self.too_large += u64::from(!figures.fits);
            for code in &figures.warnings {
                *self.warnings.entry(code).or_default() += 1;
            }
        }
        // Points that do not fit into memory are listed, but not recommended.
        let possible = row.answer.as_ref().is_ok_and(|figures| figures.fits);
        if possible && self.fastest.as_ref().is_none_or(|fastest| rate(&row) > rate(fastest)) {
            self.fastest = Some(row.clone());
        }
        if self.rows.len() < SHOWN {
            self.rows.push(row);
        }
    }

    /// The rows that are shown.
    pub fn rows(&self) -> &[SweepRow] {
        &self.rows
    }

    /// How many points were predicted.
    pub fn predicted(&self) -> u64 {
        self.seen - self.refused
    }

    /// The rows with their intervals, in at most `width` characters where one is given.
    pub fn table(&self, variants: &Variants<'_>, agreement: &Agreement, width: Option<usize>) -> Table {
        let digits = self.rows.iter().map(|row| row.digits.as_slice());
        let intervals = intervals(variants, agreement.choice(), digits);
        points(variants.axes(), &self.rows, &intervals, width)
    }

    /// What is not shown, where the fastest is, and what could not be predicted.
    pub fn notes(&self, variants: &Variants<'_>, agreement: &Agreement, words: Wording) -> Vec<String> {
        let mut notes = Vec::new();
        if self.seen > self.rows.len() as u64 {
            let rest = count(self.seen - self.rows.len() as u64);
            notes.push(format!("{rest} more rows are not shown."));
            notes.push(words.hint(&Hint::RowsInFile));
        }
        if self.seen < self.points {
            let points = several(self.points, "point");
            notes.push(format!("Interrupted after {} of {points}.", count(self.seen)));
        }
        if let Some(fastest) = self.fastest.as_ref().filter(|_| self.seen > 1) {
            let rate = fastest.answer.as_ref().map_or(String::new(), |figures| figures.throughput.human());
            let values = values(variants.axes(), &fastest.digits);
            let fitting = if self.too_large > 0 { " of those that fit into memory" } else { "" };
            notes.push(format!("Fastest{fitting}: {values} with {}.", grouped(rate)));
        }
        if !self.warnings.is_empty() {
            let warnings =
                self.warnings.iter().map(|(code, points)| format!("{code} at {}", several(*points, "point")));
            let warnings: Vec<String> = warnings.collect();
            notes.push(format!("Warnings: {}.", warnings.join(", ")));
            notes.push(words.hint(&Hint::Warnings));
        }
        notes.extend(sentences::mixed(agreement.methods()));
        if let Some(why) = &self.refusal {
            let refused = several(self.refused, "point");
            notes.push(format!("{refused} could not be predicted, the first because {}.", plain(why)));
        }
        notes
    }
}
