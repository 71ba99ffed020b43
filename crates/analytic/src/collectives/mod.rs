//! Times of collective operations: what it costs N equal workers to combine or spread the same bytes.
//!
//! Every worker has one full-duplex port. A step of an algorithm costs α, a byte on a port 1/β, and
//! combining two numbers one operation at the rate π; [`Fabric`] holds these. Costs come apart by cause
//! ([`Cost`]), are linear in the size, and are zero where there is nothing to send or nobody to send to.
//!
//! The costs of ring, halving-doubling and tree algorithms are those of Thakur, Rabenseifner and Gropp 2005
//! (doi 10.1177/1094342005051521); that of two trees is the limit of small packets of Sanders, Speck and Träff
//! 2009 (doi 10.1016/j.parco.2009.09.001); no algorithm beats [`lower_bound`] (Chan et al. 2007,
//! doi 10.1002/cpe.1206).
//!
//! [`Curve`] is the time of a whole collective by its size, as the overlap models take it; [`curve`] that of a
//! scenario, [`ring_update`] eq. 7 of Liu et al. 2022.

mod curve;

pub use curve::{curve, ring_update, scenario_cost};

use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};

/// What joins workers, and how fast they combine what arrives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// α: fixed cost of every step of an algorithm.
    pub step: Seconds,
    /// β: rate of a worker's port, one direction.
    pub bandwidth: BytesPerSec,
    /// π: rate at which a worker combines numbers; infinite: at no cost.
    pub reduce: FlopsPerSec,
    /// s: size of one number.
    pub element: Bytes,
}

/// Time of a collective, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Fixed costs of all steps.
    pub latency: Seconds,
    /// Bytes on the ports.
    pub transfer: Seconds,
    /// Combining numbers.
    pub reduction: Seconds,
}

impl Cost {
    /// Everything together.
    pub fn total(self) -> Seconds {
        self.latency + self.transfer + self.reduction
    }

    /// The line of a collective whose `size` bytes cost this.
    pub fn line(self, size: Bytes) -> Curve {
        Curve::AlphaBeta { startup: self.latency, bandwidth: size / (self.transfer + self.reduction) }
    }

    /// One collective after the other.
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
    /// `steps` steps in which the busiest port carries `carried` times `size` and the busiest worker combines
    /// `combined` times `size`.
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

/// (N - 1)/N: the share of the data that a worker does not end up with, or does not begin with.
fn others(workers: u32) -> f64 {
    f64::from(workers.saturating_sub(1)) / f64::from(workers.max(1))
}

/// Steps of a ring in one direction.
fn ring_steps(workers: u32) -> f64 {
    f64::from(workers.saturating_sub(1))
}

/// ⌈log₂ N⌉: rounds in which everybody can have heard from everybody.
fn rounds(workers: u32) -> f64 {
    f64::from(u32::BITS - workers.max(1).saturating_sub(1).leading_zeros())
}

/// How gradients are summed over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllReduce {
    /// Reduce-scatter, then all-gather, both around a ring:
    ///
    /// ```text
    /// 2(N-1) α + 2(N-1)/N D/β + (N-1)/N D/(sπ)
    /// ```
    #[default]
    Ring,
    /// Reduce-scatter by recursive halving, all-gather by recursive doubling, among the largest power of two
    /// p ≤ N; the other N - p workers first give all they have to a partner and get the sum back in the end:
    ///
    /// ```text
    /// 2 log₂(p) α + 2(p-1)/p D/β + (p-1)/p D/(sπ)     and, if p < N,     2α + 2 D/β + D/(sπ)
    /// ```
    HalvingDoubling,
    /// Reduction to one worker and broadcast from there along a binary (binomial) tree, whole messages, in
    /// ⌈log₂ N⌉ rounds each:
    ///
    /// ```text
    /// 2⌈log₂ N⌉ (α + D/β) + ⌈log₂ N⌉ D/(sπ)
    /// ```
    Tree,
    /// Two binary trees, each for half of the data, in which every worker is a leaf of one and an inner node of the
    /// other; cut into packets so small that the trees' depth costs only steps:
    ///
    /// ```text
    /// 2⌈log₂ N⌉ α + 2 D/β + D/(sπ)
    /// ```
    DoubleTree,
}

