//! Where the ranks of a group are, and how long their collectives take on both levels of the network.
//!
//! Ranks are numbered tensor fastest, then context, data and pipeline, and fill nodes in this order (Megatron-LM's
//! default).

use super::Split;
use super::traffic::{Collective, Message};
use crate::collectives::{self, Cost, Fabric};
use stepcast_core::machine::{FabricLevel, MAX_LEVELS, WORKERS_OF_SWITCH_SUMS};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::strategy::Algorithm;

/// The ranks that take part in one kind of communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Tensor,
    Context,
    /// Replicas.
    Data,
    Pipeline,
    /// Ranks with the same dense weights: replicas and context together.
    DataContext,
}

/// How the ranks of a group sit on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    pub size: u64,
    pub per_node: u64,
    /// Most nodes that one of these groups touches.
    pub nodes: u64,
    /// Nodes from one that it touches to the next.
    pub apart: u64,
}

impl Seats {
    /// The ranks of both on separate nodes: the kind with fewer ranks on a node has fewer ports there.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            size: self.size + other.size,
            per_node: self.per_node.min(other.per_node),
            nodes: self.nodes + other.nodes,
            apart: self.apart.max(other.apart),
        }
    }

    /// The level of the network that its collectives load: 0 within nodes, 1 between them.
    pub fn level(self) -> usize {
        usize::from(self.nodes > 1)
    }
}

impl Group {
    /// Distance between neighbours in the numbering, and number of ranks.
    const fn stride(self, split: &Split) -> (u64, u64) {
        let context = split.tensor;
        let data = context * split.context;
        let pipeline = data * split.data;
        match self {
            Self::Tensor => (1, split.tensor),
            Self::Context => (context, split.context),
            Self::Data => (data, split.data),
            Self::Pipeline => (pipeline, split.pipeline),
            Self::DataContext => (context, split.context * split.data),
        }
    }

    /// How the ranks of the group sit on nodes of `node` ranks.
    pub fn seats(self, split: &Split, node: u64) -> Seats {
        let (stride, size) = self.stride(split);
        let span = stride * size;
        let aligned = |a: u64, b: u64| a.is_multiple_of(b) || b.is_multiple_of(a);
        if aligned(span, node) && aligned(stride, node) {
            // Every group begins at the same place of a node, or stays within one.
            let per_node = (node / stride).clamp(1, size);
            return Seats { size, per_node, nodes: size.div_ceil(per_node), apart: (stride / node).max(1) };
        }
        self.seats_one_by_one(split, node)
    }

    pub(crate) fn seats_one_by_one(self, split: &Split, node: u64) -> Seats {
        let (stride, size) = self.stride(split);
        let world = split.world();
        let mut seats = Seats { size, per_node: 1, nodes: 1, apart: (stride / node).max(1) };
        for first in (0..world).filter(|rank| (rank / stride).is_multiple_of(size)) {
            let (mut nodes, mut here, mut last) = (0, 0, None);
            for node_of in (0..size).map(|member| (first + member * stride) / node) {
                if last != Some(node_of) {
                    (nodes, here, last) = (nodes + 1, 0, Some(node_of));
                }
                here += 1;
                seats.per_node = seats.per_node.max(here);
            }
            seats.nodes = seats.nodes.max(nodes);
        }
        seats
    }
}

/// Both levels of the network, for one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links {
    /// Rate between ranks of a node, one direction.
    pub within: BytesPerSec,
    pub within_latency: Seconds,
    /// Rate at which a rank copies its own part of what a ring within a node moves.
    pub own_part: BytesPerSec,
    /// Rate of one rank's share of the node's network ports, one direction.
    pub between: BytesPerSec,
    pub between_latency: Seconds,
    /// Time from one message of an all-to-all between nodes to the next: their latencies pass at the same time.
    pub between_message: Seconds,
    /// Start of a collective within a node, whatever it sends.
    pub within_start: Seconds,
    pub between_start: Seconds,
    /// Links within a node that form a torus.
    pub torus: Option<Torus>,
    /// Speed of all-reduces of many ranks of a node relative to rings.
    pub switch_sums: f64,
    /// Whether sums between nodes may go along trees, as NCCL's.
    pub trees: bool,
    /// Oversubscribed levels of switches between nodes; unused entries join all nodes.
    pub levels: [FabricLevel; MAX_LEVELS],
}

/// Links with wrap-around along some axes, with about the same number of chips along each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Torus {
    /// Axes.
    pub dimensions: f64,
    /// Chips of the job in one torus.
    pub chips: f64,
}

impl Torus {
    /// Chips along an axis.
    fn side(&self) -> f64 {
        self.chips.powf(1.0 / self.dimensions).max(2.0)
    }

    /// Axes that a group of `ranks` spans: it fills one after the other.
    fn axes(&self, ranks: f64) -> f64 {
        (ranks.ln() / self.side().ln() - 1e-9).ceil().clamp(1.0, self.dimensions)
    }

