//! Validation as text: any report, and the overview of all sets.

use super::{Screen, table};
use crate::words::WORDING;
use stepcast_report::table::Table;
use stepcast_validation::overview::Overview;
use stepcast_validation::{Report, Section};

/// A report, its last line ended.
pub(crate) fn report(report: &Report, screen: &Screen) -> String {
    let title = screen.strong(&format!("{}: {}", report.set, report.verdict));
    let mut parts = vec![format!("{title}\n{}", screen.paragraph(0, &report.about))];
    for section in &report.sections {
        parts.push(match section {
            Section::Text { title, paragraphs } => {
                let paragraphs = paragraphs.iter().map(|text| screen.paragraph(2, text));
                heading(title, screen) + &paragraphs.collect::<String>()
            }
            Section::Table(table) => with_title_and_note(table, screen),
        });
    }
    parts.join("\n")
}

/// All sets in one table, its last line ended.
pub(crate) fn overview(overview: &Overview, screen: &Screen) -> String {
    let verdict = if overview.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("validation: {verdict}"));
    format!("{title}\n\n{}", with_title_and_note(&overview.table(), screen))
}

fn heading(title: &str, screen: &Screen) -> String {
    if title.is_empty() { String::new() } else { screen.title(screen.paragraph(0, title).trim_end()) + "\n" }
}

fn with_title_and_note(table: &Table, screen: &Screen) -> String {
    let mut text = heading(&table.title, screen);
    for line in table::render(table, screen).lines() {
        text += &verdict_painted(line, screen);
        text.push('\n');
    }
    let note = table.worded_note(WORDING);
    if !note.is_empty() {
        text.push('\n');
        text += &screen.paragraph(2, &note);
    }
    text
}

/// Verdicts stand at the end of a row.
fn verdict_painted(line: &str, screen: &Screen) -> String {
    let verdicts = [("  ok", screen.good("ok")), ("  MISSED", screen.bad("MISSED"))];
    let painted =
        verdicts.iter().find_map(|(word, painted)| Some(format!("{}  {painted}", line.strip_suffix(word)?)));
    painted.unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_report::table::Column;

    fn bounds(verdicts: [&str; 2]) -> Table {
        let mut table = Table::new("Bounds", [Column::numbers("found"), Column::names("")]);
        for verdict in verdicts {
            table.row(["5 %".to_owned(), verdict.to_owned()]);
        }
        table
    }

    #[test]
    fn a_missed_bound_is_seen() {
        let table = bounds(["ok", "MISSED"]);
        let plain = with_title_and_note(&table, &Screen { width: 100, colours: false, terminal: false });
        assert!(plain.contains("5 %  ok\n") && plain.ends_with("5 %  MISSED\n"), "{plain}");
        let coloured = with_title_and_note(&table, &Screen { width: 100, colours: true, terminal: true });
        assert!(coloured.contains("\u{1b}[33mMISSED\u{1b}[0m\n"), "{coloured:?}");
    }
}
