//! The best plan as text: its figures, its training, what else is worth having, and what every property costs.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_report::format::{count, name};
use stepcast_report::tables::plan as tables;
use stepcast_study::explore::plan::{Aim, PlanReport};

/// The whole answer, its last line ended.
pub(crate) fn render(report: &PlanReport, screen: &Screen) -> String {
    let title = format!("{} split over {} workers", name(&report.model), count(report.best.workers));
    let mut sections = vec![format!("{}\n{}", screen.strong(&title), screen.paragraph(0, &summary(report)))];
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

/// What was looked at and what is known about the optimum.
fn summary(report: &PlanReport) -> String {
    let counts = &report.counts;
    let part = |number: u64, what: &str| match number {
        0 => String::new(),
        _ => format!(" {} {what},", count(number)),
    };
    let aim = match report.objective {
        Aim::Time => "shorter",
        Aim::Cost => "cheaper",
    };
    let end = match report.interrupted {
        true => "The search was stopped: a better plan may exist.".to_owned(),
        false => format!("No valid plan is {aim}."),
    };
    format!(
        "{} valid plans:{}{}{}{} {} computed. {end}",
        count(counts.plans),
        part(counts.too_large, "do not fit"),
        part(counts.too_slow, "miss the deadline"),
        part(counts.too_dear, "exceed the budget"),
        part(counts.bounded, "excluded by a lower bound"),
        count(counts.evaluated),
    )
}
