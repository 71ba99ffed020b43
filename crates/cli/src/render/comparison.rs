//! Methods side by side, as text.

use super::screen::Screen;
use super::{blocks, table};
use crate::words::WORDING;
use stepcast_core::scenario::Scenario;
use stepcast_report::tables::comparison as tables;
use stepcast_study::predict::compare::Comparison;

/// The comparison, its last line ended.
pub(crate) fn render(scenario: &Scenario, comparison: &Comparison, screen: &Screen) -> String {
    let differences = comparison.differences.iter().map(|sentence| screen.paragraph(2, sentence));
    let tables = [
        (tables::predictions(comparison), String::new()),
        (tables::effects(comparison), differences.collect()),
        (tables::refusals(comparison, WORDING), String::new()),
    ];
    let mut sections = vec![blocks::headline(scenario, screen)];
    for (table, sentences) in tables.iter().filter(|(table, _)| !table.rows.is_empty()) {
        sections.push(table::section(table, screen) + sentences);
    }
    sections.join("\n")
}
