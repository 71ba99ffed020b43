//! What was found in a recording, as text.

use super::table;
use super::{Screen, count, name, percent, several};
use stepcast_core::profile::Resource;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_report::table::{Column, Table};
use stepcast_trace::{ContentFigures, Overview, StepFigures, SummaryFigure, SummaryTable, SummaryValue};

/// Notes beyond these are only counted.
const MOST_NOTES: usize = 12;
/// Rows beyond these are only counted.
const MOST_ROWS: usize = 40;

/// The summary, its last line ended.
pub(crate) fn render(overview: &Overview, screen: &Screen) -> String {
    let shown = name(&overview.name);
    let mut sections = match &overview.contents {
        ContentFigures::Profile(steps) => {
            let operations: usize = steps.resources.iter().map(|usage| usage.operations).sum();
            let title = format!(
                "{shown}: {} of {}",
                several(steps.steps as u64, "step"),
                several(operations as u64, "operation")
            );
            let source = screen.paragraph(0, &name(&steps.source));
            vec![
                format!("{}\n{source}", screen.strong(&title)),
                figures(steps, &overview.summary.figures, screen),
                resources(steps, screen),
            ]
        }
        ContentFigures::Model { layers, parameters } => {
            let title = format!(
                "{shown}: {}, {}",
                several(*layers as u64, "layer"),
                several(*parameters, "parameter")
            );
            vec![format!("{}\n", screen.strong(&title)), more_figures(&overview.summary.figures, screen)]
        }
    };
    sections.extend(overview.summary.tables.iter().map(|table| listing(table, screen)));
    if !overview.notes.is_empty() {
        sections.push(format!("{}\n{}", screen.title("Notes"), notes(&overview.notes, screen)));
    }
    sections.push(match &overview.written {
        Some(path) => screen.paragraph(0, &format!("Written to {}.", name(path))),
        None => screen.paragraph(0, "Nothing was written."),
    });
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

fn figures(steps: &StepFigures, found: &[SummaryFigure], screen: &Screen) -> String {
    let mut table = figure_table();
    table.row(["batch".to_owned(), several(steps.batch.into(), "sample"), String::new()]);
    let spread = format!(
        "{} to {}, standard deviation {}",
        steps.shortest.human(),
        steps.longest.human(),
        steps.deviation.human()
    );
    table.row(["mean step".to_owned(), steps.mean.human(), spread]);
    add_figures(&mut table, found);
    table::render(&table, screen)
}

fn more_figures(found: &[SummaryFigure], screen: &Screen) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut table = figure_table();
    add_figures(&mut table, found);
    table::render(&table, screen)
}

fn figure_table() -> Table {
    Table::new("", [Column::names(""), Column::names(""), Column::words("")])
}

fn add_figures(table: &mut Table, found: &[SummaryFigure]) {
    for figure in found {
        table.row([figure.label.to_owned(), value(&figure.value), figure.note.clone()]);
    }
}

/// A table of the format's own, under its title.
fn listing(found: &SummaryTable, screen: &Screen) -> String {
    let is_text =
        |column: usize| found.rows.iter().any(|row| matches!(row.get(column), Some(SummaryValue::Text(_))));
    let columns: Vec<Column> = found
        .columns
        .iter()
        .enumerate()
        .map(
            |(index, (_, title))| {
                if is_text(index) { Column::names(*title) } else { Column::numbers(*title) }
            },
        )
        .collect();
    let mut table = Table::new("", columns);
    for row in found.rows.iter().take(MOST_ROWS) {
        table.row(row.iter().map(value));
    }
    let more = found.rows.len().saturating_sub(MOST_ROWS);
    let rest = match more {
        0 => String::new(),
        _ => {
            screen.paragraph(4, &format!("… and {}; --json has them all.", several(more as u64, "more row")))
        }
    };
    format!("{}\n{}{rest}", screen.title(found.title), table::render(&table, screen))
}

fn value(value: &SummaryValue) -> String {
    match value {
        SummaryValue::Count(number) => count(*number),
        SummaryValue::Time(time) => time.human(),
        SummaryValue::Size(size) => size.human(),
        SummaryValue::Share(share) => percent(*share),
        SummaryValue::Text(text) => name(text),
        SummaryValue::Unknown => "–".to_owned(),
    }
}

fn resources(steps: &StepFigures, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("resource"),
            Column::numbers("operations"),
            Column::numbers("bytes"),
            Column::numbers("busy"),
            Column::words(""),
        ],
    );
    for usage in &steps.resources {
        let (title, what) = match usage.resource {
            Resource::Downlink => ("downlink", "from servers to the worker"),
            Resource::Worker => ("worker", "computing, in a mean step"),
            Resource::Uplink => ("uplink", "from the worker to servers"),
            Resource::Server => ("server", "computing, in a mean step"),
        };
        let nothing = || "–".to_owned();
        table.row([
            title.to_owned(),
            count(usage.operations as u64),
            usage.bytes.map_or_else(nothing, |bytes| Bytes::new(bytes as f64).human()),
            usage.busy.map_or_else(nothing, |busy| Seconds::new(busy).human()),
            what.to_owned(),
        ]);
    }
    table::render(&table, screen)
}

fn notes(notes: &[String], screen: &Screen) -> String {
    let line = |note: &String| {
        let note: String = note.chars().filter(|c| !c.is_control()).collect();
        format!("  {} {}", screen.bad("!"), screen.paragraph(4, &note).trim_start())
    };
    let mut text: String = notes.iter().take(MOST_NOTES).map(line).collect();
    let more = notes.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        text.push_str(
            &screen
                .paragraph(4, &format!("… and {}; --json has them all.", several(more as u64, "more note"))),
        );
    }
    text
}
