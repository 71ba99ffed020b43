//! A map of conditions as text: the fastest of those that are admissible.

use super::forecast::{question, section, warnings};
use super::table;
use super::updating::average;
use super::{Screen, count, duration, several};
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_study::explore::map::{Cell, Map};

/// Rows of the ranking.
const SHOWN: usize = 12;

/// The ranking, its last line ended.
pub(crate) fn render(scenario: &Scenario, map: &Map, screen: &Screen) -> String {
    let mut sections = vec![question(scenario, screen) + &screen.paragraph(0, &extent(map))];
    if map.ranking.is_empty() {
        sections.push(section("Fastest conditions", screen.paragraph(2, &nothing(map)), screen));
    } else {
        sections.push(section("Fastest conditions", ranking(map, screen), screen));
    }
    if !map.warnings.is_empty() {
        sections.push(section("Warnings", warnings(&map.warnings, screen), screen));
    }
    sections.join("\n")
}

fn extent(map: &Map) -> String {
    let ends = |numbers: &[u32]| match numbers {
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    };
    let admitted = match map.minibatch {
        Some(range) => {
            format!(
                "{} have a minibatch from {} to {}",
                count(map.ranking.len() as u64),
                range.low,
                range.high
            )
        }
        None => "all minibatches are admitted".to_owned(),
    };
    format!(
        "Mapped by {}: {} nodes of {}, batches of {}; {}, and {admitted}.",
        map.method,
        ends(&map.nodes),
        several(u64::from(map.workers_per_node), "worker"),
        ends(&map.batches),
        several(map.cells.len() as u64, "condition"),
    )
}

fn ranking(map: &Map, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::numbers("nodes"),
            Column::numbers("batch"),
            Column::numbers("epoch"),
            Column::numbers("minibatch"),
            Column::numbers("step time"),
            Column::names(""),
        ],
    );
    for (place, &index) in map.ranking.iter().take(SHOWN).enumerate() {
        let Cell { nodes, batch, iteration, epoch, minibatch, .. } = map.cells[index];
        let mark = if place == 0 { "◂ fastest" } else { "" };
        table.row([
            count(nodes.into()),
            count(batch.into()),
            duration(epoch),
            average(minibatch),
            iteration.human(),
            mark.to_owned(),
        ]);
    }
    let mut text = table::render(&table, screen);
    if map.ranking.len() > SHOWN {
        let rest = count((map.ranking.len() - SHOWN) as u64);
        text.push_str(&screen.paragraph(2, &format!("{rest} more are slower; `--json` has them all.")));
    }
    text
}

fn nothing(map: &Map) -> String {
    let all = || map.cells.iter().map(|cell| cell.minibatch);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    format!("No condition has such a minibatch: here they go from {} to {}.", average(low), average(high))
}
