//! A sweep as text: its rows, or the state of its file.

use super::screen::Screen;
use super::table;
use crate::words::WORDING;
use serde_json::json;
use std::path::Path;
use stepcast_report::format::{count, several};
use stepcast_report::sentences;
use stepcast_report::tables::FirstRows;
use stepcast_study::explore::sweep::{Agreement, Variants};

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
        stepcast_report::json::pretty(&value)
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

/// The first rows, and where the fastest is.
pub(crate) fn render(
    shown: &FirstRows,
    variants: &Variants<'_>,
    agreement: &Agreement,
    screen: &Screen,
) -> String {
    let rows = shown.table(variants, agreement, Some(screen.width.into()));
    let notes = shown.notes(variants, agreement, WORDING).join(" ");
    format!("{}\n{}", table::section(&rows, screen), screen.paragraph(0, &notes))
}
