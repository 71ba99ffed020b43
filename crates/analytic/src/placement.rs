//! Which server holds which layer, and which traffic of parameter servers passes which port: workers of a machine share
//! its ports, and so do servers on it.

use stepcast_core::machine::{Cluster, Placement, Servers, WorkerGroup};
use stepcast_core::quantity::{BitsPerSec, Bytes};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Synchronisation;
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

/// The bytes that a worker exchanges with the busiest server; `sent` gives its bytes for a layer. All servers have the
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

/// The share of its traffic that a worker of the group at `index` exchanges with the busiest server.
pub fn busiest(scenario: &Scenario, index: usize) -> f64 {
    let sent = |layer: &LayerWork| scenario.sent(index, layer);
    largest_share(&scenario.workload, &scenario.cluster.servers, sent) / scenario.sent_in_all(index)
}

/// Traffic of a machine with workers of one group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    pub workers: u32,
    /// Rate of all its ports, in one direction.
    pub rate: BitsPerSec,
    /// Traffic through its ports in one direction for each of its workers, in exchanges of one worker with all servers:
    /// 1, unless servers run on it too.
    pub load: f64,
}

impl Machine {
    pub fn new(scenario: &Scenario, index: usize) -> Self {
        let cluster = &scenario.cluster;
        let group = &cluster.groups[index];
        let workers = cluster.workers_per_node().min(group.count);
        let ports = cluster.nodes.as_ref().and_then(|nodes| nodes.ports).unwrap_or(1);
        let rate = worker_port(cluster, group) * f64::from(ports);
        Self { workers, rate, load: load(scenario, index, workers) }
    }

    /// Whether its ports can be the limit: they are slower than a server's, or carry the traffic of several servers or
    /// workers.
    pub fn is_limited(&self, cluster: &Cluster) -> bool {
        let servers = &cluster.servers;
        servers.count > 1 || servers.colocated || self.workers > 1 || self.rate < server_port(cluster)
    }
}

/// Traffic per worker of a machine with this many of them. Without servers on it, each worker exchanges everything with
/// the servers. Servers on it hold a share of the parameters, which its own workers reach without the network and all
/// others through its ports: workers that wait for each other push at the same time, so that what its workers send and
/// what its servers receive go in opposite directions; others push and pull at any time.
fn load(scenario: &Scenario, index: usize, workers: u32) -> f64 {
    let servers = &scenario.cluster.servers;
    if !servers.colocated {
        return 1.0;
    }
    let (all, own) = (scenario.cluster.workers() as f64, f64::from(workers));
    let machines = (all / own).ceil();
    let on_machine = (f64::from(servers.count) / machines).ceil() / f64::from(servers.count);
    let fullest = busiest(scenario, index);
    let share = on_machine.max(fullest).min(1.0);
    let (workers, servers) = (1.0 - share, share * (all - own) / own);
    match scenario.strategy.synchronisation {
        Synchronisation::Async | Synchronisation::Ssp(_) => workers + servers,
        Synchronisation::Bsp | Synchronisation::LocalSgd(_) => workers.max(servers),
    }
}

pub fn server_port(cluster: &Cluster) -> BitsPerSec {
    cluster.servers.bandwidth.unwrap_or(cluster.network.bandwidth)
}

pub fn worker_port(cluster: &Cluster, group: &WorkerGroup) -> BitsPerSec {
    group.bandwidth.unwrap_or(cluster.network.bandwidth)
}