    /// Share of a chip's links that collectives around rings of a group use.
    fn of_rings(&self, ranks: u64) -> f64 {
        self.axes(ranks as f64) / self.dimensions
    }

    /// Share of a chip's links that an all-to-all uses: messages travel a quarter of every ring on average.
    fn of_all_to_all(&self, ranks: u64) -> f64 {
        let ranks = ranks as f64;
        let around = ranks.powf(1.0 / self.axes(ranks)).min(self.side());
        (4.0 / around).min(1.0) / self.dimensions
    }
}

/// A level of switches that joins everything.
pub const FULL: FabricLevel = FabricLevel { machines: u32::MAX, ratio: 1.0 };

/// How a collective uses the two levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// One ring through all ranks.
    Flat,
    /// Within nodes, then between nodes, then within nodes.
    Hierarchical,
    /// Hierarchical, with sums that go up and down two trees of nodes.
    Trees,
}

/// Highest rate at which a rank's share of the adapters carries tokens to experts: DeepEP reaches 43 to 58 GB/s with adapters of
/// 400 Gbit/s (its README), and gpt-oss 120B over 64 expert ranks takes as long on B300 with 800 Gbit/s as on B200 with 400
/// (Megatron-Bridge 26.02).
const DISPATCHED: BytesPerSec = BytesPerSec::new(45e9);

impl Links {
    fn fabric(bandwidth: BytesPerSec, step: Seconds) -> Fabric {
        // Sums are made as fast as data arrives.
        Fabric { step, bandwidth, reduce: FlopsPerSec::new(f64::INFINITY), element: Bytes::new(2.0) }
    }

    /// Rate of the links within a node for collectives around rings.
    fn rings_within(&self, ranks: u64) -> BytesPerSec {
        self.torus.map_or(self.within, |torus| self.within * torus.of_rings(ranks))
    }

    /// Slowdown of a ring of nodes by oversubscribed switches: of q nodes below such a level, one sends upwards, with a share of
    /// q/ratio of the uplink.
    fn around_ring(&self, seats: Seats) -> f64 {
        let below = |level: &FabricLevel| (f64::from(level.machines) / seats.apart as f64).max(1.0);
        let slower = |level: &FabricLevel| match (seats.nodes as f64) > below(level) {
            true => level.ratio / below(level),
            false => 1.0,
        };
        self.levels.iter().map(slower).fold(1.0, f64::max)
    }

    /// Slowdown of sends to the next node of a group: all nodes within its distance of a level's end send upwards.
    fn of_sends(&self, seats: Seats) -> f64 {
        let leaving = |level: &FabricLevel| (seats.apart as f64 / f64::from(level.machines)).min(1.0);
        self.levels.iter().map(|level| level.ratio * leaving(level)).fold(1.0, f64::max)
    }

    /// Rate of the links within a node for any collective, including all-reduces that switches sum.
    fn within(&self, collective: Collective, ranks: u64) -> BytesPerSec {
        let summed = collective == Collective::AllReduce && ranks >= WORKERS_OF_SWITCH_SUMS;
        self.rings_within(ranks) * if summed { self.switch_sums } else { 1.0 }
    }

    /// One ring over n ranks, r of them on each of N nodes: at the slower of the links within a node and the r ports
    /// through which r rings leave it; a share N/n of the steps has the latency between nodes.
    fn flat(&self, collective: Collective, seats: Seats) -> Fabric {
        if seats.nodes <= 1 {
            return Self::fabric(self.within(collective, seats.size), self.within_latency);
        }
        let outside = seats.nodes as f64 / seats.size as f64;
        let step = self.between_latency * outside + self.within_latency * (1.0 - outside);
        let between = self.between * (seats.per_node as f64 / self.around_ring(seats));
        Self::fabric(self.rings_within(seats.per_node).min(between), step)
    }

    /// Time of one collective of `size` bytes (of the whole tensor; of what a rank holds for an all-to-all).
    pub fn time(&self, collective: Collective, seats: Seats, size: Bytes, route: Route) -> Seconds {
        if seats.size <= 1 && collective != Collective::Send {
            return Seconds::ZERO;
        }
        let start = if seats.nodes > 1 { self.between_start } else { self.within_start };
        start
            + match collective {
                Collective::Send => self.send(seats, size),
                Collective::AllToAll => self.all_to_all(seats, size),
                _ => self.ring(collective, seats, size, route).total(),
            }
    }

    pub fn message(&self, message: &Message, seats: Seats, route: Route) -> Seconds {
        let size = Bytes::new(message.bytes as f64);
        self.time(message.collective, seats, size, route) * message.count as f64
    }

