//! Learned tables: embeddings of tokens and places, the token of a class; and single tokens taken from a sequence.

use super::LayerUnit;
use super::net::GraphView;
use crate::graph::{NodeId, TensorId};
use stepcast_core::model::Op;

/// The layer that node `id` is, if it looks up, adds or prepends rows of a table, or takes one token.
pub(super) fn unit(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    match node.op.as_str() {
        "Gather" if !net.tensor(node.input(0)?).is_data() => embedding(net, id),
        "Gather" => select(net, id),
        "Add" => position(net, id),
        "Concat" => class_token(net, id),
        "Transpose" => sequence(net, id),
        _ => None,
    }
}

fn embedding(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    let (table, tokens) = (node.input(0)?, node.input(1)?);
    net.tensor(table).parameters()?;
    let [count, width] = net.tensor(table).shape.as_deref()? else { return None };
    if !net.tensor(tokens).is_data() || net.call(node).int("axis", 0) != 0 {
        return None;
    }
    let op = Op::Embedding {
        count: u64::try_from(count.number()?).ok()?,
        width: u64::try_from(width.number()?).ok()?,
        sparse: false,
    };
    let unit = LayerUnit { inputs: vec![tokens], ..LayerUnit::new(net, id, node.output()?) };
    Some(unit.with(Some(op)).parameters(net, Some(table), None))
}

fn select(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    let (from, output) = (node.input(0)?, node.output()?);
    let index = net.tensor(node.input(1)?).scalar()?;
    let ([tokens, width], [kept]) = (&net.sample(from)?[..], &net.sample(output)?[..]) else { return None };
    let along = net.sample_axis(from, net.call(node).int("axis", 0)) == Some(0);
    if !along || width != kept {
        return None;
    }
    let index = if index < 0.0 { *tokens as f64 + index } else { index };
    let op = Op::SelectToken { index: index as u64 };
    Some(LayerUnit { inputs: vec![from], ..LayerUnit::new(net, id, output) }.with(Some(op)))
}

/// Rows of a table added to a sequence, the same for all samples.
fn position(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    let (data, added) = net.with_parameter(node)?;
    let output = node.output()?;
    let sequence = net.sample(data)?;
    let [tokens, width] = sequence[..] else { return None };
    let dims = net.tensor(added).shape.as_deref()?;
    let rows = dims.iter().map(|dim| dim.number()).collect::<Option<Vec<_>>>()?;
    let rows: Vec<u64> =
        rows.into_iter().filter(|dim| *dim != 1).filter_map(|dim| u64::try_from(dim).ok()).collect();
    if rows != [tokens, width] || net.sample(output)? != sequence {
        return None;
    }
    let parameters = net.tensor(added).parameters()?;
    let elements =
        parameters.iter().map(|&index| net.stored_elements(index)).try_fold(0_u64, u64::checked_add)?;
    let op = Op::PositionEmbedding { count: elements / width };
    let unit = LayerUnit { inputs: vec![data], ..LayerUnit::new(net, id, output) };
    Some(unit.with(Some(op)).parameters(net, Some(added), None))
}

fn class_token(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    let output = node.output()?;
    let &[Some(first), Some(rest)] = &node.inputs[..] else { return None };
    net.tensor(first).parameters()?;
    if !net.tensor(rest).is_data() || net.sample_axis(output, net.call(node).int("axis", 0)) != Some(0) {
        return None;
    }
    let unit = LayerUnit { inputs: vec![rest], ..LayerUnit::new(net, id, output) };
    Some(unit.with(Some(Op::ClassToken)).parameters(net, Some(first), None))
}

/// An image seen as a sequence of its pixels.
fn sequence(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    let output = node.output()?;
    let rows = node.input(0).filter(|rows| net.only_reader(*rows) == Some(id))?;
    let image: TensorId = net.node(net.made_by(rows, "Reshape")?).input(0)?;
    let [channels, height, width] = net.sample(image)?[..] else { return None };
    let pixels = height.checked_mul(width)?;
    if net.sample(rows)? != [channels, pixels] || net.sample(output)? != [pixels, channels] {
        return None;
    }
    Some(LayerUnit { inputs: vec![image], ..LayerUnit::new(net, id, output) }.with(Some(Op::ToSequence)))
}
