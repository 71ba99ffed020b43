//! Layers that exporters take apart into a few nodes: linear layers, layer normalisation before it became an operator
//! (opset 17), and the chains of arithmetic of GELU, SiLU and Hardswish.

use super::LayerUnit;
use super::net::GraphView;
use crate::graph::{NodeId, TensorId};
use crate::tensor::{Size, elements};
use stepcast_core::model::{Activation, CostKind, Norm, Op};

pub(super) fn linear(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    let output = node.output()?;
    match node.op.as_str() {
        "Gemm" => {
            let (data, weight) = (node.input(0)?, node.input(1)?);
            let plain = net.call(node).int("transA", 0) == 0 && net.tensor(data).is_data();
            if !plain || net.tensor(weight).parameters().is_none() {
                return None;
            }
            let bias = node.input(2).filter(|bias| net.tensor(*bias).parameters().is_some());
            Some(LayerUnit { inputs: vec![data], ..linear_layer(net, id, output, weight, bias)? })
        }
        "MatMul" => {
            let (data, weight) = product(net, id)?;
            Some(LayerUnit { inputs: vec![data], ..linear_layer(net, id, output, weight, None)? })
        }
        "Add" => {
            let (sum, bias) = net.with_parameter(node)?;
            let matmul = net.made_by(sum, "MatMul").filter(|_| net.only_reader(sum) == Some(id))?;
            let (data, weight) = product(net, matmul)?;
            let row = net.tensor(bias).shape.as_deref()?.split_last()?.1.iter().all(|dim| *dim == Size::ONE);
            if !row {
                return None;
            }
            let unit = linear_layer(net, matmul, output, weight, Some(bias))?;
            let added = elements(net.tensor(output).shape.as_deref()?)?;
            let work = unit.work.iter().copied().chain([(CostKind::Bias, added)]).collect();
            Some(LayerUnit { inputs: vec![data], work, ..unit })
        }
        _ => None,
    }
}

/// The operands of a product: the tensor that depends on samples, and the weight.
fn product(net: &GraphView<'_>, id: NodeId) -> Option<(TensorId, TensorId)> {
    let node = net.node(id);
    let (data, weight) = (node.input(0)?, node.input(1)?);
    let matrix = net.tensor(weight).shape.as_deref()?.len() == 2;
    (matrix && net.tensor(data).is_data() && net.tensor(weight).parameters().is_some())
        .then_some((data, weight))
}

fn linear_layer(
    net: &GraphView<'_>,
    id: NodeId,
    output: TensorId,
    weight: TensorId,
    bias: Option<TensorId>,
) -> Option<LayerUnit> {
    let out = net.tensor(output).shape.as_deref()?.last()?.number()?;
    let op = Op::Linear { out: u64::try_from(out).ok()?, bias: bias.is_some(), tied: false };
    Some(LayerUnit::new(net, id, output).with(Some(op)).parameters(net, Some(weight), bias))
}

/// The normalisation that ends with the addition `id` of a learned shift.
pub(super) fn layer_norm(net: &GraphView<'_>, id: NodeId) -> Option<LayerUnit> {
    let node = net.node(id);
    if node.op != "Add" {
        return None;
    }
    let output = node.output()?;
    let (scaled, shift) = net.with_parameter(node)?;
    let scale = net.made_by(scaled, "Mul").filter(|_| net.only_reader(scaled) == Some(id))?;
    let (normal, factor) = net.with_parameter(net.node(scale))?;
    let quotient = net.made_by(normal, "Div").filter(|_| net.only_reader(normal) == Some(scale))?;
    let (difference, deviation) = (net.node(quotient).input(0)?, net.node(quotient).input(1)?);
    let input = centred(net, difference)?;
    let root = net.node(net.made_by(deviation, "Sqrt")?).input(0)?;
    let variance = net.with_constant(net.node(net.made_by(root, "Add")?))?;
    let square = net.node(net.made_by(variance, "ReduceMean")?).input(0)?;
    let squared =
        net.node(net.maker(square).filter(|id| matches!(net.node(*id).op.as_str(), "Pow" | "Mul"))?);
    if centred(net, net.root(squared.input(0)?)) != Some(input) {
        return None;
    }
    let norm = Norm::Layer { affine: true };
    let amount = elements(net.tensor(output).shape.as_deref()?)?.times(Size::count(norm.operations())?)?;
    let unit = LayerUnit {
        inputs: vec![input],
        work: vec![(CostKind::Normalisation, amount)],
        ..LayerUnit::new(net, id, output)
    };
    Some(unit.with(Some(Op::Normalise(norm))).parameters(net, Some(factor), Some(shift)))
}

