//! Costs of collective operations among N identical workers that reduce the same amount of data.
//!
//! Every worker has one full-duplex port. [`Fabric`] holds the cost parameters: a fixed cost α per algorithm step,
//! 1/β per byte on a port, and one operation at the rate π to combine two numbers. A [`Cost`] is split by cause,
//! linear in the size, and zero if there are no bytes to send or only one worker.
//!
//! The costs of the ring, halving-doubling and tree algorithms follow Thakur, Rabenseifner and Gropp 2005 (doi
//! 10.1177/1094342005051521). The cost of the two-tree algorithm is the small-packet limit of Sanders, Speck and
//! Träff 2009 (doi 10.1016/j.parco.2009.09.001).
//!
//! A [`Curve`] gives the time of a whole collective as a function of its size, in the form that the overlap models
//! use. [`curve`] derives it from a scenario; [`ring_update`] implements eq. 7 of Liu et al. 2022.

mod reached;

pub(crate) use reached::{Machines, reached_rate};

use reached::AchievedRates;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::{Cluster, Network, WorkerGroup};
use stepcast_core::quantity::{BitsPerSec, Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Algorithm;

/// Network between the workers, and the rate at which they reduce incoming data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// α: fixed cost of every algorithm step.
    pub step: Seconds,
    /// β: bandwidth of a worker's port in one direction.
    pub bandwidth: BytesPerSec,
    /// π: rate at which a worker combines numbers; infinite if combining is free.
    pub reduce: FlopsPerSec,
    /// s: size of one number.
    pub element: Bytes,
}

/// Time of a collective, split by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Fixed costs of all algorithm steps.
    pub latency: Seconds,
    /// Time to transfer the bytes over the ports.
    pub transfer: Seconds,
    /// Time to combine the numbers.
    pub reduction: Seconds,
}

impl Cost {
    pub fn total(self) -> Seconds {
        self.latency + self.transfer + self.reduction
    }

    /// The linear curve of a collective for which `size` bytes have this cost.
    pub fn line(self, size: Bytes) -> Curve {
        Curve::AlphaBeta { startup: self.latency, bandwidth: size / (self.transfer + self.reduction) }
    }

    /// Cost of this collective followed by another.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            latency: self.latency + next.latency,
            transfer: self.transfer + next.transfer,
            reduction: self.reduction + next.reduction,
        }
    }
}

impl Fabric {
    /// Cost of `steps` algorithm steps in which the busiest port carries `carried` times `size` and the busiest
    /// worker combines `combined` times `size`.
    fn cost(&self, size: Bytes, steps: f64, carried: f64, combined: f64) -> Cost {
        if size <= Bytes::ZERO {
            return Cost::default();
        }
        Cost {
            latency: self.step * steps,
            transfer: size * carried / self.bandwidth,
            reduction: Flops::new(size * combined / self.element) / self.reduce,
        }
    }
}

/// (N - 1)/N: the share of the data that belongs to the other workers.
fn others(workers: u32) -> f64 {
    f64::from(workers.saturating_sub(1)) / f64::from(workers.max(1))
}

/// Number of steps for one pass around a ring.
fn ring_steps(workers: u32) -> f64 {
    f64::from(workers.saturating_sub(1))
}

/// ⌈log₂ N⌉: number of rounds after which data from every worker can have reached every other worker.
fn rounds(workers: u32) -> f64 {
    f64::from(u32::BITS - workers.max(1).saturating_sub(1).leading_zeros())
}

/// Cost of an all-reduce of `size` bytes per worker among `workers`, all of which an algorithm treats alike; the
/// hierarchical one is a ring then. With `log₂` rounded up in trees:
///
/// ```text
/// ring               2(N-1) α + 2(N-1)/N D/β + (N-1)/N D/(sπ)
/// halving-doubling   2 log₂(p) α + 2(p-1)/p D/β + (p-1)/p D/(sπ)     and, if p < N,     2α + 2 D/β + D/(sπ)
/// tree               2 log₂(N) (α + D/β) + log₂(N) D/(sπ)
/// double-tree        2 log₂(N) α + 2 D/β + D/(sπ)
/// ```
///
/// A ring is a reduce-scatter, then an all-gather. Recursive halving and doubling work among the largest power of two p ≤ N:
/// each of the other N - p workers first sends all its data to a partner and receives the sum at the end. A tree sends whole
/// messages to one worker and back. Each of two trees has half of the data, in packets so small that the depth of the trees
/// only adds steps; every worker is a leaf of one tree and an inner node of the other.
pub fn all_reduce(algorithm: Algorithm, fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    if workers <= 1 {
        return Cost::default();
    }
    let depth = rounds(workers);
    match algorithm {
        Algorithm::Ring | Algorithm::Hierarchical => {
            reduce_scatter(fabric, workers, size).then(all_gather(fabric, workers, size))
        }
        Algorithm::HalvingDoubling => {
            let power = 1 << workers.ilog2();
            let share = others(power);
            let core = fabric.cost(size, 2.0 * rounds(power), 2.0 * share, share);
            if power == workers { core } else { core.then(fabric.cost(size, 2.0, 2.0, 1.0)) }
        }
        Algorithm::Tree => fabric.cost(size, 2.0 * depth, 2.0 * depth, depth),
        Algorithm::DoubleTree => fabric.cost(size, 2.0 * depth, 2.0, 1.0),
    }
}

/// Cost of a ring reduce-scatter of `size` bytes per worker.
///
/// ```text
/// (N-1) α + (N-1)/N D/β + (N-1)/N D/(sπ)
/// ```
pub fn reduce_scatter(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, ring_steps(workers), others(workers), others(workers))
}

/// Cost of a ring all-gather that leaves every worker with all `size` bytes.
///
/// ```text
/// (N-1) α + (N-1)/N D/β
/// ```
pub fn all_gather(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, ring_steps(workers), others(workers), 0.0)
}

/// Nodes with several workers each, identical but for the last, which may have fewer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hierarchy {
    /// Workers of a full node.
    pub per_node: u32,
    /// Workers of the last node.
    pub on_last: u32,
    pub nodes: u32,
    /// Network between the workers of a node.
    pub intra: Fabric,
    /// Network between nodes; `bandwidth` is the bandwidth of a node's port, which its workers share.
    pub inter: Fabric,
}

impl Hierarchy {
    /// Cost of a two-level all-reduce of `size` bytes per worker: reduce-scatter within nodes; ring all-reduce
    /// between nodes, in which every worker handles its share; all-gather within nodes. For g workers on each of m
    /// nodes:
    ///
    /// ```text
    /// 2(g-1) α₁ + 2(g-1)/g D/β₁ + (g-1)/g D/(sπ₁)  +  2(m-1) α₂ + 2(m-1)/m D/β₂ + (m-1)/m D/(g s π₂)
    /// ```
    ///
    /// With one node, or with one worker per node, this equals the ring. If the last node has fewer workers, full nodes
    /// take longest inside, and each worker of the last one combines the largest share between nodes: g in the last term
    /// is then their number.
    pub fn cost(&self, size: Bytes) -> Cost {
        let inside = all_reduce(Algorithm::Ring, &self.intra, self.per_node, size);
        let mut between = all_reduce(Algorithm::Ring, &self.inter, self.nodes, size);
        // The workers of a node share its port, but each combines only its own share.
        between.reduction = between.reduction / f64::from(self.on_last.clamp(1, self.per_node.max(1)));
        inside.then(between)
    }
}

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
    // Achieved rates include the time to combine numbers.
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

/// The network of a machine with several ports. A collective uses them all.
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
