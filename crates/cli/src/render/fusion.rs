//! Fusion rules side by side, as text.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::scenario::Scenario;
use stepcast_report::format::percent;
use stepcast_report::tables::fusion as tables;
use stepcast_study::fuse::FusionReport;

/// The report, its last line ended; `all_messages` shows every message of the best plan.
pub(crate) fn render(
    scenario: &Scenario,
    report: &FusionReport,
    all_messages: bool,
    screen: &Screen,
) -> String {
    let mut sections = vec![blocks::headline(scenario, screen) + &screen.paragraph(0, &summary(report))];
    sections.extend(tables::all(report, all_messages).iter().map(|table| table::section(table, screen)));
    sections.extend(blocks::warnings(&report.warnings, screen));
    sections.join("\n")
}

fn summary(report: &FusionReport) -> String {
    let [low, high] = report.gain_interval.map(percent);
    let best = report.best();
    let gain = if best.gain < 0.0005 {
        "No plan is noticeably faster than the scenario's rule.".to_owned()
    } else {
        let interval = match low == high {
            true => String::new(),
            false => format!(
                " Where computing times vary and the slowest worker decides, it is {low} to {high} faster in nine steps \
                 of ten."
            ),
        };
        format!("The best plan is {} faster than the scenario's rule.{interval}", percent(best.gain))
    };
    format!("{gain} {}.", capitalised(&report.search))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
