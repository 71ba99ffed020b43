//! Time of an all-reduce as a function of its size, on the machines of a scenario.

use super::{AllReduce, Cost, Fabric, Hierarchy};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::{Cluster, Network, WorkerGroup};
use stepcast_core::quantity::{BitsPerSec, Bytes, FlopsPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Algorithm;

/// s: gradients are sent as 32-bit numbers.
const ELEMENT: Bytes = Bytes::new(4.0);

/// Costs are linear in the size, so the rates can be derived from any size.
const SOME: Bytes = Bytes::new(1e6);

/// Ring all-reduce with one fixed cost (Liu 2022, eq. 7):
///
/// ```text
/// t(D) = 2(N-1)/(βN) D + (N-1)/(Nπs) D + δ
/// ```
///
/// Two departures from the paper: t(0) = 0 instead of δ (errata 4.2), and a single worker takes no time because it
/// has no peer to communicate with. The α of `fabric` is not used.
pub fn ring_update(fabric: &Fabric, workers: u32, overhead: Seconds) -> Curve {
    let latency = if workers > 1 { overhead } else { Seconds::ZERO };
    Cost { latency, ..AllReduce::Ring.cost(fabric, workers, SOME) }.line(SOME)
}

/// The all-reduce curve of a scenario, either given or derived from its network and algorithm. The slowest port and
/// the slowest worker set the rates; copies on the hosts do not overlap the transfer on the wire.
pub fn curve(scenario: &Scenario) -> Curve {
    let exchange = &scenario.strategy.exchange;
    if scenario.cluster.workers() <= 1 {
        return AllReduce::Ring.cost(&between(&scenario.cluster), 1, SOME).line(SOME);
    }
    if let Some(curve) = &exchange.curve {
        return curve.clone();
    }
    let mut cost = scenario_cost(scenario, SOME);
    if let Some(overhead) = exchange.overhead {
        cost.latency = overhead;
    }
    cost.line(SOME)
}

/// Cost of an all-reduce of `size`, split by cause, derived from the network and the algorithm.
pub fn scenario_cost(scenario: &Scenario, size: Bytes) -> Cost {
    let cluster = &scenario.cluster;
    let workers = u32::try_from(cluster.workers()).unwrap_or(u32::MAX);
    let flat = |algorithm: AllReduce| algorithm.cost(&between(cluster), workers, size);
    match (scenario.strategy.exchange.algorithm, &cluster.nodes) {
        (Algorithm::Hierarchical, Some(nodes)) => {
            let hierarchy = Hierarchy {
                per_node: nodes.workers.min(workers),
                nodes: workers.div_ceil(nodes.workers),
                intra: fabric(cluster, &nodes.network, nodes.network.bandwidth),
                inter: with_ports(between(cluster), nodes.ports.unwrap_or(1)),
            };
            hierarchy.cost(size)
        }
        (Algorithm::Ring | Algorithm::Hierarchical, _) => flat(AllReduce::Ring),
        (Algorithm::HalvingDoubling, _) => flat(AllReduce::HalvingDoubling),
        (Algorithm::Tree, _) => flat(AllReduce::Tree),
        (Algorithm::DoubleTree, _) => flat(AllReduce::DoubleTree),
    }
}

/// The network of a machine with several ports, all of which a collective uses.
fn with_ports(fabric: Fabric, ports: u32) -> Fabric {
    Fabric { bandwidth: fabric.bandwidth * f64::from(ports), ..fabric }
}

fn between(cluster: &Cluster) -> Fabric {
    let port = |group: &WorkerGroup| group.bandwidth.unwrap_or(cluster.network.bandwidth);
    let slowest = cluster.groups.iter().map(port).reduce(|a, b| a.min(b));
    fabric(cluster, &cluster.network, slowest.unwrap_or(cluster.network.bandwidth))
}

fn fabric(cluster: &Cluster, network: &Network, port: BitsPerSec) -> Fabric {
    let peak = |group: &WorkerGroup| group.device.fp32_peak() * group.speed;
    let infinite = FlopsPerSec::new(f64::INFINITY);
    Fabric {
        step: network.latency + network.startup,
        bandwidth: network.payload_rate(port),
        reduce: cluster.groups.iter().map(peak).fold(infinite, FlopsPerSec::min),
        element: ELEMENT,
    }
}
