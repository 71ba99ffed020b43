//! The operators of a PyTorch execution trace that are layers of a network, and the tensors between them.
//!
//! A tensor comes from the last operator that produced it before it is read, so nodes are visited in order of their
//! numbers, which are assigned when they start. Calls within a layer are part of it. The visit ends with the loss or
//! the backward pass: further steps repeat the same.

use super::call::{Argument, Maker, Operator, Tensor, tensor};
use super::model;
use crate::imported::Imported;
use crate::objects::{Object, text, whole};
use crate::summary::{Summary, SummaryValue};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use stepcast_core::fault::Fault;
use stepcast_core::model::Model;

/// Nodes beyond these are ignored: a step of training has some thousands.
const MOST_NODES: usize = 200_000;

/// Bytes of a node and of one of its outputs, with what is made of them.
const NODE: usize = 500;
const OUTPUT: usize = 150;

/// Operators that pass on their input.
const PASSING: [&str; 6] = ["to", "_to_copy", "copy", "contiguous", "clone", "detach"];

/// A node as it was read.
#[derive(Debug)]
struct Node {
    id: u64,
    parent: u64,
    name: String,
    /// Of layers, and of those that pass a tensor on.
    arguments: Vec<Argument>,
    outputs: Vec<Tensor>,
}

#[derive(Debug, Default)]
pub(super) struct Operators {
    nodes: Vec<Node>,
}

impl Operators {
    /// Takes a node: the bytes that are kept of it.
    pub(super) fn take(&mut self, node: &Object) -> usize {
        let (Some(name), Some(inputs)) = (text(node.get("name")), node.get("inputs")) else { return 0 };
        if self.nodes.len() == MOST_NODES {
            return 0;
        }
        let known = plain(name).is_some_and(|plain| model::is_layer(plain) || PASSING.contains(&plain));
        let outputs = node.get("outputs").and_then(|outputs| outputs.get("values")).and_then(Value::as_array);
        let node = Node {
            id: whole(node.get("id")).unwrap_or(0),
            parent: whole(node.get("ctrl_deps")).unwrap_or(0),
            name: name.to_owned(),
            arguments: if known { arguments(inputs) } else { Vec::new() },
            outputs: outputs.into_iter().flatten().filter_map(tensor).collect(),
        };
        let arguments: usize = node.arguments.iter().map(Argument::held).sum();
        let held = NODE + 2 * node.name.len() + 2 * arguments + node.outputs.capacity() * OUTPUT;
        self.nodes.push(node);
        held
    }

    /// The calls of layers, in order, with the producers of their inputs.
    fn calls(mut self) -> Vec<Operator> {
        self.nodes.sort_by_key(|node| node.id);
        let mut calls: Vec<Operator> = Vec::new();
        let mut makers: HashMap<Tensor, Maker> = HashMap::new();
        let mut within: HashSet<u64> = HashSet::new();
        for mut node in self.nodes {
            if !calls.is_empty() && (node.name.starts_with("autograd::engine") || node.name.contains("_loss"))
            {
                break;
            }
            if within.contains(&node.parent) {
                within.insert(node.id);
                continue;
            }
            node.arguments.iter_mut().for_each(|argument| argument.resolve(&makers));
            let maker = match plain(&node.name) {
                Some(plain) if PASSING.contains(&plain) => match node.arguments.first() {
                    Some(Argument::Tensor(_, _, maker)) => maker.clone(),
                    _ => None,
                },
                Some(plain) if node.arguments.first().is_some_and(Argument::has_samples) => {
                    calls.push(Operator { name: plain.to_owned(), arguments: node.arguments });
                    Some(Maker::Layer(calls.len() - 1))
                }
                _ => {
                    let other = Maker::Other(node.name);
                    makers.extend(node.outputs.into_iter().map(|output| (output, other.clone())));
                    continue;
                }
            };
            within.insert(node.id);
            for output in node.outputs {
                match &maker {
                    Some(maker) => drop(makers.insert(output, maker.clone())),
                    None => drop(makers.remove(&output)),
                }
            }
        }
        calls
    }

    /// The network, if these operators are one.
    pub(super) fn model(self, place: &str, mut notes: Vec<String>) -> Result<Imported<Model>, Fault> {
        let calls = self.calls();
        if calls.is_empty() {
            let remedy = "join it with a profiler's trace (chakra_trace_link, chakra_converter), and import the result; or \
                          import the profiler's trace itself";
            return Err(Fault::in_file(place, "it has neither times nor the layers of a network", remedy));
        }
        let (model, batch) = model::build(&calls, place)?;
        notes.push(format!(
            "it has no times: the network was imported, and a device must be chosen; it was recorded with batches of {batch}"
        ));
        let mut summary = Summary::default();
        summary.figure("batch", "batch", SummaryValue::Count(batch), "as recorded");
        Ok(Imported { content: model, summary, notes })
    }
}

/// The name without "aten::" and the "_" of an operator that works in place.
fn plain(name: &str) -> Option<&str> {
    name.strip_prefix("aten::").map(|name| name.trim_end_matches('_'))
}

fn arguments(inputs: &Value) -> Vec<Argument> {
    let list = |key: &str| inputs.get(key).and_then(Value::as_array);
    let (Some(values), Some(shapes)) = (list("values"), list("shapes")) else { return Vec::new() };
    let types = list("types");
    let kind = |index: usize| text(types.and_then(|types| types.get(index))).unwrap_or_default();
    let shapes = shapes.iter().chain(std::iter::repeat(&Value::Null));
    let each = values.iter().zip(shapes).enumerate();
    each.map(|(index, (value, shape))| Argument::parse(value, shape, kind(index))).collect()
}
