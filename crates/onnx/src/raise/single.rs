//! Nodes that are layers on their own: convolution, pooling, normalisation, non-linearities, sums; and learned tables:
//! embeddings of tokens and places, the token of a class, and single tokens taken from a sequence.

use super::LayerUnit;
use super::net::GraphView;
use crate::graph::{Node, NodeId, TensorId};
use crate::operator::{Windows, reduced_axes};
use crate::tensor::Size;
use stepcast_core::model::{Activation, Conv2d, CostKind, Norm, Op, Padding, Pool};

pub(super) fn unit(net: &GraphView<'_>, id: NodeId, output: TensorId) -> LayerUnit {
    let node = net.node(id);
    let unit = LayerUnit::new(net, id, output);
    let activation = |activation| Some(Op::Activate(activation));
    match node.op.as_str() {
        "Conv" | "ConvTranspose" | "ConvInteger" | "CausalConvWithState" => {
            let op = if node.op == "Conv" { convolution(net, node) } else { None };
            unit.with(op).parameters(net, node.input(1), node.input(2))
        }
        "DeformConv" => unit.parameters(net, node.input(1), node.input(3)),
        "MaxPool" => unit.with(pool(net, node, Pool::Max)),
        "AveragePool" => unit.with(pool(net, node, Pool::Average)),
        "GlobalMaxPool" => unit.with(whole_image(net, node, Pool::Max)),
        "GlobalAveragePool" => unit.with(whole_image(net, node, Pool::Average)),
        "ReduceMean" => mean(net, node, unit),
        "BatchNormalization" => {
            let affine = is_parameter(net, node, 1) && is_parameter(net, node, 2);
            let op = Op::Normalise(Norm::Batch { affine });
            unit.with(Some(op)).parameters(net, node.input(1), node.input(2))
        }
        "LayerNormalization" => {
            let affine = is_parameter(net, node, 1) && is_parameter(net, node, 2);
            let last = matches!(net.call(node).int("axis", -1), -1);
            let op = Op::Normalise(Norm::Layer { affine });
            unit.with(last.then_some(op)).parameters(net, node.input(1), node.input(2))
        }
        "LRN" => {
            let depth = u64::try_from(net.call(node).int("size", 0)).ok();
            unit.with(depth.map(|depth| Op::Normalise(Norm::LocalResponse { depth })))
        }
        "LSTM" | "GRU" | "RNN" => {
            unit.parameters(net, node.input(1), node.input(3)).parameters(net, node.input(2), None)
        }
        "Relu" => unit.with(activation(Activation::Relu)),
        "Sigmoid" => unit.with(activation(Activation::Sigmoid)),
        "Tanh" => unit.with(activation(Activation::Tanh)),
        "Gelu" => unit.with(activation(Activation::Gelu)),
        "HardSwish" => unit.with(activation(Activation::Hardswish)),
        "Clip" => unit.with(activation(Activation::Relu6).filter(|_| clips_at_six(net, node))),
        "Softmax" => {
            let rank = node.input(0).and_then(|id| Some(net.tensor(id).shape.as_deref()?.len()));
            let axis =
                net.call(node).int("axis", if net.graph.opset.is_some_and(|v| v < 13) { 1 } else { -1 });
            let last = axis == -1 || rank.is_some_and(|rank| axis == rank as i64 - 1);
            unit.with(activation(Activation::Softmax).filter(|_| last))
        }
        "Dropout" => LayerUnit { work: net.work(id).to_vec(), ..unit }.with(Some(Op::Dropout)),
        "Add" | "Sum" if unit.inputs.len() > 1 && all_data(net, node) => unit.with(Some(Op::Add)),
        "Mul" if unit.inputs.len() == 2 => multiplied(net, unit),
        "Concat" => {
            let first = net.sample_axis(output, net.call(node).int("axis", 0)) == Some(0);
            let op = (first && unit.inputs.len() > 1 && all_data(net, node)).then_some(Op::Concat);
            others(net, node, unit.with(op))
        }
        _ => others(net, node, unit),
    }
}

/// Assigns the other initialisers of a node: added ones are biases, others weights. A single number is a constant.
fn others(net: &GraphView<'_>, node: &Node, mut unit: LayerUnit) -> LayerUnit {
    for &input in node.inputs.iter().flatten() {
        let tensor = net.tensor(input);
        let single = tensor.shape.as_deref().is_some_and(|dims| dims.iter().all(|dim| *dim == Size::ONE));
        if single {
            continue;
        }
        let (weight, bias) = if node.op == "Add" { (None, Some(input)) } else { (Some(input), None) };
        unit = unit.parameters(net, weight, bias);
    }
    unit
}

