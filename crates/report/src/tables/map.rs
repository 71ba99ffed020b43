//! The fastest admissible conditions of a map.

use crate::format::{average, count, duration};
use crate::table::{Column, Table};
use stepcast_study::explore::map::{Cell, Map};

/// Rows of the ranking.
const SHOWN: usize = 12;

/// The ranking, the fastest first; without rows where no condition has an admissible minibatch.
pub fn ranking(map: &Map) -> Table {
    let mut table = Table::new(
        "Fastest conditions",
        [
            Column::numbers("nodes"),
            Column::numbers("batch"),
            Column::numbers("epoch"),
            Column::numbers("minibatch"),
            Column::numbers("step time"),
        ],
    );
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
        table.note = format!("{rest} more are slower; `--json` has them all.");
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
