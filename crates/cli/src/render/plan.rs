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
    sections.extend(tables::stages(report).map(|stages| table::section(&stages, screen)));
    if let Some(training) = &report.training {
        sections.push(table::section(&tables::training(training, &report.currency), screen));
    }
    if report.front.len() > 1 {
        sections.push(table::section(&tables::front(report), screen));
    }
    sections.push(table::section(&tables::families(report), screen));
    let written = |toml: &str| toml.lines().map(|line| format!("  {line}\n")).collect::<String>();
    sections.push(blocks::section("Plan", &written(&report.toml), screen));
    if let Some(stages) = &report.stages {
        sections.push(blocks::section("Plan, stage by stage", &written(&stages.toml), screen));
    }
    sections.extend(blocks::warnings(&report.prediction.warnings, screen));
    sections.join("\n")
}
