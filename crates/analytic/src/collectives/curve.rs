//! Time of an all-reduce as a function of its size, on the machines of a scenario.

use super::reached::AchievedRates;
use super::{Cost, Fabric, Hierarchy, all_reduce};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::{Cluster, Network, WorkerGroup};
use stepcast_core::quantity::{BitsPerSec, Bytes, BytesPerSec, FlopsPerSec, Seconds};
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
    Cost { latency, ..all_reduce(Algorithm::Ring, fabric, workers, SOME) }.line(SOME)
}

/// The all-reduce curve of a scenario, either given or derived from its network and algorithm. The slowest port and
/// the slowest worker set the rates; copies on the hosts do not overlap the transfer on the wire.
pub fn curve(scenario: &Scenario) -> Curve {
    let exchange = &scenario.strategy.exchange;
    if scenario.cluster.workers() <= 1 {
        return all_reduce(Algorithm::Ring, &between(&scenario.cluster), 1, SOME).line(SOME);
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

/// Cost of an all-reduce of `size`, split by cause, derived from the network and the algorithm. Links carry what their
/// transports reach, and starting an all-reduce takes what published runs show, whatever the flat
/// algorithm; on an ideal network, the algorithm's steps and the nominal rates count.
pub fn scenario_cost(scenario: &Scenario, size: Bytes) -> Cost {
    let cluster = &scenario.cluster;
    let algorithm = scenario.strategy.exchange.algorithm;
    match AchievedRates::from_cluster(cluster, &scenario.priors.all_reduce) {
        Some(reached) => reached_cost(cluster, algorithm, &reached, size),
        None => ideal_cost(cluster, algorithm, size),
    }
}

fn reached_cost(cluster: &Cluster, algorithm: Algorithm, reached: &AchievedRates, size: Bytes) -> Cost {
    let workers = u32::try_from(cluster.workers()).unwrap_or(u32::MAX);
    // What is reached includes the time to combine numbers.
    let fabric = |rate: BytesPerSec| Fabric {
        step: Seconds::ZERO,
        bandwidth: rate,
        reduce: FlopsPerSec::new(f64::INFINITY),
        element: ELEMENT,
    };
    let cost = match (algorithm, &cluster.nodes) {
        (Algorithm::Hierarchical, Some(_)) => {
            let unused = BytesPerSec::new(f64::INFINITY);
            let hierarchy = Hierarchy {
                per_node: cluster.workers_per_domain().min(workers),
                on_last: cluster.workers_on_last_domain().min(workers),
                nodes: workers.div_ceil(cluster.workers_per_domain()),
                intra: fabric(reached.inside.unwrap_or(unused)),
                inter: fabric(reached.between.unwrap_or(unused)),
            };
            hierarchy.cost(size)
        }
        (algorithm, _) => all_reduce(algorithm, &fabric(reached.ring()), workers, size),
    };
    Cost { latency: if size > Bytes::ZERO { reached.start() } else { Seconds::ZERO }, ..cost }
}

fn ideal_cost(cluster: &Cluster, algorithm: Algorithm, size: Bytes) -> Cost {
    let workers = u32::try_from(cluster.workers()).unwrap_or(u32::MAX);
    match (algorithm, &cluster.nodes) {
        (Algorithm::Hierarchical, Some(nodes)) => {
            let hierarchy = Hierarchy {
                per_node: cluster.workers_per_domain().min(workers),
                on_last: cluster.workers_on_last_domain().min(workers),
                nodes: workers.div_ceil(cluster.workers_per_domain()),
                intra: fabric(cluster, &nodes.network, nodes.network.bandwidth),
                inter: with_ports(between(cluster), cluster.ports_in_use()),
            };
            hierarchy.cost(size)
        }
        // Workers of one machine do not use the network.
        (algorithm, Some(nodes)) if workers <= cluster.workers_per_domain() => {
            let inside = fabric(cluster, &nodes.network, nodes.network.bandwidth);
            all_reduce(algorithm, &inside, workers, size)
        }
        (algorithm, _) => all_reduce(algorithm, &between(cluster), workers, size),
    }
}

/// The network of a machine with several ports, all of which a collective uses.
fn with_ports(fabric: Fabric, ports: u32) -> Fabric {
    Fabric { bandwidth: fabric.bandwidth * f64::from(ports), ..fabric }
}

pub(super) fn slowest_port(cluster: &Cluster) -> BitsPerSec {
    let port = |group: &WorkerGroup| group.bandwidth.unwrap_or(cluster.network.bandwidth);
    cluster.groups.iter().map(port).reduce(|a, b| a.min(b)).unwrap_or(cluster.network.bandwidth)
}

fn between(cluster: &Cluster) -> Fabric {
    fabric(cluster, &cluster.network, slowest_port(cluster))
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
