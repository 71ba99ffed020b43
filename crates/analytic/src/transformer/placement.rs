//! Where the ranks of a group are, and how long their collectives take on both levels of the network.
//!
//! Ranks are numbered tensor fastest, then context, data and pipeline, and fill nodes in this order (Megatron-LM's
//! default).

use super::Split;
use super::traffic::{Collective, Message};
use crate::collectives::{self, Cost, Fabric};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};

/// The ranks that take part in one kind of communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Tensor parallelism.
    Tensor,
    /// Context parallelism.
    Context,
    /// Replicas.
    Data,
    /// Pipeline stages.
    Pipeline,
    /// Ranks with the same dense weights: replicas and context together.
    DataContext,
}

/// How the ranks of a group sit on nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    /// Ranks of the group.
    pub size: u64,
    /// Most ranks of it on one node.
    pub per_node: u64,
    /// Most nodes that one of these groups touches.
    pub nodes: u64,
}

impl Seats {
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

    /// How its ranks sit on nodes of `node` ranks.
    pub fn seats(self, split: &Split, node: u64) -> Seats {
        let (stride, size) = self.stride(split);
        let span = stride * size;
        let aligned = |a: u64, b: u64| a.is_multiple_of(b) || b.is_multiple_of(a);
        if aligned(span, node) && aligned(stride, node) {
            // Every group begins at the same place of a node, or stays within one.
            let per_node = (node / stride).clamp(1, size);
            return Seats { size, per_node, nodes: size.div_ceil(per_node) };
        }
        self.seats_one_by_one(split, node)
    }

    /// The same by looking at every group.
    pub(crate) fn seats_one_by_one(self, split: &Split, node: u64) -> Seats {
        let (stride, size) = self.stride(split);
        let world = split.world();
        let mut seats = Seats { size, per_node: 1, nodes: 1 };
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
    /// Latency of a step within a node.
    pub within_latency: Seconds,
    /// Rate of one rank's share of the node's network ports, one direction.
    pub between: BytesPerSec,
    /// Latency of a step between nodes.
    pub between_latency: Seconds,
    /// Start of a collective within a node, whatever it sends.
    pub within_start: Seconds,
    /// Start of a collective between nodes.
    pub between_start: Seconds,
}

/// How a collective uses the two levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// One ring through all ranks.
    Flat,
    /// Within nodes, then between nodes, then within nodes.
    Hierarchical,
}

impl Links {
    fn fabric(bandwidth: BytesPerSec, step: Seconds) -> Fabric {
        // Sums are made as fast as data arrives.
        Fabric { step, bandwidth, reduce: FlopsPerSec::new(f64::INFINITY), element: Bytes::new(2.0) }
    }

    /// One ring over n ranks, r of them on each of N nodes: at the slower of the links within a node and the r ports
    /// through which r rings leave it; a share N/n of the steps has the latency between nodes.
    fn flat(&self, seats: Seats) -> Fabric {
        if seats.nodes <= 1 {
            return Self::fabric(self.within, self.within_latency);
        }
        let outside = seats.nodes as f64 / seats.size as f64;
        let step = self.between_latency * outside + self.within_latency * (1.0 - outside);
        Self::fabric(self.within.min(self.between * seats.per_node as f64), step)
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

    /// Time of all collectives of a message.
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
        match route {
            Route::Flat => over(&self.flat(seats), seats.size),
            Route::Hierarchical => {
                // Each of the r ranks of a node moves its share S/r: all of S at r times the rate of a port.
                let between = self.between * seats.per_node as f64;
                let within = over(&Self::fabric(self.within, self.within_latency), seats.per_node);
                within.then(over(&Self::fabric(between, self.between_latency), seats.nodes))
            }
        }
    }

    /// A send to a neighbour; to another node if the group touches more than one.
    fn send(&self, seats: Seats, size: Bytes) -> Seconds {
        match seats.nodes > 1 {
            true => self.between_latency + size / self.between,
            false => self.within_latency + size / self.within,
        }
    }

    /// Every rank sends a part to every other: (r−1)/n of what it holds within the node, the rest between nodes, both
    /// at once.
    fn all_to_all(&self, seats: Seats, size: Bytes) -> Seconds {
        let n = seats.size as f64;
        let near = seats.per_node as f64 - 1.0;
        let far = n - seats.per_node as f64;
        let within = size * (near / n) / self.within + self.within_latency * near;
        let between = size * (far / n) / self.between + self.between_latency * far;
        within.max(between)
    }
}
