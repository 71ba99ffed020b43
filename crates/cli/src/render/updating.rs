//! Updates that go on beside the steps.

use super::Screen;
use super::forecast::parts;
use super::table;
use stepcast_core::prediction::Updating;
use stepcast_report::table::{Column, Table};

/// How long an update takes, what enters it, and where its time goes.
pub(super) fn figures(updating: &Updating, screen: &Screen) -> String {
    let mut table = Table::new("", [Column::names(""), Column::names(""), Column::words("")]);
    let mut row =
        |title: &str, value: String, note: &str| table.row([title.to_owned(), value, note.to_owned()]);
    row("update time", updating.iteration.human(), "from one update to the next");
    row("minibatch", average(updating.minibatch), "samples that enter one update, on average");
    row(
        "staleness",
        average(updating.staleness),
        "updates between a gradient's weights and its own, on average",
    );
    format!("{}\n{}", table::render(&table, screen), parts(&updating.breakdown, updating.iteration, screen))
}

/// Three significant digits, all of the whole part.
pub(crate) fn average(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}
