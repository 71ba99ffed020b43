//! What was found in a recording, as text.

use super::table::{Column, Table};
use super::{Screen, count, name, several};
use crate::commands::Summary;
use stepcast_core::profile::Resource;
use stepcast_core::quantity::{Bytes, Seconds};

/// Notes beyond these are only counted.
const MOST_NOTES: usize = 12;

/// The summary, its last line ended.
pub(crate) fn render(summary: &Summary, screen: &Screen) -> String {
    let operations: usize = summary.resources.iter().map(|usage| usage.operations).sum();
    let title = format!(
        "{}: {} of {}",
        name(&summary.name),
        several(summary.steps as u64, "step"),
        several(operations as u64, "operation")
    );
    let mut sections =
        vec![format!("{}\n{}", screen.strong(&title), screen.paragraph(0, &name(&summary.source)))];
    sections.push(figures(summary, screen));
    sections.push(resources(summary, screen));
    if !summary.notes.is_empty() {
        sections.push(format!("{}\n{}", screen.title("Notes"), notes(&summary.notes, screen)));
    }
    sections.push(match &summary.written {
        Some(path) => screen.paragraph(0, &format!("Written to {}.", name(path))),
        None => screen.paragraph(0, "Nothing was written."),
    });
    sections.join("\n")
}

fn figures(summary: &Summary, screen: &Screen) -> String {
    let mut table = Table::new([Column::Name(""), Column::Name(""), Column::Words("")]);
    let mut row = |title: &str, value: String, note: String| table.row([title.to_owned(), value, note]);
    row("batch", several(summary.batch.into(), "sample"), String::new());
    let spread = format!(
        "{} to {}, standard deviation {}",
        summary.shortest.human(),
        summary.longest.human(),
        summary.deviation.human()
    );
    row("mean step", summary.mean.human(), spread);
    table.render(screen)
}

fn resources(summary: &Summary, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::Name("resource"),
        Column::Number("operations"),
        Column::Number("bytes"),
        Column::Number("busy"),
        Column::Words(""),
    ]);
    for usage in &summary.resources {
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
    table.render(screen)
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
