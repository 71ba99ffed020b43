//! Updates that proceed beside the steps, as with asynchronous training of several GPUs in a node.

use super::step;
use crate::format::average;
use crate::table::Table;
use stepcast_core::prediction::Updating;

/// How long an update takes and how many samples enter it; where its time goes.
pub(super) fn all(updates: &Updating) -> [Table; 2] {
    let mut table = Table::of_figures("Updates beside the steps");
    table.figure("update time", updates.iteration.human(), "from one update to the next");
    table.figure("minibatch", average(updates.minibatch), "samples that enter one update, on average");
    table.figure(
        "staleness",
        average(updates.staleness),
        "updates since the weights that a gradient was computed with, on average",
    );
    let parts = step::breakdown("Where the time of an update goes", &updates.breakdown, updates.iteration);
    [table, parts]
}
