//! A search as text: the best configurations, the front, the constraints, and why the second is not the first.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_report::format::{count, percent, plain, several};
use stepcast_report::sentences;
use stepcast_report::tables::search as tables;
use stepcast_study::explore::search::{SearchReport, SearchStrategy};

/// The whole answer, its last line ended.
pub(crate) fn render(report: &SearchReport, screen: &Screen) -> String {
    let mut sections = vec![screen.paragraph(0, &summary(report))];
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

/// How the configurations were searched and what is known about the optimum.
fn summary(report: &SearchReport) -> String {
    let how = match report.how {
        SearchStrategy::Exhaustive => "one by one",
        SearchStrategy::Bound => "by branch and bound",
        SearchStrategy::Heuristic => "by local search",
    };
    let gap = match report.gap {
        Some(gap) if gap <= 0.0 => "No better one exists among them.".to_owned(),
        Some(gap) => format!("The optimum is at most {} below the best shown.", percent(gap)),
        None => "How far the optimum is from the best shown is not known.".to_owned(),
    };
    let refused = match (report.refused, &report.refusal) {
        (0, _) | (_, None) => String::new(),
        (refused, Some(why)) => {
            format!(" {} could not be predicted, the first because {}.", count(refused), plain(why))
        }
    };
    let mixed = sentences::mixed(&report.methods).map_or(String::new(), |mixed| format!(" {mixed}"));
    format!(
        "Searched {} {how}: predicted {}, of which {} satisfy all constraints. The search ended because {}. {gap}{refused}{mixed}",
        several(report.configurations, "configuration"),
        count(report.evaluated),
        count(report.admitted),
        report.stopped,
    )
}
