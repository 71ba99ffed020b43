//! Layers whose communication is exposed, and others in their place, as text.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::scenario::Scenario;
use stepcast_report::tables::replacement as tables;
use stepcast_study::replace::ReplacementReport;

/// The report, its last line ended.
pub(crate) fn render(scenario: &Scenario, report: &ReplacementReport, screen: &Screen) -> String {
    let mut sections =
        vec![blocks::headline(scenario, screen) + &screen.paragraph(0, &tables::summary(&report.before))];
    sections.extend(tables::all(report).iter().map(|table| table::section(table, screen)));
    sections.extend(report.reason.as_ref().map(|reason| screen.paragraph(0, reason)));
    sections.extend(blocks::warnings(&report.warnings, screen));
    sections.join("\n")
}
