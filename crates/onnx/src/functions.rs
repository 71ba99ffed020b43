//! Functions of a model, replaced by their nodes.

use crate::proto::{AttributeProto, FunctionProto, NodeProto};
use prost::Message;
use std::collections::HashMap;

/// How deep functions may call each other.
const DEEPEST: u32 = 16;
/// Most nodes of a model.
pub(crate) const MOST_NODES: usize = 500_000;

type Functions<'a> = HashMap<(&'a str, &'a str), &'a FunctionProto>;

/// What calls may unfold to.
struct Left {
    /// Nodes and calls: functions without nodes could call each other for ever.
    nodes: usize,
    bytes: u64,
}

impl Left {
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

/// Bytes of a node and of an attribute beside what they contain.
const NODE: usize = 300;
const ATTRIBUTE: usize = 300;

/// `nodes` without calls of `functions`, in at most `bytes` of memory.
pub(crate) fn expanded(
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
    let mut left = Left { nodes: MOST_NODES, bytes };
    for node in nodes {
        expand(node, &table, 0, &mut left, &mut out)?;
    }
    Ok(out)
}

fn expand(
    node: NodeProto,
    table: &Functions<'_>,
    depth: u32,
    left: &mut Left,
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
