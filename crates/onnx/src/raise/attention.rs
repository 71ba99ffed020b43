//! Attention, reassembled from its exported products, scaling, mask and softmax.

use super::LayerUnit;
use super::net::{GraphView, LONGEST_WAY};
use crate::graph::{NodeId, TensorId};
use crate::operator::{AttentionSizes, attention_heads, only_moves};
use crate::tensor::elements;
use stepcast_core::model::Op;

/// Most nodes between a product and the softmax.
const FARTHEST: usize = 8;

/// The attention whose last product, or only node, is `id`.
pub(super) fn unit(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    if node.op == "Attention" && node.domain.is_empty() {
        let heads = attention_heads(&net.call(node)).ok()?;
        let parts = [node.input(0)?, node.input(1)?, node.input(2)?];
        return assembled(net, id, heads, parts, Vec::new());
    }
    if node.op != "MatMul" {
        return None;
    }
    let (shares, values) = (node.input(0)?, node.input(1)?);
    if !net.tensor(values).is_data() {
        return None;
    }
    let softmax = softmax_before(net, shares, id)?;
    let scores = net.node(softmax).input(0)?;
    let mut masks = Vec::new();
    let product = product_before(net, scores, softmax, &mut masks)?;
    let (queries, keys) = (net.node(product).input(0)?, net.node(product).input(1)?);
    let dims = |tensor: TensorId| net.tensor(tensor).shape.as_deref();
    let [outer @ .., places, width] = dims(queries)? else { return None };
    let [.., depth, seen] = dims(keys)? else { return None };
    let [.., summed, value_width] = dims(values)? else { return None };
    if depth != width || summed != seen || dims(scores)?.last() != Some(seen) {
        return None;
    }
    let heads = AttentionSizes {
        outer: elements(outer)?,
        queries: *places,
        keys: *seen,
        width: *width,
        value_width: *value_width,
        causal: net.tensor(scores).causal,
    };
    assembled(net, id, heads, [queries, keys, values], masks)
}

/// The softmax that makes the shares, before dropout and casts.
fn softmax_before(net: &GraphView<'_>, shares: TensorId, reader: NodeId) -> Option<NodeId> {
    let (mut at, mut reader) = (shares, reader);
    for _ in 0..FARTHEST {
        let id = net.maker(at).filter(|_| net.only_reader(at) == Some(reader))?;
        let node = net.node(id);
        match node.op.as_str() {
            "Softmax" => return Some(id),
            "Dropout" | "Cast" | "Identity" => (at, reader) = (node.input(0)?, id),
            _ => return None,
        }
    }
    None
}

/// The product that makes the scores, before scaling and masking; masks go to `masks`.
fn product_before(
    net: &GraphView<'_>,
    scores: TensorId,
    reader: NodeId,
    masks: &mut Vec<TensorId>,
) -> Option<NodeId> {
    let (mut at, mut reader) = (scores, reader);
    for _ in 0..FARTHEST {
        let id = net.maker(at).filter(|_| net.only_reader(at) == Some(reader))?;
        let node = net.node(id);
        let next = match node.op.as_str() {
            "MatMul" => return Some(id),
            "Cast" | "Identity" | "Dropout" | "Tanh" => node.input(0)?,
            "Add" | "Sub" | "Mul" | "Div" | "Where" | "Max" => {
                let onward = |id: &&Option<TensorId>| id.is_some_and(|id| leads_to_product(net, id));
                let next = (*node.inputs.iter().find(onward)?)?;
                masks.extend(node.inputs.iter().flatten().filter(|id| **id != next));
                next
            }
            op if only_moves(op) => node.input(0)?,
            _ => return None,
        };
        (at, reader) = (next, id);
    }
    None
}

/// Whether a tensor is a product of two tensors that depend on samples, scaled and masked at most.
fn leads_to_product(net: &GraphView<'_>, tensor: TensorId) -> bool {
    let mut at = tensor;
    for _ in 0..FARTHEST {
        let Some(id) = net.maker(at) else { return false };
        let node = net.node(id);
        let first = match node.op.as_str() {
            "MatMul" => return net.data(node).len() == 2,
            "Add" | "Sub" | "Mul" | "Div" | "Cast" | "Identity" | "Max" | "Tanh" => node.input(0),
            "Where" => node.input(1).filter(|id| net.tensor(*id).is_data()).or(node.input(2)),
            op if only_moves(op) => node.input(0),
            _ => return false,
        };
        let Some(first) = first else { return false };
        at = first;
    }
    false
}

fn assembled(
    net: &GraphView<'_>,
    id: NodeId,
    heads: AttentionSizes,
    parts: [TensorId; 3],
    masks: Vec<TensorId>,
) -> Option<LayerUnit> {
    let work = heads.work()?;
    let count = net.share(heads.outer);
    let (queries, width) = (u64::try_from(heads.queries.number()?).ok()?, heads.value_width.number()?);
    let packed = count.checked_mul(u64::try_from(width).ok()?)?;
    let roots = parts.map(|part| net.root(part));
    let inputs = if roots[0] == roots[1] && roots[1] == roots[2] { vec![roots[0]] } else { roots.to_vec() };
    let op = Op::Attention { heads: count, causal: heads.causal };
    let output = merged(net, net.node(id).output()?, &[queries, packed]);
    let unit = LayerUnit { inputs, work, ..LayerUnit::new(net, id, output) }.with(Some(op));
    // A learned mask, such as a bias by distance, has parameters.
    let learned = masks.into_iter().filter(|mask| net.tensor(*mask).scalar().is_none());
    Some(learned.fold(unit, |unit, mask| unit.parameters(net, Some(mask), None)))
}

/// The tensor in which the heads stand side by side again, if nothing else happens before.
fn merged(net: &GraphView<'_>, product: TensorId, wanted: &[u64]) -> TensorId {
    let mut at = product;
    for _ in 0..LONGEST_WAY {
        if net.sample(at).as_deref() == Some(wanted) {
            return at;
        }
        let reader = net.only_reader(at).map(|id| net.node(id)).filter(|node| only_moves(&node.op));
        match reader.and_then(|node| node.output()) {
            Some(next) => at = next,
            None => break,
        }
    }
    product
}
