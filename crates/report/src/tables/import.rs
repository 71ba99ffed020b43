//! The contents of an imported recording or model.

use crate::format::{count, name, percent, several};
use crate::table::Hint;
use crate::table::{Column, Table};
use stepcast_core::profile::Resource;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_trace::{
    ContentFigures, Overview, StepFigures, SummaryFigure, SummaryTable as Listing, SummaryValue,
};

/// Rows of a format's own table that are shown.
const MOST_ROWS: usize = 40;

pub fn all(overview: &Overview) -> Vec<Table> {
    let mut tables = match &overview.contents {
        ContentFigures::Profile(steps) => {
            vec![figures(Some(steps), &overview.summary.figures), resources(steps)]
        }
        ContentFigures::Model { .. } => vec![figures(None, &overview.summary.figures)],
    };
    tables.extend(overview.summary.tables.iter().map(listing));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn figures(steps: Option<&StepFigures>, found: &[SummaryFigure]) -> Table {
    let mut table = Table::of_figures("");
    if let Some(steps) = steps {
        table.figure("batch", several(steps.batch.into(), "sample"), "");
        let spread = format!(
            "{} to {}, standard deviation {}",
            steps.shortest.human(),
            steps.longest.human(),
            steps.deviation.human()
        );
        table.figure("mean step", steps.mean.human(), spread);
    }
    for figure in found {
        table.figure(figure.label, value(&figure.value), figure.note.clone());
    }
    table
}

/// A table that the recording's format defines.
fn listing(found: &Listing) -> Table {
    let is_text =
        |column: usize| found.rows.iter().any(|row| matches!(row.get(column), Some(SummaryValue::Text(_))));
    let column = |(index, (_, title)): (usize, &(_, &'static str))| match is_text(index) {
        true => Column::names(*title),
        false => Column::numbers(*title),
    };
    let mut table = Table::new(found.title, found.columns.iter().enumerate().map(column).collect::<Vec<_>>());
    for row in found.rows.iter().take(MOST_ROWS) {
        table.row(row.iter().map(value));
    }
    let more = found.rows.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        table.note = format!("{} are not shown.", several(more as u64, "more row"));
        table.hints = vec![Hint::RowsInJson];
    }
    table
}

fn value(value: &SummaryValue) -> String {
    match value {
        SummaryValue::Count(number) => count(*number),
        SummaryValue::Time(time) => time.human(),
        SummaryValue::Size(size) => size.human(),
        SummaryValue::Rate(rate) => rate.human(),
        SummaryValue::Share(share) => percent(*share),
        SummaryValue::Text(text) => name(text),
        SummaryValue::Unknown => "–".to_owned(),
    }
}

fn resources(steps: &StepFigures) -> Table {
    let mut table = Table::new("", ["resource", "#operations", "#bytes", "#busy", "~"]);
    for usage in &steps.resources {
        let (title, explanation) = match usage.resource {
            Resource::Downlink => ("downlink", "from servers to the worker"),
            Resource::Worker => ("worker", "computing, in a mean step"),
            Resource::Uplink => ("uplink", "from the worker to servers"),
            Resource::Server => ("server", "computing, in a mean step"),
        };
        let dash = || "–".to_owned();
        table.row([
            title.to_owned(),
            count(usage.operations as u64),
            usage.bytes.map_or_else(dash, |bytes| Bytes::new(bytes as f64).human()),
            usage.busy.map_or_else(dash, |busy| Seconds::new(busy).human()),
            explanation.to_owned(),
        ]);
    }
    table
}
