//! On two levels: within nodes, then between them.

use super::build::{Builder, Way};
use crate::program::ProgramError;

/// Reduce-scatter around a ring within every node; ring all-reduce between nodes, every worker with its share and those of
/// the same place in the other nodes; all-gather within nodes. Without nodes this is the ring.
pub(super) fn rounds(builder: &mut Builder<'_>) -> Result<(), ProgramError> {
    let workers = builder.workers();
    let per_node = builder.machines.nodes.map_or(workers, |nodes| nodes.workers.min(workers)).max(1);
    if !workers.is_multiple_of(per_node) {
        return Err(ProgramError(format!("{workers} workers do not fill nodes of {per_node}")));
    }
    let nodes = workers / per_node;
    let inside = |worker: u32| Some(worker - worker % per_node + (worker + 1) % per_node);
    let within = builder.way(Way::alone((0..workers).map(inside)));
    let between = builder.way(Way::shared((0..workers).map(|worker| Some((worker + per_node) % workers))));
    builder.around(within, per_node, 1.0, true);
    let share = 1.0 / f64::from(per_node);
    builder.around(between, nodes, share, true);
    builder.around(between, nodes, share, false);
    builder.around(within, per_node, 1.0, false);
    Ok(())
}