impl AllReduce {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ring, Self::HalvingDoubling, Self::Tree, Self::DoubleTree];

    /// Cost of summing `size` bytes of every one of `workers`.
    pub fn cost(self, fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
        if workers <= 1 {
            return Cost::default();
        }
        let depth = rounds(workers);
        match self {
            Self::Ring => reduce_scatter(fabric, workers, size).then(all_gather(fabric, workers, size)),
            Self::HalvingDoubling => {
                let power = 1 << workers.ilog2();
                let share = others(power);
                let core = fabric.cost(size, 2.0 * rounds(power), 2.0 * share, share);
                if power == workers { core } else { core.then(fabric.cost(size, 2.0, 2.0, 1.0)) }
            }
            Self::Tree => fabric.cost(size, 2.0 * depth, 2.0 * depth, depth),
            Self::DoubleTree => fabric.cost(size, 2.0 * depth, 2.0, 1.0),
        }
    }

    /// Time of summing `size` bytes of every one of `workers`.
    pub fn time(self, fabric: &Fabric, workers: u32, size: Bytes) -> Seconds {
        self.cost(fabric, workers, size).total()
    }
}

/// Cost of leaving every worker with its share of the sum of `size` bytes of each, around a ring.
///
/// ```text
/// (N-1) α + (N-1)/N D/β + (N-1)/N D/(sπ)
/// ```
pub fn reduce_scatter(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, ring_steps(workers), others(workers), others(workers))
}

/// Cost of giving every worker all shares of `size` bytes, around a ring.
///
/// ```text
/// (N-1) α + (N-1)/N D/β
/// ```
pub fn all_gather(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, ring_steps(workers), others(workers), 0.0)
}

/// How one worker's data reaches all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Broadcast {
    /// Along a binomial tree, whole messages; for small sizes:
    ///
    /// ```text
    /// ⌈log₂ N⌉ (α + D/β)
    /// ```
    #[default]
    Tree,
    /// Shares to everybody along a tree, then an all-gather around a ring; for large sizes:
    ///
    /// ```text
    /// (⌈log₂ N⌉ + N-1) α + 2(N-1)/N D/β
    /// ```
    ScatterGather,
}

impl Broadcast {
    /// Cost of giving `size` bytes of one worker to all of `workers`.
    pub fn cost(self, fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
        let depth = rounds(workers);
        match self {
            Self::Tree => fabric.cost(size, depth, depth, 0.0),
            Self::ScatterGather => {
                fabric.cost(size, depth, others(workers), 0.0).then(all_gather(fabric, workers, size))
            }
        }
    }
}

/// Equal nodes with several workers each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hierarchy {
    /// Workers of one node.
    pub per_node: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Between workers of a node.
    pub intra: Fabric,
    /// Between nodes; `bandwidth` is that of a node's port, which its workers share.
    pub inter: Fabric,
}

impl Hierarchy {
    /// Cost of summing `size` bytes of every worker on two levels: reduce-scatter within nodes; ring all-reduce
    /// between nodes, every worker with its share; all-gather within nodes. For g workers on each of m nodes:
    ///
    /// ```text
    /// 2(g-1) α₁ + 2(g-1)/g D/β₁ + (g-1)/g D/(sπ₁)  +  2(m-1) α₂ + 2(m-1)/m D/β₂ + (m-1)/m D/(g s π₂)
    /// ```
    ///
    /// With one node, or with one worker on each, this is the ring.
    pub fn cost(&self, size: Bytes) -> Cost {
        let inside = AllReduce::Ring.cost(&self.intra, self.per_node, size);
        let mut between = AllReduce::Ring.cost(&self.inter, self.nodes, size);
        // A node's workers share its port, but each combines its own share.
        between.reduction = between.reduction / f64::from(self.per_node.max(1));
        inside.then(between)
    }

    /// Time of it.
    pub fn time(&self, size: Bytes) -> Seconds {
        self.cost(size).total()
    }
}

/// What no all-reduce can beat, each cause by itself: ⌈log₂ N⌉ α, 2(N-1)/N D/β and (N-1)/N D/(sπ).
pub fn lower_bound(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, rounds(workers), 2.0 * others(workers), others(workers))
}

#[cfg(test)]
mod tests;
