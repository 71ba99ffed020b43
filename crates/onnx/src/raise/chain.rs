//! Non-linearities that are exported as chains of arithmetic: GELU, SiLU, Hardswish.

use super::net::Net;
use super::unit::Unit;
use crate::graph::{NodeId, TensorId};
use crate::operator::Kind;
use crate::size::{Size, elements};
use stepcast_core::model::{Activation, Op};

/// Most nodes of a chain.
const LONGEST: usize = 12;

/// The non-linearity that ends with node `id`, and the nodes within it.
pub(super) fn unit(net: &Net<'_>, id: NodeId) -> Option<(Unit, Vec<NodeId>)> {
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
            return Some((layer(net, id, only, activation)?, chain));
        }
        // The latest first: what the chain starts from is the earliest.
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
fn is_link(net: &Net<'_>, id: NodeId) -> bool {
    let node = net.node(id);
    match node.op.as_str() {
        "Erf" | "Tanh" | "Sigmoid" | "HardSigmoid" | "Clip" | "Cast" | "Identity" => true,
        "Mul" | "Add" | "Sub" | "Div" | "Pow" => {
            net.data(node).len() == 2 || net.with_constant(node).is_some()
        }
        _ => false,
    }
}

fn recognise(net: &Net<'_>, chain: &[NodeId]) -> Option<Activation> {
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

fn layer(net: &Net<'_>, id: NodeId, input: TensorId, activation: Activation) -> Option<Unit> {
    let output = net.node(id).output()?;
    let each = Size::count(activation.operations())?;
    let amount = elements(net.tensor(output).shape.as_deref()?)?.times(each)?;
    let unit =
        Unit { inputs: vec![input], work: vec![(Kind::Activation, amount)], ..Unit::new(net, id, output) };
    Some(unit.with(Some(Op::Activate(activation))))
}
