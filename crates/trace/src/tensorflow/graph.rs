//! From the graphs of the devices to one graph of operations and transfers.
//!
//! A `_Recv` node whose tensor comes from another process becomes a transfer; it waits for the prerequisites of
//! the `_Send` node of the same tensor, because that is when the tensor exists, and for the prerequisites of the `_Recv`
//! node itself, because that is when it is requested. Every other node is an operation if it was
//! recorded. Nodes that were not recorded, and every `_Send`, are contracted: their successors wait for their
//! predecessors. Cost: operations times contracted edges.

use super::proto::{GraphDef, NodeDef};
use super::records::{Edge, Key, Place};
use crate::import::tally;
use std::collections::{BTreeSet, HashMap, HashSet};
use stepcast_core::profile::Resource;

#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    name: String,
    place: Option<Place>,
    kind: GraphNodeKind,
    before: Vec<usize>,
    /// The node and the output of its first data input.
    source: Option<(usize, i32)>,
}

#[derive(Debug, PartialEq)]
enum GraphNodeKind {
    Plain,
    Send(Edge),
    Receive(Edge),
    /// Closes a loop; nothing waits for it within an iteration.
    Back,
}

/// An operation of the profile, before times are known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vertex {
    pub(super) name: String,
    pub(super) key: Key,
    pub(super) resource: Resource,
    pub(super) server: u32,
    /// Indices of vertices.
    pub(super) after: Vec<usize>,
    /// Node that made the tensor and the number of its output, for transfers.
    pub(super) source: Option<(Place, String, i32)>,
}