/// The tensor x of a difference x − mean(x).
fn centred(net: &GraphView<'_>, tensor: TensorId) -> Option<TensorId> {
    let difference = net.node(net.made_by(net.root(tensor), "Sub")?);
    let (input, mean) = (difference.input(0)?, difference.input(1)?);
    let mean = net.node(net.made_by(mean, "ReduceMean")?);
    (mean.input(0)? == input).then_some(input)
}

/// Most nodes of a chain.
const LONGEST: usize = 12;

/// The non-linearity that ends with node `id`, and the nodes within it.
pub(super) fn activation(net: &GraphView<'_>, id: NodeId) -> Option<(LayerUnit, Vec<NodeId>)> {
    let node = net.node(id);
    if !matches!(node.op.as_str(), "Mul" | "Div") {
        return None;
    }
    let mut chain = vec![id];
    let mut leaves = net.data(node);
    while chain.len() <= LONGEST {
        leaves.sort_unstable();
        leaves.dedup();
        if let [only] = leaves[..]
            && let Some(activation) = recognise(net, &chain)
        {
            return Some((activation_layer(net, id, only, activation)?, chain));
        }
        // The latest first: the start of the chain is the earliest.
        let (place, maker) = leaves
            .iter()
            .enumerate()
            .filter_map(|(place, leaf)| Some((place, net.maker(*leaf)?)))
            .max_by_key(|(_, maker)| *maker)?;
        let leaf = leaves.swap_remove(place);
        if !is_link(net, maker) || !net.read_within(leaf, &chain) {
            return None;
        }
        chain.push(maker);
        leaves.extend(net.data(net.node(maker)));
    }
    None
}

/// Whether a node can be part of a chain: it bends, or combines with a constant or another part.
fn is_link(net: &GraphView<'_>, id: NodeId) -> bool {
    let node = net.node(id);
    match node.op.as_str() {
        "Erf" | "Tanh" | "Sigmoid" | "HardSigmoid" | "Clip" | "Cast" | "Identity" => true,
        "Mul" | "Add" | "Sub" | "Div" | "Pow" => {
            net.data(node).len() == 2 || net.with_constant(node).is_some()
        }
        _ => false,
    }
}

fn recognise(net: &GraphView<'_>, chain: &[NodeId]) -> Option<Activation> {
    let count = |op: &str| chain.iter().filter(|id| net.node(**id).op == op).count();
    let length = chain.len() - count("Cast") - count("Identity");
    match (count("Erf"), count("Tanh"), count("Sigmoid")) {
        // ½x(1+erf(x/√2)), and its approximation with a cube
        (1, 0, 0) if count("Mul") >= 2 => Some(Activation::Gelu),
        (0, 1, 0) if count("Pow") == 1 || count("Mul") >= 5 => Some(Activation::Gelu),
        (0, 0, 1) if length == 2 => Some(Activation::Silu),
        (0, 0, 0) if count("HardSigmoid") == 1 && length == 2 => Some(Activation::Hardswish),
        // x·clip(x+3)/6
        (0, 0, 0) if count("Clip") == 1 && count("Add") == 1 && length == 4 => Some(Activation::Hardswish),
        _ => None,
    }
}

fn activation_layer(
    net: &GraphView<'_>,
    id: NodeId,
    input: TensorId,
    activation: Activation,
) -> Option<LayerUnit> {
    let output = net.node(id).output()?;
    let each = Size::count(activation.operations())?;
    let amount = elements(net.tensor(output).shape.as_deref()?)?.times(each)?;
    let unit = LayerUnit {
        inputs: vec![input],
        work: vec![(CostKind::Activation, amount)],
        ..LayerUnit::new(net, id, output)
    };
    Some(unit.with(Some(Op::Activate(activation))))
}
