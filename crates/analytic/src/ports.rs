//! Which traffic of parameter servers passes which port: workers of a machine share its ports, and so do servers on it.

use crate::placement;
use stepcast_core::machine::{Cluster, WorkerGroup};
use stepcast_core::quantity::BitsPerSec;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Synchronisation;

/// What a machine with workers of one group carries.
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
    let fullest = placement::busiest(scenario, index);
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
