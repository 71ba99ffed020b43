//! The nodes of a trace, and how they are read from JSON in the shapes that Chakra's tools write: PyTorch's execution traces (`nodes`),
//! converted traces as a list (`workload_graph`), and protobuf messages printed one after the other.

use super::operators::Operators;
use crate::import::tally;
use crate::objects;
use crate::objects::{Object, number, text, whole};
use crate::source::Source;
use serde_json::Value;
use std::collections::BTreeSet;
use stepcast_core::fault::Fault;

/// Bytes of a node and of a dependency, here and in the replay.
const NODE: usize = 700;
const DEPENDENCY: usize = 40;
/// Nodes beyond these are only counted.
pub(super) const MOST_NODES: usize = 4_000_000;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum NodeKind {
    /// Computing, or moving memory on its own machine.
    Compute,
    /// All ranks take part.
    Collective(Collective),
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

impl NodeKind {
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

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) kind: NodeKind,
    /// Nodes whose results it needs, and nodes that control it: in converted traces, its callers.
    pub(super) data: Vec<u64>,
    pub(super) control: Vec<u64>,
    pub(super) micros: f64,
    /// Whether it runs on the host, and on which thread or stream.
    pub(super) host: bool,
    pub(super) lane: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    pub(super) groups: BTreeSet<String>,
    pub(super) absurd: usize,
    pub(super) excess: usize,
}

impl Nodes {
    /// The predecessors of each node: by data, or by control if the trace has no data dependencies.
    pub(super) fn waits(&self) -> fn(&Node) -> &[u64] {
        let tells_data = self.nodes.iter().any(|node| !node.data.is_empty());
        if tells_data { |node| &node.data } else { |node| &node.control }
    }

    /// Adds a node; returns the bytes that it takes here and in the replay.
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
        tally(notes, self.absurd, "node", "of impossible duration, taken as zero");
        tally(notes, self.excess, "node", &format!("ignored: beyond the first {MOST_NODES}"));
        if self.groups.len() > 1 {
            notes.push(format!(
                "its collectives run in {} groups of ranks; all were taken for exchanges of gradients",
                self.groups.len()
            ));
        }
    }
}

const LISTS: [&str; 2] = ["nodes", "workload_graph"];

/// Whether a JSON file that begins like this holds nodes.
pub(super) fn recognises(head: &[u8]) -> bool {
    let starts = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let has = |word: &str| head.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    let nodes =
        ["\"ctrl_deps\"", "\"ctrlDeps\"", "\"data_deps\"", "\"dataDeps\""].iter().any(|word| has(word));
    starts && (nodes || has("\"workload_graph\"") || has("-chakra."))
}

/// The nodes, and the operators whose shapes PyTorch recorded.
pub(super) fn read(source: &mut Source<'_>, notes: &mut Vec<String>) -> Result<(Nodes, Operators), Fault> {
    let has = |word: &str| source.head().windows(word.len()).any(|bytes| bytes == word.as_bytes());
    let listed = LISTS.iter().any(|list| has(&format!("\"{list}\"")));
    let mut nodes = Nodes::default();
    let mut operators = Operators::default();
    objects::each(source, if listed { &LISTS } else { &[] }, notes, &mut |object| {
        take(&object, &mut nodes) + operators.take(&object)
    })?;
    Ok((nodes, operators))
}

fn any<'a>(object: &'a Object, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| object.get(*key))
}

/// An attribute in any of its forms: a key of the node, `{"name": …, "value": …}` or `{"name": …, "int64Val": …}`.
fn attribute<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    let list = any(object, &["attrs", "attr"])?.as_array()?;
    let found =
        list.iter().filter_map(Value::as_object).find(|entry| text(entry.get("name")) == Some(name))?;
    found
        .iter()
        .find(|(key, _)| *key == "value" || key.ends_with("Val") || key.ends_with("_val"))
        .map(|(_, value)| value)
}

/// Takes a node; returns the bytes that are kept of it.
fn take(object: &Object, nodes: &mut Nodes) -> usize {
    let Some(id) = whole(any(object, &["id", "Id"])) else { return 0 };
    let list = |keys: &[&str]| match any(object, keys) {
        Some(Value::Array(list)) => list.iter().filter_map(|before| whole(Some(before))).collect(),
        other => whole(other).into_iter().collect::<Vec<u64>>(),
    };
    let kind = match any(object, &["type", "NodeType"]) {
        Some(Value::String(name)) => node_kind(name),
        other => whole(other),
    };
    let collective = match attribute(object, "comm_type") {
        Some(Value::String(name)) => collective_kind(name),
        other => whole(other),
    };
    // PyTorch's own traces have no kinds.
    let kind = kind.map_or(NodeKind::Compute, |kind| NodeKind::from_numbers(kind, collective));
    let duration = any(object, &["duration_micros", "durationMicros", "runtime", "exclusive_dur"]);
    if let Some(group) =
        text(attribute(object, "pg_name")).filter(|_| matches!(kind, NodeKind::Collective(_)))
    {
        nodes.group(group);
    }
    nodes.push(Node {
        id,
        kind,
        data: list(&["data_deps", "dataDeps"]),
        control: list(&["ctrl_deps", "ctrlDeps"]),
        micros: number(duration).unwrap_or(0.0),
        host: whole(attribute(object, "is_cpu_op")) == Some(1),
        lane: whole(attribute(object, "stream")).or(whole(attribute(object, "tid"))).unwrap_or(0),
        bytes: whole(attribute(object, "comm_size")).unwrap_or(0),
    })
}

/// The numbers of the schema's names.
fn node_kind(name: &str) -> Option<u64> {
    const NAMES: [&str; 8] = [
        "INVALID_NODE",
        "METADATA_NODE",
        "MEM_LOAD_NODE",
        "MEM_STORE_NODE",
        "COMP_NODE",
        "COMM_SEND_NODE",
        "COMM_RECV_NODE",
        "COMM_COLL_NODE",
    ];
    NAMES.iter().position(|known| *known == name).map(|index| index as u64)
}

fn collective_kind(name: &str) -> Option<u64> {
    match name {
        "ALL_REDUCE" => Some(0),
        "REDUCE_SCATTER" => Some(7),
        "REDUCE_SCATTER_BLOCK" => Some(8),
        other => other.parse().ok(),
    }
}
