//! The graph of a model: tensors by number, functions replaced by their nodes, nodes in an order in which they can
//! compute.

use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfo,
};
use prost::Message;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use stepcast_core::fault::Fault;

pub(crate) type TensorId = usize;
pub(crate) type NodeId = usize;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) op: String,
    /// Empty for the standard operators.
    pub(crate) domain: String,
    /// Omitted optional inputs are `None`.
    pub(crate) inputs: Vec<Option<TensorId>>,
    pub(crate) outputs: Vec<Option<TensorId>>,
    attributes: Vec<AttributeProto>,
}

impl Node {
    pub(crate) fn place(&self) -> String {
        format!("node \"{}\" ({})", self.name, self.op)
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Whether it contains other graphs, like a loop or a branch.
    pub(crate) fn has_bodies(&self) -> bool {
        self.attributes.iter().any(|attribute| attribute.graph.is_some())
    }

    pub(crate) fn output(&self) -> Option<TensorId> {
        self.outputs.first().copied().flatten()
    }

    pub(crate) fn input(&self, index: usize) -> Option<TensorId> {
        self.inputs.get(index).copied().flatten()
    }
}

#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) names: Vec<String>,
    /// Nodes in an executable order: the order of the file as far as possible.
    pub(crate) nodes: Vec<Node>,
    /// Inputs from outside, with their declared types.
    pub(crate) inputs: Vec<(TensorId, ValueInfo)>,
    pub(crate) outputs: Vec<TensorId>,
    pub(crate) initialisers: Vec<(TensorId, TensorProto)>,
    pub(crate) declared: HashMap<TensorId, ValueInfo>,
    /// Version of the standard operators.
    pub(crate) opset: Option<i64>,
}

impl Graph {
    /// The graph of `model`, which came from `place`; its functions may unfold to `max_memory` bytes.
    pub(crate) fn new(mut model: ModelProto, place: &str, max_memory: u64) -> Result<Self, Fault> {
        let fail = |reason: String, remedy: &str| Fault::in_file(place, reason, remedy);
        let graph = model.graph.take().filter(|graph| !graph.nodes.is_empty());
        let remedy = "give the .onnx file of a model; exporters write one with torch.onnx.export or tf2onnx";
        let mut graph = graph.ok_or_else(|| fail("it holds no graph of operators".to_owned(), remedy))?;
        let nodes = expanded(std::mem::take(&mut graph.nodes), &model.functions, max_memory)
            .map_err(|reason| fail(reason, "export the model again without local functions"))?;
        if nodes.len() > MOST_NODES {
            let reason = format!("it has {} nodes, more than {}", nodes.len(), MOST_NODES);
            return Err(fail(reason, "import a smaller part of the model"));
        }
        let opset = model.opsets.iter().find(|opset| is_standard(&opset.domain)).map(|opset| opset.version);
        let mut names = Names::default();
        let initialisers = initialisers(&mut graph, &mut names);
        let known: HashSet<TensorId> = initialisers.iter().map(|(id, _)| *id).collect();
        let inputs = graph.inputs.into_iter().map(|info| (names.id(&info.name), info));
        let inputs: Vec<_> = inputs.filter(|(id, _)| !known.contains(id)).collect();
        let outputs: Vec<TensorId> = graph.outputs.iter().map(|info| names.id(&info.name)).collect();
        let nodes: Vec<Node> = with_captured(nodes, &names)
            .into_iter()
            .enumerate()
            .map(|(index, node)| names.node(index, node))
            .collect();
        let declared = graph.values.into_iter().chain(graph.outputs);
        let declared = declared.filter_map(|info| Some((*names.ids.get(&info.name)?, info))).collect();
        let given = known.into_iter().chain(inputs.iter().map(|(id, _)| *id)).collect();
        let nodes = in_order(nodes, given, &names.texts)
            .map_err(|(at, reason, remedy)| Fault::in_file(format!("{place}, {at}"), reason, remedy))?;
        Ok(Self { names: names.texts, nodes, inputs, outputs, initialisers, declared, opset })
    }
}

pub(crate) fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

fn initialisers(graph: &mut GraphProto, names: &mut Names) -> Vec<(TensorId, TensorProto)> {
    let sparse = std::mem::take(&mut graph.sparse_initializers).into_iter().filter_map(|sparse| {
        let values = sparse.values?;
        Some(TensorProto {
            dims: sparse.dims,
            name: values.name,
            data_type: values.data_type,
            ..Default::default()
        })
    });
    let dense = std::mem::take(&mut graph.initializers).into_iter();
    dense.chain(sparse).map(|tensor| (names.id(&tensor.name), tensor)).collect()
}

