//! A map of conditions as text: the fastest of those that are admissible.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::scenario::Scenario;
use stepcast_report::format::{count, several};
use stepcast_report::tables::map as tables;
use stepcast_study::explore::map::Map;

/// The ranking, its last line ended.
pub(crate) fn render(scenario: &Scenario, map: &Map, screen: &Screen) -> String {
    let mut sections = vec![
        blocks::headline(scenario, screen) + &screen.paragraph(0, &extent(map)),
        table::section(&tables::ranking(map), screen),
    ];
    sections.extend(blocks::warnings(&map.warnings, screen));
    sections.join("\n")
}

fn extent(map: &Map) -> String {
    let ends = |numbers: &[u32]| match numbers {
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    };
    let admitted = match map.minibatch {
        Some(range) => format!(
            "{} of them have a minibatch from {} to {}",
            count(map.ranking.len() as u64),
            range.low,
            range.high
        ),
        None => "every minibatch is admissible".to_owned(),
    };
    format!(
        "Mapped by {}: {} nodes of {}, batches of {}. That is {}; {admitted}.",
        map.method,
        ends(&map.nodes),
        several(u64::from(map.workers_per_node), "worker"),
        ends(&map.batches),
        several(map.cells.len() as u64, "condition"),
    )
}
