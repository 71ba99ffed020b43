//! Functions of a model, replaced by their nodes.

use crate::proto::{AttributeProto, FunctionProto, NodeProto};
use std::collections::HashMap;

/// How deep functions may call each other.
const DEEPEST: u32 = 16;
/// Most nodes of a model.
pub(crate) const MOST_NODES: usize = 500_000;

type Functions<'a> = HashMap<(&'a str, &'a str), &'a FunctionProto>;

/// `nodes` without calls of `functions`.
pub(crate) fn expanded(nodes: Vec<NodeProto>, functions: &[FunctionProto]) -> Result<Vec<NodeProto>, String> {
    if functions.is_empty() {
        return Ok(nodes);
    }
    let table: Functions<'_> = functions
        .iter()
        .map(|function| ((function.domain.as_str(), function.name.as_str()), function))
        .collect();
    let mut out = Vec::new();
    for node in nodes {
        expand(node, &table, 0, &mut out)?;
    }
    Ok(out)
}

fn expand(
    node: NodeProto,
    table: &Functions<'_>,
    depth: u32,
    out: &mut Vec<NodeProto>,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("the function {} calls itself, or calls lie more than {DEEPEST} deep", node.op));
    }
    if out.len() >= MOST_NODES {
        return Err(format!("its functions unfold to more than {MOST_NODES} nodes"));
    }
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
        expand(made, table, depth + 1, out)?;
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
