//! The nodes of a trace.

use crate::imported::tally;
use std::collections::BTreeSet;

/// Bytes of a node and of a dependency, here and in the replay.
const NODE: usize = 700;
const DEPENDENCY: usize = 40;
/// Nodes beyond these are only counted.
pub(super) const MOST_NODES: usize = 4_000_000;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Computing, or moving memory on its own machine.
    Compute,
    /// All ranks take part.
    Collective(Collective),
    /// One rank to another.
    PointToPoint,
    #[default]
    Other,
}

/// Which collective, by the schema's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collective {
    AllReduce,
    ReduceScatter,
    Other,
}

impl Kind {
    /// From the schema's enumerations of nodes and of collectives.
    pub(super) fn from_numbers(node: u64, collective: Option<u64>) -> Self {
        match node {
            2..=4 => Self::Compute,
            5 | 6 => Self::PointToPoint,
            7 => Self::Collective(match collective {
                Some(0) => Collective::AllReduce,
                Some(7 | 8) => Collective::ReduceScatter,
                _ => Collective::Other,
            }),
            _ => Self::Other,
        }
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) kind: Kind,
    /// Nodes whose results it needs, and nodes that control it: in converted traces, its callers.
    pub(super) data: Vec<u64>,
    pub(super) control: Vec<u64>,
    pub(super) micros: f64,
    /// Whether it runs on the host, and on which thread or stream.
    pub(super) host: bool,
    pub(super) lane: u64,
    /// Payload of a collective.
    pub(super) bytes: u64,
}

/// All nodes of a trace.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    /// Groups of ranks that collectives name.
    pub(super) groups: BTreeSet<String>,
    /// Nodes with an impossible duration.
    pub(super) absurd: usize,
    pub(super) excess: usize,
}

impl Nodes {
    /// The predecessors of each node: by data, or by control if the trace has no data dependencies.
    pub(super) fn waits(&self) -> fn(&Node) -> &[u64] {
        let tells_data = self.nodes.iter().any(|node| !node.data.is_empty());
        if tells_data { |node| &node.data } else { |node| &node.control }
    }

    /// Adds a node: the bytes that it takes here and in the replay.
    pub(super) fn push(&mut self, mut node: Node) -> usize {
        // A day.
        if !(0.0..=86_400e6).contains(&node.micros) {
            self.absurd += 1;
            node.micros = 0.0;
        }
        if self.nodes.len() == MOST_NODES {
            self.excess += 1;
            return 0;
        }
        let held = NODE + (node.data.capacity() + node.control.capacity()) * DEPENDENCY;
        self.nodes.push(node);
        held
    }

    pub(super) fn group(&mut self, name: &str) {
        if self.groups.len() < 1000 && !name.is_empty() {
            self.groups.insert(name.chars().take(200).collect());
        }
    }

    pub(super) fn report(&self, notes: &mut Vec<String>) {
        tally(notes, self.absurd, "nodes with an impossible duration, which counts as zero");
        tally(notes, self.excess, &format!("nodes beyond the first {MOST_NODES}, which were left out"));
        if self.groups.len() > 1 {
            notes.push(format!(
                "its collectives run in {} groups of ranks; all were taken for exchanges of gradients",
                self.groups.len()
            ));
        }
    }
}
