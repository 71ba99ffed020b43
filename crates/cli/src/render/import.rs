//! The contents of a recording or model, as text.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_report::format::{name, several};
use stepcast_report::tables::import as tables;
use stepcast_trace::{ContentFigures, Overview};

/// Notes that are shown.
const MOST_NOTES: usize = 12;

/// The summary, its last line ended.
pub(crate) fn render(overview: &Overview, screen: &Screen) -> String {
    let mut sections = vec![headline(overview, screen)];
    sections.extend(tables::all(overview).iter().map(|table| table::section(table, screen)));
    if !overview.notes.is_empty() {
        sections.push(blocks::section("Notes", &notes(&overview.notes, screen), screen));
    }
    let written = match &overview.written {
        Some(path) => format!("Written to {}.", name(path)),
        None => "Nothing was written.".to_owned(),
    };
    sections.push(screen.paragraph(0, &written));
    sections.join("\n")
}

fn headline(overview: &Overview, screen: &Screen) -> String {
    let title = name(&overview.name);
    match &overview.contents {
        ContentFigures::Profile(steps) => {
            let operations: usize = steps.resources.iter().map(|usage| usage.operations).sum();
            let size = format!(
                "{} of {}",
                several(steps.steps as u64, "step"),
                several(operations as u64, "operation")
            );
            let source = screen.paragraph(0, &name(&steps.source));
            format!("{}\n{source}", screen.strong(&format!("{title}: {size}")))
        }
        ContentFigures::Model { layers, parameters } => {
            let size = format!("{}, {}", several(*layers as u64, "layer"), several(*parameters, "parameter"));
            format!("{}\n", screen.strong(&format!("{title}: {size}")))
        }
    }
}

fn notes(notes: &[String], screen: &Screen) -> String {
    let mut text: String = notes.iter().take(MOST_NOTES).map(|note| blocks::item(note, screen)).collect();
    let more = notes.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        let more = several(more as u64, "more note");
        text.push_str(&screen.paragraph(4, &format!("{more} are not shown; --json has them all.")));
    }
    text
}
