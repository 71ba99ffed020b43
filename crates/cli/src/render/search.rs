//! A search as text: the best configurations, the front, the constraints, and why the second is not the first.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_report::format::plain;
use stepcast_report::tables::search as tables;
use stepcast_study::explore::search::SearchReport;

/// The whole answer, its last line ended.
pub(crate) fn render(report: &SearchReport, screen: &Screen) -> String {
    let mut sections = vec![screen.paragraph(0, &tables::summary(report))];
    sections.push(table::section(&tables::best(report), screen));
    let reasons: String = report
        .runner_up
        .iter()
        .chain(&report.without_constraints)
        .map(|reason| screen.paragraph(2, &plain(reason)))
        .collect();
    if !reasons.is_empty() {
        sections.push(blocks::section("Why not another", &reasons, screen));
    }
    if report.front.len() > 1 {
        sections.push(table::section(&tables::front(report), screen));
    }
    if !report.constraints.is_empty() {
        sections.push(table::section(&tables::constraints(report), screen));
    }
    sections.join("\n")
}
