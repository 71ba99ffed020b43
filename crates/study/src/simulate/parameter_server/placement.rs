//! Which server holds the tensors of each operation.

use stepcast_analytic::placement;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::scenario::Scenario;

/// The server of every operation: parameters greedily in the order in which they come down, gradients with the parameters
/// of the same size, server operations with the transfer next to them. A model's parameters count by their size, of which
/// sparse tables send a part; those of a profile by what comes down.
pub(super) fn servers(scenario: &Scenario, profile: &Profile, servers: u32) -> Vec<u32> {
    let count = profile.operations.len();
    let mut server_of = vec![0; count];
    if servers == 1 {
        return server_of;
    }
    let downlinks: Vec<usize> =
        (0..count).filter(|&op| profile.operations[op].resource == Resource::Downlink).collect();
    let sizes: Vec<u64> = match scenario.profile() {
        Some(_) => downlinks.iter().map(|&op| profile.operations[op].bytes).collect(),
        None => scenario.workload.layers.iter().map(|layer| layer.parameters).collect(),
    };
    let placed = placement::greedy_sizes(&sizes, servers);
    let mut free: Vec<(u64, u32)> = Vec::new();
    for (&op, &server) in downlinks.iter().zip(&placed) {
        server_of[op] = server;
        free.push((profile.operations[op].bytes, server));
    }
    for op in (0..count).filter(|&op| profile.operations[op].resource == Resource::Uplink) {
        let twin = free.iter().rposition(|(bytes, _)| *bytes == profile.operations[op].bytes);
        server_of[op] = twin.map_or(0, |twin| free.swap_remove(twin).1);
    }
    for op in 0..count {
        let operation = &profile.operations[op];
        if operation.resource != Resource::Server {
            continue;
        }
        let before = operation
            .after
            .iter()
            .copied()
            .find(|&before| profile.operations[before as usize].resource == Resource::Uplink);
        let behind =
            || downlinks.iter().copied().find(|&down| profile.operations[down].after.contains(&(op as u32)));
        server_of[op] = before
            .map(|before| server_of[before as usize])
            .or_else(|| behind().map(|down| server_of[down]))
            .unwrap_or(0);
    }
    server_of
}
