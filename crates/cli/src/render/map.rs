//! A map of conditions as text: the fastest of those that are admissible.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::scenario::Scenario;
use stepcast_report::tables::map as tables;
use stepcast_study::explore::map::Map;

/// The ranking, its last line ended.
pub(crate) fn render(scenario: &Scenario, map: &Map, screen: &Screen) -> String {
    let mut sections = vec![
        blocks::headline(scenario, screen) + &screen.paragraph(0, &tables::summary(map)),
        table::section(&tables::ranking(map), screen),
    ];
    sections.extend(blocks::warnings(&map.warnings, screen));
    sections.join("\n")
}