/// Tensors by the order in which they are first named.
#[derive(Default)]
struct Names {
    ids: HashMap<String, TensorId>,
    texts: Vec<String>,
}

impl Names {
    fn id(&mut self, name: &str) -> TensorId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.texts.len();
        self.ids.insert(name.to_owned(), id);
        self.texts.push(name.to_owned());
        id
    }

    fn node(&mut self, index: usize, node: NodeProto) -> Node {
        let mut ids = |names: &[String]| -> Vec<Option<TensorId>> {
            names.iter().map(|name| (!name.is_empty()).then(|| self.id(name))).collect()
        };
        let (inputs, outputs) = (ids(&node.inputs), ids(&node.outputs));
        let name = if node.name.is_empty() { format!("{}_{index}", node.op) } else { node.name };
        let domain = if is_standard(&node.domain) { String::new() } else { node.domain };
        Node { name, op: node.op, domain, inputs, outputs, attributes: node.attributes }
    }
}

/// The nodes; tensors that the body of a loop or a branch reads from outside become inputs of its node.
fn with_captured(mut nodes: Vec<NodeProto>, names: &Names) -> Vec<NodeProto> {
    let made: HashSet<String> = nodes.iter().flat_map(|node| &node.outputs).cloned().collect();
    for node in &mut nodes {
        let mut read = Vec::new();
        node.attributes
            .iter()
            .filter_map(|attribute| attribute.graph.as_ref())
            .for_each(|body| reads(body, &mut read));
        read.retain(|name| made.contains(*name) || names.ids.contains_key(*name));
        let captured: Vec<String> = read.into_iter().map(str::to_owned).collect();
        node.inputs.extend(captured);
    }
    nodes
}

/// Names that a body reads or passes on; in ONNX, names made inside never equal names of tensors outside.
fn reads<'a>(body: &'a GraphProto, read: &mut Vec<&'a str>) {
    read.extend(body.outputs.iter().map(|info| info.name.as_str()));
    for node in &body.nodes {
        read.extend(node.inputs.iter().map(String::as_str));
        let inner = node.attributes.iter().filter_map(|attribute| attribute.graph.as_ref());
        inner.for_each(|body| reads(body, read));
    }
}

type Misplaced = (String, String, &'static str);

/// Sorts nodes such that each follows its inputs; among candidates, the first in the file comes next.
fn in_order(nodes: Vec<Node>, given: HashSet<TensorId>, names: &[String]) -> Result<Vec<Node>, Misplaced> {
    let mut maker: HashMap<TensorId, NodeId> = HashMap::new();
    for (id, node) in nodes.iter().enumerate() {
        for &output in node.outputs.iter().flatten() {
            if given.contains(&output) || maker.insert(output, id).is_some() {
                let reason = format!("it makes \"{}\", which another node produces too", names[output]);
                return Err((
                    node.place(),
                    reason,
                    "export the model again; tensors need names of their own",
                ));
            }
        }
    }
    let mut waits = vec![0_usize; nodes.len()];
    let mut readers: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (id, node) in nodes.iter().enumerate() {
        for &input in node.inputs.iter().flatten().filter(|input| !given.contains(*input)) {
            let Some(&from) = maker.get(&input) else {
                let reason = format!("it reads \"{}\", which no node produces", names[input]);
                return Err((node.place(), reason, "export the model again; the file lacks a part"));
            };
            waits[id] += 1;
            readers.entry(from).or_default().push(id);
        }
    }
    let mut ready: BinaryHeap<Reverse<NodeId>> =
        (0..nodes.len()).filter(|id| waits[*id] == 0).map(Reverse).collect();
    let mut place = vec![None; nodes.len()];
    let mut count = 0;
    while let Some(Reverse(id)) = ready.pop() {
        place[id] = Some(count);
        count += 1;
        for &reader in readers.get(&id).into_iter().flatten() {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(Reverse(reader));
            }
        }
    }
    if let Some(stuck) = place.iter().position(Option::is_none) {
        let reason = "it waits for its own output: the graph has a cycle".to_owned();
        return Err((nodes[stuck].place(), reason, "export the model again; ONNX allows no cycles"));
    }
    let mut sorted: Vec<(Option<usize>, Node)> = place.into_iter().zip(nodes).collect();
    sorted.sort_by_key(|(place, _)| *place);
    Ok(sorted.into_iter().map(|(_, node)| node).collect())
}

