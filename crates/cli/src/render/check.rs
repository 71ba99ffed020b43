//! A running job against its forecast, as text.

use super::screen::Screen;
use super::{blocks, table};
use crate::words::WORDING;
use stepcast_core::scenario::Scenario;
use stepcast_report::tables::check as tables;
use stepcast_study::check::Check;

/// The check, its last line ended.
pub(crate) fn render(scenario: &Scenario, check: &Check, screen: &Screen) -> String {
    let mut sections = vec![
        blocks::headline(scenario, screen),
        screen.paragraph(0, &tables::verdict(check)),
        table::section(&tables::steps(check), screen),
    ];
    let suspects = tables::suspects(check, WORDING);
    if !suspects.rows.is_empty() {
        let alone = "alone: the factor on the assumed figures that would explain the whole difference.";
        sections.push(table::section(&suspects, screen) + &screen.paragraph(2, alone));
    }
    sections.join("\n")
}
