//! Text for people: the blocks that answers share, tables, paragraphs, errors.
//!
//! Tables are built in `stepcast_report::tables`; commands put them into sections.

pub(crate) mod error;
mod screen;
pub(crate) mod table;

pub(crate) use screen::Screen;

use stepcast_core::prediction::Warning;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::plain;
use stepcast_report::sentences;
use stepcast_report::table::Table;

/// The scenario in two lines.
pub(crate) fn headline(scenario: &Scenario, screen: &Screen) -> String {
    let (title, setting) = (sentences::title(scenario), sentences::setting(scenario));
    let title: String = screen.paragraph(0, &title).lines().map(|line| screen.strong(line) + "\n").collect();
    title + &screen.paragraph(0, &setting)
}

/// A text under its title.
pub(crate) fn section(title: &str, body: &str, screen: &Screen) -> String {
    format!("{}\n{body}", screen.title(title))
}

/// One line of a list, with an exclamation mark before it.
pub(crate) fn item(text: &str, screen: &Screen) -> String {
    format!("  {} {}", screen.bad("!"), screen.paragraph(4, &plain(text)).trim_start())
}

/// The section of warnings; none where there are none.
pub(crate) fn warnings(warnings: &[Warning], screen: &Screen) -> Option<String> {
    let lines: String = warnings
        .iter()
        .map(|warning| item(&format!("{}: {}", warning.code, warning.message), screen))
        .collect();
    (!warnings.is_empty()).then(|| section("Warnings", &lines, screen))
}

/// The tables below each other, each under its title.
pub(crate) fn tables<'a>(tables: impl IntoIterator<Item = &'a Table>, screen: &Screen) -> Vec<String> {
    tables.into_iter().map(|table| table::section(table, screen)).collect()
}