/// Deepest nesting of function calls.
const DEEPEST: u32 = 16;
const MOST_NODES: usize = 500_000;

type Functions<'a> = HashMap<(&'a str, &'a str), &'a FunctionProto>;

/// Limits on unfolded calls.
struct UnfoldBudget {
    /// Nodes and calls: functions without nodes could call each other for ever.
    nodes: usize,
    bytes: u64,
}

impl UnfoldBudget {
    fn take(&mut self, node: &NodeProto) -> Result<(), String> {
        let texts = node.inputs.iter().chain(&node.outputs).chain([&node.name, &node.op, &node.domain]);
        let text: usize = texts.map(|text| text.len() + size_of::<String>()).sum();
        let attributes: usize =
            node.attributes.iter().map(|attribute| ATTRIBUTE + 8 * attribute.encoded_len()).sum();
        let bytes = (NODE + text + attributes) as u64;
        match (self.nodes.checked_sub(1), self.bytes.checked_sub(bytes)) {
            (Some(nodes), Some(bytes)) => {
                *self = Self { nodes, bytes };
                Ok(())
            }
            (None, _) => Err(format!("its functions unfold to more than {MOST_NODES} nodes")),
            (_, None) => Err("its functions unfold to more than the memory holds".to_owned()),
        }
    }
}

/// Bytes of a node and of an attribute without their content.
const NODE: usize = 300;
const ATTRIBUTE: usize = 300;

/// `nodes` without calls of `functions`, in at most `bytes` of memory.
fn expanded(
    nodes: Vec<NodeProto>,
    functions: &[FunctionProto],
    bytes: u64,
) -> Result<Vec<NodeProto>, String> {
    if functions.is_empty() {
        return Ok(nodes);
    }
    let table: Functions<'_> = functions
        .iter()
        .map(|function| ((function.domain.as_str(), function.name.as_str()), function))
        .collect();
    let mut out = Vec::new();
    let mut left = UnfoldBudget { nodes: MOST_NODES, bytes };
    for node in nodes {
        expand(node, &table, 0, &mut left, &mut out)?;
    }
    Ok(out)
}

fn expand(
    node: NodeProto,
    table: &Functions<'_>,
    depth: u32,
    left: &mut UnfoldBudget,
    out: &mut Vec<NodeProto>,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("the function {} calls itself, or calls lie more than {DEEPEST} deep", node.op));
    }
    left.take(&node)?;
    let Some(function) = table.get(&(node.domain.as_str(), node.op.as_str())) else {
        out.push(node);
        return Ok(());
    };
    let prefix = if node.name.is_empty() { format!("{}_{}", node.op, out.len()) } else { node.name.clone() };
    let outer: HashMap<&str, &str> =
        pairs(&function.inputs, &node.inputs).chain(pairs(&function.outputs, &node.outputs)).collect();
    let rename = |name: &String| match outer.get(name.as_str()) {
        Some(outer) => (*outer).to_owned(),
        None if name.is_empty() || function.inputs.contains(name) => String::new(),
        None => format!("{prefix}/{name}"),
    };
    for inner in &function.nodes {
        let attributes = inner.attributes.iter().filter_map(|attribute| given(attribute, &node, function));
        let made = NodeProto {
            inputs: inner.inputs.iter().map(rename).collect(),
            outputs: inner.outputs.iter().map(rename).collect(),
            name: format!("{prefix}/{}", inner.name),
            op: inner.op.clone(),
            attributes: attributes.collect(),
            domain: inner.domain.clone(),
        };
        expand(made, table, depth + 1, left, out)?;
    }
    Ok(())
}

fn pairs<'a>(inner: &'a [String], outer: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
    inner
        .iter()
        .map(String::as_str)
        .zip(outer.iter().map(String::as_str))
        .filter(|(_, outer)| !outer.is_empty())
}

/// An attribute with the value of the call, or the function's default; none if neither has one.
fn given(attribute: &AttributeProto, call: &NodeProto, function: &FunctionProto) -> Option<AttributeProto> {
    if attribute.of_caller.is_empty() {
        return Some(attribute.clone());
    }
    let named = |list: &[AttributeProto]| {
        list.iter().find(|candidate| candidate.name == attribute.of_caller).cloned()
    };
    let value = named(&call.attributes).or_else(|| named(&function.defaults))?;
    Some(AttributeProto { name: attribute.name.clone(), ..value })
}
