//! A sweep as text: its rows, or the state of its file.

use super::screen::Screen;
use super::table;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_report::format::{count, grouped, plain, several};
use stepcast_report::sentences;
use stepcast_report::tables::sweep as tables;
use stepcast_study::explore::sweep::{Agreement, SweepRow, Variants, intervals};

/// Rows that are shown.
const SHOWN: usize = 40;

/// The state of a file that rows were written to.
pub(crate) struct Written<'a> {
    pub(crate) path: &'a Path,
    /// Rows that it had before.
    pub(crate) begun: u64,
    pub(crate) rows: u64,
    pub(crate) points: u64,
    /// The methods that predict points.
    pub(crate) methods: &'a [&'static str],
}

impl Written<'_> {
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        let path = self.path.display().to_string();
        let value = json!({
            "written": path, "resumed_at": self.begun, "rows": self.rows, "points": self.points,
            "methods": self.methods,
        });
        serde_json::to_string_pretty(&value).map(|text| text + "\n")
    }

    pub(crate) fn render(&self, screen: &Screen) -> String {
        let path = self.path.display();
        let rows = several(self.rows, "row");
        let text = match (self.rows >= self.points, self.rows == self.begun && self.begun > 0) {
            (true, true) => format!("{path} was complete already: {rows}."),
            (true, false) => format!("{path} has {rows}, one for every point."),
            (false, _) => format!(
                "Interrupted: {path} has {} of {rows_wanted}. The same command with --resume continues there.",
                count(self.rows),
                rows_wanted = several(self.points, "row"),
            ),
        };
        let mixed = sentences::mixed(self.methods).map_or(String::new(), |mixed| format!(" {mixed}"));
        screen.paragraph(0, &(text + &mixed))
    }
}

/// The first rows of a sweep, and what is known about all of them.
pub(crate) struct Shown {
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

impl Shown {
    pub(crate) fn new(points: u64) -> Self {
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

    pub(crate) fn see(&mut self, row: SweepRow) {
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

    /// The first rows, and where the fastest is.
    pub(crate) fn render(&self, variants: &Variants<'_>, agreement: &Agreement, screen: &Screen) -> String {
        let digits = self.rows.iter().map(|row| row.digits.as_slice());
        let intervals = intervals(variants, agreement.choice(), digits);
        let rows = tables::points(variants.axes(), &self.rows, &intervals, Some(screen.width.into()));
        let mut text = table::section(&rows, screen);
        let mut notes = Vec::new();
        if self.seen > self.rows.len() as u64 {
            let rest = count(self.seen - self.rows.len() as u64);
            notes.push(format!("{rest} more rows are not shown; -o sweep.csv has them all."));
        }
        if self.seen < self.points {
            let points = several(self.points, "point");
            notes.push(format!("Interrupted after {} of {points}.", count(self.seen)));
        }
        if let Some(fastest) = self.fastest.as_ref().filter(|_| self.seen > 1) {
            let rate = fastest.answer.as_ref().map_or(String::new(), |figures| figures.throughput.human());
            let values = tables::values(variants.axes(), &fastest.digits);
            let fitting = if self.too_large > 0 { " of those that fit into memory" } else { "" };
            notes.push(format!("Fastest{fitting}: {values} with {}.", grouped(rate)));
        }
        if !self.warnings.is_empty() {
            let warnings =
                self.warnings.iter().map(|(code, points)| format!("{code} at {}", several(*points, "point")));
            let warnings: Vec<String> = warnings.collect();
            notes.push(format!("Warnings: {}; `stepcast predict` explains them.", warnings.join(", ")));
        }
        notes.extend(sentences::mixed(agreement.methods()));
        if let Some(why) = &self.refusal {
            let refused = several(self.refused, "point");
            notes.push(format!("{refused} could not be predicted, the first because {}.", plain(why)));
        }
        text.push('\n');
        text.push_str(&screen.paragraph(0, &notes.join(" ")));
        text
    }
}
