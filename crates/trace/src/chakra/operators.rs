//! Calls of PyTorch's operators, with the tensors that flow between them, and the network that they form.

use super::model;
use crate::import::Imported;
use crate::objects::{Object, text, whole};
use crate::overview::{Summary, SummaryValue};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use stepcast_core::fault::Fault;
use stepcast_core::model::Model;

/// Nodes beyond these are ignored: a step of training has some thousands.
const MOST_NODES: usize = 200_000;

/// Bytes of a node and of one of its outputs, including derived data.
const NODE: usize = 500;
const OUTPUT: usize = 150;

const PASSING: [&str; 6] = ["to", "_to_copy", "copy", "contiguous", "clone", "detach"];

#[derive(Debug)]
struct Node {
    id: u64,
    parent: u64,
    name: String,
    /// Arguments of layers, and of operators that pass a tensor on.
    arguments: Vec<Argument>,
    outputs: Vec<Tensor>,
}

#[derive(Debug, Default)]
pub(super) struct Operators {
    nodes: Vec<Node>,
}

impl Operators {
    /// Takes a node; returns the bytes that are kept of it.
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

/// A tensor, by its number and its memory's number: traces reuse both.
pub(super) type Tensor = (u64, u64);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Maker {
    Layer(usize),
    /// An operator that is not a layer.
    Other(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operator {
    /// Name without "aten::" and the "_" of an operator that works in place.
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    /// A tensor with its shape, and its producer at the time of the call.
    Tensor(Tensor, Vec<u64>, Option<Maker>),
    Tensors(Vec<Argument>),
    Numbers(Vec<u64>),
    Flag(bool),
    Other,
}

impl Argument {
    /// About how many bytes it takes.
    pub(super) fn held(&self) -> usize {
        let within = match self {
            Self::Tensor(_, shape, _) => shape.capacity() * size_of::<u64>(),
            Self::Tensors(list) => list.iter().map(Self::held).sum(),
            Self::Numbers(numbers) => numbers.capacity() * size_of::<u64>(),
            Self::Flag(_) | Self::Other => 0,
        };
        2 * size_of::<Self>() + within
    }

    pub(super) fn parse(value: &Value, shape: &Value, kind: &str) -> Self {
        if kind.starts_with("Tensor") {
            let shape = numbers(shape).unwrap_or_default();
            return tensor(value).map_or(Self::Other, |tensor| Self::Tensor(tensor, shape, None));
        }
        if kind.starts_with("GenericList[Tensor") {
            let (Some(values), Some(shapes)) = (value.as_array(), shape.as_array()) else {
                return Self::Other;
            };
            return Self::Tensors(
                values.iter().zip(shapes).map(|(value, shape)| Self::parse(value, shape, "Tensor")).collect(),
            );
        }
        match value {
            Value::Bool(flag) => Self::Flag(*flag),
            Value::Number(_) => whole(Some(value)).map_or(Self::Other, |number| Self::Numbers(vec![number])),
            Value::Array(_) => numbers(value).map_or(Self::Other, Self::Numbers),
            Value::Null | Value::String(_) | Value::Object(_) => Self::Other,
        }
    }

    pub(super) fn resolve(&mut self, makers: &HashMap<Tensor, Maker>) {
        match self {
            Self::Tensor(tensor, _, maker) => *maker = makers.get(tensor).cloned(),
            Self::Tensors(list) => list.iter_mut().for_each(|each| each.resolve(makers)),
            Self::Numbers(_) | Self::Flag(_) | Self::Other => {}
        }
    }

    pub(super) fn has_samples(&self) -> bool {
        match self {
            Self::Tensor(_, shape, _) => shape.len() > 1,
            Self::Tensors(list) => !list.is_empty(),
            Self::Numbers(_) | Self::Flag(_) | Self::Other => false,
        }
    }
}

/// `[number, memory, offset, elements, size of one, device]`.
pub(super) fn tensor(value: &Value) -> Option<Tensor> {
    let list = value.as_array().filter(|list| list.len() >= 5)?;
    Some((whole(list.first())?, whole(list.get(1))?))
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(|number| whole(Some(number))).collect()
}