    fn ring(&self, collective: Collective, seats: Seats, size: Bytes, route: Route) -> Cost {
        let count = |ranks: u64| u32::try_from(ranks).unwrap_or(u32::MAX);
        let over = |fabric: &Fabric, ranks: u64| {
            let ranks = count(ranks);
            let gather = collectives::all_gather(fabric, ranks, size);
            match collective {
                Collective::AllReduce => collectives::reduce_scatter(fabric, ranks, size).then(gather),
                _ => gather,
            }
        };
        let own = |ranks: u64| Cost { transfer: size / ranks as f64 / self.own_part, ..Cost::default() };
        match route {
            Route::Flat if seats.nodes <= 1 => {
                over(&self.flat(collective, seats), seats.size).then(own(seats.size))
            }
            Route::Flat => over(&self.flat(collective, seats), seats.size),
            Route::Hierarchical | Route::Trees => {
                // Each of the r ranks of a node moves its share S/r: all of S at r times the rate of a port.
                let between = self.between * (seats.per_node as f64 / self.around_ring(seats));
                let within = self.rings_within(seats.per_node);
                let within = over(&Self::fabric(within, self.within_latency), seats.per_node);
                let within = if seats.per_node > 1 { within.then(own(seats.per_node)) } else { within };
                let between = Self::fabric(between, self.between_latency);
                let along_trees = self.trees && collective == Collective::AllReduce && route == Route::Trees;
                within.then(match along_trees {
                    true => Self::along_trees(&between, seats.nodes, size),
                    false => over(&between, seats.nodes),
                })
            }
        }
    }

    /// Sums of `size` bytes along two trees of nodes. The two nodes of a pair exchange halves, each the root of one tree; of
    /// three, each has one child less than a node of larger trees.
    fn along_trees(between: &Fabric, nodes: u64, size: Bytes) -> Cost {
        let count = u32::try_from(nodes).unwrap_or(u32::MAX);
        let trees = collectives::all_reduce(Algorithm::DoubleTree, between, count, size);
        Cost { transfer: trees.transfer * (nodes as f64 / 4.0).min(1.0), ..trees }
    }

    /// A send to a neighbour; to another node if the group touches more than one.
    fn send(&self, seats: Seats, size: Bytes) -> Seconds {
        match seats.nodes > 1 {
            true => self.between_latency + size / self.between * self.of_sends(seats),
            false => self.within_latency + size / self.rings_within(2),
        }
    }

    /// Tokens that a rank holds, `size` bytes of them, to the ranks of their `copies` experts: one copy to each machine with any
    /// of them, `most` of these at most, which passes it on to each rank with any of them; both at once. Of n equal places,
    /// k experts are at n(1 − (1 − 1/n)^k) different ones on average.
    pub fn fan_out(&self, seats: Seats, size: Bytes, copies: u64, most: Option<u64>) -> Seconds {
        let distinct = |among: u64| among as f64 * (1.0 - (1.0 - 1.0 / among as f64).powf(copies as f64));
        let (nodes, each) = (seats.nodes as f64, seats.per_node as f64);
        let reached = most.map_or(f64::INFINITY, |most| most as f64).min(distinct(seats.nodes));
        let share = self.torus.map_or(1.0, |torus| torus.of_all_to_all(seats.per_node));
        let within = size * (distinct(seats.size) * (each - 1.0) / each) / (self.within * share);
        let sent = reached * (nodes - 1.0) / nodes;
        let upwards = |level: &FabricLevel| match nodes > f64::from(level.machines) {
            true => (1.0 - f64::from(level.machines) / nodes) * reached * level.ratio,
            false => 0.0,
        };
        let sent = self.levels.iter().map(upwards).fold(sent, f64::max);
        let (start, between) = match seats.nodes {
            0 | 1 => (self.within_start + self.within_latency, Seconds::ZERO),
            _ => (self.between_start + self.between_latency, size * sent / self.between.min(DISPATCHED)),
        };
        start + within.max(between)
    }

    /// Every rank sends a part to every other: (r−1)/n of what it holds within the node, the rest between nodes, both
    /// at once; of that, what leaves a level of switches at the rate that leads upwards.
    fn all_to_all(&self, seats: Seats, size: Bytes) -> Seconds {
        let n = seats.size as f64;
        let each = seats.per_node as f64;
        let (near, far) = (each - 1.0, n - each);
        let share = self.torus.map_or(1.0, |torus| torus.of_all_to_all(seats.per_node));
        let within = size * (near / n) / (self.within * share) + self.within_latency * near;
        let upwards = |level: &FabricLevel| {
            let below = f64::from(level.machines) / seats.apart as f64;
            (n - (each * below.max(1.0))).max(0.0) * level.ratio
        };
        let sent = self.levels.iter().map(upwards).fold(far, f64::max);
        let latency = match far > 0.0 {
            true => self.between_latency + self.between_message * (far - 1.0),
            false => Seconds::ZERO,
        };
        let between = size * (sent / n) / self.between + latency;
        within.max(between)
    }
}
