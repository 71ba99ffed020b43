//! Which server holds which layer.

use stepcast_core::machine::{Placement, Servers};
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Scenario;
use stepcast_core::workload::{LayerWork, Workload};

/// The server of every layer under greedy placement: in forward order, each layer goes to the server that holds the
/// fewest bytes (the first one if several do). O(layers · log servers).
pub fn greedy(layers: &[LayerWork], servers: u32) -> Vec<u32> {
    let sizes: Vec<u64> = layers.iter().map(|layer| layer.parameters).collect();
    greedy_sizes(&sizes, servers)
}

/// Greedy placement of items with the given sizes.
pub fn greedy_sizes(sizes: &[u64], servers: u32) -> Vec<u32> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    // With more servers than tensors, the remaining servers stay empty.
    let used = servers.min(sizes.len() as u32);
    let mut loads: BinaryHeap<Reverse<(u64, u32)>> = (0..used).map(|server| Reverse((0, server))).collect();
    let mut assignment = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let Some(Reverse((load, server))) = loads.pop() else { break };
        assignment.push(server);
        loads.push(Reverse((load + size, server)));
    }
    assignment
}

/// What a worker exchanges with the busiest server, where `sent` is what it exchanges of a layer. All servers have the
/// same link and serve the same workers, so the busiest one finishes last.
pub fn largest_share(workload: &Workload, servers: &Servers, sent: impl Fn(&LayerWork) -> Bytes) -> Bytes {
    let whole = || workload.layers.iter().map(&sent).sum::<Bytes>();
    if servers.count == 1 {
        return whole();
    }
    match servers.placement {
        Placement::Even => whole() / f64::from(servers.count),
        Placement::Greedy => {
            let assignment = greedy(&workload.layers, servers.count);
            let mut loads = vec![Bytes::ZERO; servers.count.min(workload.layers.len() as u32) as usize];
            for (layer, server) in workload.layers.iter().zip(assignment) {
                loads[server as usize] += sent(layer);
            }
            loads.into_iter().fold(Bytes::ZERO, Bytes::max)
        }
    }
}

/// The part of what a worker of the group at `index` exchanges that goes to the busiest server.
pub fn busiest(scenario: &Scenario, index: usize) -> f64 {
    let sent = |layer: &LayerWork| scenario.sent(index, layer);
    largest_share(&scenario.workload, &scenario.cluster.servers, sent) / scenario.sent_in_all(index)
}
