//! The best plan as text: its figures, its training, what else is worth having, and what every property costs.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_report::format::{name, several};
use stepcast_report::tables::plan as tables;
use stepcast_study::explore::plan::PlanReport;

/// The whole answer, its last line ended.
pub(crate) fn render(report: &PlanReport, screen: &Screen) -> String {
    let title = format!("{} split over {}", name(&report.model), several(report.best.workers, "worker"));
    let mut sections =
        vec![format!("{}\n{}", screen.strong(&title), screen.paragraph(0, &tables::summary(report)))];
    sections.push(table::section(&tables::best(report), screen));
    if let Some(training) = &report.training {
        sections.push(table::section(&tables::training(training, &report.currency), screen));
    }
    if report.front.len() > 1 {
        sections.push(table::section(&tables::front(report), screen));
    }
    sections.push(table::section(&tables::families(report), screen));
    let lines: String = report.toml.lines().map(|line| format!("  {line}\n")).collect();
    sections.push(blocks::section("Plan", &lines, screen));
    sections.extend(blocks::warnings(&report.prediction.warnings, screen));
    sections.join("\n")
}
