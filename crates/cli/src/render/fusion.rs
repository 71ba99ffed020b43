//! Fusion rules side by side, as text.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::scenario::Scenario;
use stepcast_report::tables::fusion as tables;
use stepcast_study::fuse::FusionReport;

/// The report, its last line ended; `all_messages` shows every message of the best plan.
pub(crate) fn render(
    scenario: &Scenario,
    report: &FusionReport,
    all_messages: bool,
    screen: &Screen,
) -> String {
    let mut sections =
        vec![blocks::headline(scenario, screen) + &screen.paragraph(0, &tables::summary(report))];
    sections.extend(tables::all(report, all_messages).iter().map(|table| table::section(table, screen)));
    sections.extend(blocks::warnings(&report.warnings, screen));
    sections.join("\n")
}