fn is_parameter(net: &GraphView<'_>, node: &Node, index: usize) -> bool {
    node.input(index).is_some_and(|id| net.tensor(id).parameters().is_some())
}

fn all_data(net: &GraphView<'_>, node: &Node) -> bool {
    node.inputs.iter().flatten().all(|id| net.tensor(*id).is_data())
}

fn pair<T: Copy>(values: &[T]) -> Option<(T, T)> {
    match *values {
        [height, width] => Some((height, width)),
        _ => None,
    }
}

fn sizes(values: &[i64]) -> Option<(u64, u64)> {
    let (height, width) = pair(values)?;
    Some((u64::try_from(height).ok()?, u64::try_from(width).ok()?))
}

/// The windows of a node over an image of two dimensions.
fn windows(net: &GraphView<'_>, node: &Node, kernel: Vec<i64>) -> Option<Windows> {
    let [_, _, height, width] = net.tensor(node.input(0)?).shape.as_deref()? else { return None };
    Windows::new(&net.call(node), kernel, &[height.number()?, width.number()?]).ok()
}

fn padding(windows: &Windows) -> Option<Padding> {
    let ((top, bottom), (left, right)) = pair(&windows.pads)?;
    let side = |value: i64| u64::try_from(value).ok();
    Some(match (side(top)?, side(bottom)?, side(left)?, side(right)?) {
        (0, 0, 0, 0) => Padding::Valid,
        (top, bottom, left, right) => Padding::Explicit { top, bottom, left, right },
    })
}

fn convolution(net: &GraphView<'_>, node: &Node) -> Option<Op> {
    let [out, _, kernel @ ..] = net.tensor(node.input(1)?).shape.as_deref()? else { return None };
    let kernel = kernel.iter().map(|side| side.number()).collect::<Option<Vec<_>>>()?;
    let windows = windows(net, node, kernel)?;
    Some(Op::Conv2d(Conv2d {
        out: u64::try_from(out.number()?).ok()?,
        kernel: sizes(&windows.kernel)?,
        stride: sizes(&windows.stride)?,
        padding: padding(&windows)?,
        dilation: sizes(&windows.dilation)?,
        groups: u64::try_from(net.call(node).int("group", 1)).ok()?,
        bias: is_parameter(net, node, 2),
    }))
}

fn pool(net: &GraphView<'_>, node: &Node, kind: Pool) -> Option<Op> {
    let windows = windows(net, node, node.attribute("kernel_shape")?.ints.clone())?;
    let plain = windows.dilation.iter().all(|step| *step == 1);
    let (kernel, stride, padding) = (sizes(&windows.kernel)?, sizes(&windows.stride)?, padding(&windows)?);
    plain.then_some(Op::Pool { kind, kernel, stride, padding, ceil: windows.ceil })
}

fn whole_image(net: &GraphView<'_>, node: &Node, kind: Pool) -> Option<Op> {
    let rank = net.tensor(node.input(0)?).shape.as_deref()?.len();
    (rank == 4).then_some(Op::AdaptivePool { kind, size: (1, 1) })
}

/// The mean over height and width is a pooling.
fn mean(net: &GraphView<'_>, node: &Node, unit: LayerUnit) -> LayerUnit {
    let mut axes = reduced_axes(&net.call(node)).unwrap_or_default();
    axes.sort_unstable();
    let op = whole_image(net, node, Pool::Average).filter(|_| axes == [2, 3]);
    if op.is_none() {
        return unit;
    }
    let work = unit.work.iter().map(|(_, amount)| (CostKind::Pooling, *amount)).collect();
    LayerUnit { work, ..unit }.with(op)
}

fn clips_at_six(net: &GraphView<'_>, node: &Node) -> bool {
    let bound = |name: &str, index: usize| match node.attribute(name) {
        Some(attribute) => Some(f64::from(attribute.float)),
        None => node.input(index).and_then(|id| net.tensor(id).scalar()),
    };
    bound("min", 1) == Some(0.0) && bound("max", 2) == Some(6.0)
}

/// The larger operand first: that is how the smaller one is spread.
fn multiplied(net: &GraphView<'_>, mut unit: LayerUnit) -> LayerUnit {
    let output = net.sample(unit.output);
    if unit.inputs.first().and_then(|id| net.sample(*id)) != output {
        unit.inputs.reverse();
    }
    unit.with(Some(Op::Multiply))
}

/// The layer that node `id` is, if it looks up, adds or prepends rows of a table, or takes one token.
pub(super) fn table(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
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
