//! Layers whose communication is exposed, and others in their place, as text.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::scenario::Scenario;
use stepcast_report::tables::replacement as tables;
use stepcast_study::replace::{ReplacementReport, ScalingFigures};

/// The report, its last line ended.
pub(crate) fn render(scenario: &Scenario, report: &ReplacementReport, screen: &Screen) -> String {
    let mut sections =
        vec![blocks::headline(scenario, screen) + &screen.paragraph(0, &summary(&report.before))];
    sections.extend(tables::all(report).iter().map(|table| table::section(table, screen)));
    sections.extend(report.reason.as_ref().map(|reason| screen.paragraph(0, reason)));
    sections.extend(blocks::warnings(&report.warnings, screen));
    sections.join("\n")
}

fn summary(before: &ScalingFigures) -> String {
    let step = before.iteration.human();
    match before.exposed.get() > 0.0 {
        true => {
            let exposed = before.exposed.human();
            format!("A step takes {step}; computing does not hide {exposed} of the communication.")
        }
        false => format!("A step takes {step}; computing hides all communication."),
    }
}