impl Graph {
    pub(super) fn new(graphs: &[GraphDef], notes: &mut Vec<String>) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        let mut unknown = 0_usize;
        for graph in graphs {
            let offset = nodes.len();
            let index: HashMap<&str, usize> = graph
                .nodes
                .iter()
                .enumerate()
                .map(|(index, node)| (node.name.as_str(), offset + index))
                .collect();
            nodes.extend(graph.nodes.iter().map(Node::new));
            for (position, definition) in graph.nodes.iter().enumerate() {
                for input in &definition.inputs {
                    let (name, slot) = parse_input(input);
                    let Some(&before) = index.get(name) else {
                        unknown += 1;
                        continue;
                    };
                    let node = &mut nodes[offset + position];
                    node.before.push(before);
                    node.source = node.source.or(slot.map(|slot| (before, slot)));
                }
            }
        }
        tally(notes, unknown, "input", "ignored: from nodes missing in the graphs");
        let mut graph = Self { nodes };
        graph.pair(notes);
        graph
    }

    /// Lets every `_Recv` wait for the `_Send` of its tensor.
    fn pair(&mut self, notes: &mut Vec<String>) {
        let mut sends: HashMap<&Edge, usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let GraphNodeKind::Send(edge) = &node.kind {
                sends.entry(edge).or_insert(index);
            }
        }
        let mut received: HashMap<&Edge, usize> = HashMap::new();
        let mut pairs = Vec::new();
        let mut alone = 0_usize;
        for (index, node) in self.nodes.iter().enumerate() {
            let GraphNodeKind::Receive(edge) = &node.kind else { continue };
            match (received.get(edge), sends.get(edge)) {
                (Some(&first), _) => pairs.push((index, first)),
                (None, Some(&send)) => pairs.push((index, send)),
                (None, None) => alone += 1,
            }
            received.entry(edge).or_insert(index);
        }
        for (index, before) in pairs {
            let source = self.nodes[before].source;
            self.nodes[index].before.push(before);
            self.nodes[index].source = source;
        }
        tally(notes, alone, "received tensor", "without a sender in the graphs, taken as available at once");
    }

    /// The operations: nodes and transfers of `worker` and the servers for which `recorded` holds, and
    /// transfers whose tensor was made by such a node. `servers` gives each server its index.
    pub(super) fn operations(
        &self,
        worker: Place,
        servers: &BTreeSet<Place>,
        recorded: impl Fn(&Key) -> bool,
    ) -> Vec<Vertex> {
        let mut vertices: Vec<Vertex> = Vec::new();
        let mut vertex_of: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut taken: HashSet<String> = HashSet::new();
        let mut keys: HashSet<Key> = HashSet::new();
        let number = |place| servers.iter().position(|&server| server == place).map(|index| index as u32);
        for (index, node) in self.nodes.iter().enumerate() {
            let Some((key, resource, server)) = self.role(node, worker, number, &recorded) else { continue };
            if !keys.insert(key.clone()) {
                continue;
            }
            let (name, source) = match &key {
                Key::Node(..) => (&node.name, None),
                Key::Tensor(edge) => (&edge.tensor, self.source(node)),
            };
            vertex_of[index] = Some(vertices.len());
            let name = unique(name, &mut taken);
            vertices.push(Vertex { name, key, resource, server, after: Vec::new(), source });
        }
        let mut visited = vec![usize::MAX; self.nodes.len()];
        for index in 0..self.nodes.len() {
            if let Some(vertex) = vertex_of[index] {
                vertices[vertex].after = self.waits_for(index, &vertex_of, &mut visited);
            }
        }
        vertices
    }

    /// The operation that a node becomes in the profile, if any.
    fn role(
        &self,
        node: &Node,
        worker: Place,
        number: impl Fn(Place) -> Option<u32>,
        recorded: &impl Fn(&Key) -> bool,
    ) -> Option<(Key, Resource, u32)> {
        match &node.kind {
            GraphNodeKind::Send(_) => None,
            GraphNodeKind::Plain | GraphNodeKind::Back => {
                let place = node.place?;
                let key = Key::Node(place, node.name.clone());
                let server = number(place);
                let resource =
                    if place == worker { Resource::Worker } else { server.map(|_| Resource::Server)? };
                recorded(&key).then_some((key, resource, server.unwrap_or(0)))
            }
            GraphNodeKind::Receive(edge) => {
                let (from, to) = edge.places()?;
                let (resource, server) = if to == worker {
                    (Resource::Downlink, number(from)?)
                } else if from == worker {
                    (Resource::Uplink, number(to)?)
                } else {
                    return None;
                };
                let key = Key::Tensor(edge.clone());
                let made =
                    || self.source(node).is_some_and(|(place, name, _)| recorded(&Key::Node(place, name)));
                (recorded(&key) || made()).then_some((key, resource, server))
            }
        }
    }

    fn source(&self, node: &Node) -> Option<(Place, String, i32)> {
        let (index, slot) = node.source?;
        let maker = &self.nodes[index];
        Some((maker.place?, maker.name.clone(), slot))
    }

    /// Vertices that `index` waits for, directly or through contracted nodes.
    fn waits_for(&self, index: usize, vertex_of: &[Option<usize>], visited: &mut [usize]) -> Vec<usize> {
        let mut after = Vec::new();
        let mut open: Vec<usize> = self.nodes[index].before.clone();
        while let Some(before) = open.pop() {
            if std::mem::replace(&mut visited[before], index) == index
                || self.nodes[before].kind == GraphNodeKind::Back
            {
                continue;
            }
            match vertex_of[before] {
                Some(vertex) => after.push(vertex),
                None => open.extend(&self.nodes[before].before),
            }
        }
        after.sort_unstable();
        after
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl Node {
    fn new(definition: &NodeDef) -> Self {
        let edge = || Edge {
            tensor: definition.text("tensor_name").to_owned(),
            from: definition.text("send_device").to_owned(),
            to: definition.text("recv_device").to_owned(),
        };
        let kind = match definition.op.as_str() {
            "_Send" | "_HostSend" => GraphNodeKind::Send(edge()),
            "_Recv" | "_HostRecv" => GraphNodeKind::Receive(edge()),
            "NextIteration" | "RefNextIteration" => GraphNodeKind::Back,
            _ => GraphNodeKind::Plain,
        };
        let name = definition.name.clone();
        Self { name, place: Place::from_device(&definition.device), kind, before: Vec::new(), source: None }
    }
}

/// The node that an input names, and which of its outputs; none for a control dependency.
fn parse_input(input: &str) -> (&str, Option<i32>) {
    if let Some(name) = input.strip_prefix('^') {
        return (name, None);
    }
    match input.rsplit_once(':').map(|(name, slot)| (name, slot.parse())) {
        Some((name, Ok(slot))) => (name, Some(slot)),
        _ => (input, Some(0)),
    }
}

/// `name`, or `name` with a number if it is taken: devices may use the same name.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2_usize;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name} ({number})");
        number += 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_name_nodes_and_outputs() {
        assert_eq!(parse_input("x"), ("x", Some(0)));
        assert_eq!(parse_input("x:1"), ("x", Some(1)));
        assert_eq!(parse_input("^x"), ("x", None));
        assert_eq!(parse_input("x:y"), ("x:y", Some(0)));
    }

    #[test]
    fn names_are_unique() {
        let mut taken = HashSet::new();
        let names: Vec<String> = ["a", "b", "a", "a"].iter().map(|name| unique(name, &mut taken)).collect();
        assert_eq!(names, ["a", "b", "a (2)", "a (3)"]);
    }
}
