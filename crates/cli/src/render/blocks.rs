//! The blocks that answers share: the headline, titled sections, lists of warnings and notes.

use super::screen::Screen;
use stepcast_core::prediction::Warning;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::plain;
use stepcast_report::sentences;

/// The scenario in two lines.
pub(super) fn headline(scenario: &Scenario, screen: &Screen) -> String {
    let (title, setting) = (sentences::title(scenario), sentences::setting(scenario));
    let title: String = screen.paragraph(0, &title).lines().map(|line| screen.strong(line) + "\n").collect();
    title + &screen.paragraph(0, &setting)
}

/// A text under its title.
pub(super) fn section(title: &str, body: &str, screen: &Screen) -> String {
    format!("{}\n{body}", screen.title(title))
}

/// One line of a list, with an exclamation mark before it.
pub(super) fn item(text: &str, screen: &Screen) -> String {
    format!("  {} {}", screen.bad("!"), screen.paragraph(4, &plain(text)).trim_start())
}

/// The section of warnings; none where there are none.
pub(super) fn warnings(warnings: &[Warning], screen: &Screen) -> Option<String> {
    let lines: String = warnings
        .iter()
        .map(|warning| item(&format!("{}: {}", warning.code, warning.message), screen))
        .collect();
    (!warnings.is_empty()).then(|| section("Warnings", &lines, screen))
}
