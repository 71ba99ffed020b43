//! The fastest admissible conditions of a map.

use crate::format::{average, count, duration, several};
use crate::table::Hint;
use crate::table::Table;
use stepcast_study::explore::map::{Cell, Map};

const SHOWN: usize = 12;

/// The ranking, the fastest first; without rows where no condition has an admissible minibatch.
pub fn ranking(map: &Map) -> Table {
    let mut table =
        Table::new("Fastest conditions", ["#nodes", "#batch", "#epoch", "#minibatch", "#step time"]);
    for (place, &index) in map.ranking.iter().take(SHOWN).enumerate() {
        let Cell { nodes, batch, iteration, epoch, minibatch, .. } = map.cells[index];
        let cells = [
            count(nodes.into()),
            count(batch.into()),
            duration(epoch),
            average(minibatch),
            iteration.human(),
        ];
        table.marked_row(cells, (place == 0).then_some("fastest"));
    }
    if map.ranking.len() > SHOWN {
        let rest = count((map.ranking.len() - SHOWN) as u64);
        table.note = format!("{rest} more are slower.");
        table.hints = vec![Hint::RowsInJson];
    }
    if map.ranking.is_empty() {
        let all = || map.cells.iter().map(|cell| cell.minibatch);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        table.note = format!(
            "No condition has an admissible minibatch: they range from {} to {}.",
            average(low),
            average(high)
        );
    }
    table
}

pub fn summary(map: &Map) -> String {
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
