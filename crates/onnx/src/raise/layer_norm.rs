//! Layer normalisation as it was exported before it became an operator (opset 17): mean, difference, square, root.

use super::net::Net;
use super::unit::Unit;
use crate::graph::{NodeId, TensorId};
use crate::operator::Kind;
use crate::size::{Size, elements};
use stepcast_core::model::{Norm, Op};

/// The normalisation that ends with the addition `id` of a learned shift.
pub(super) fn unit(net: &Net<'_>, id: NodeId) -> Option<Unit> {
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
    let unit =
        Unit { inputs: vec![input], work: vec![(Kind::Normalisation, amount)], ..Unit::new(net, id, output) };
    Some(unit.with(Some(Op::Normalise(norm))).parameters(net, Some(factor), Some(shift)))
}

/// The tensor x of a difference x − mean(x).
fn centred(net: &Net<'_>, tensor: TensorId) -> Option<TensorId> {
    let difference = net.node(net.made_by(net.root(tensor), "Sub")?);
    let (input, mean) = (difference.input(0)?, difference.input(1)?);
    let mean = net.node(net.made_by(mean, "ReduceMean")?);
    (mean.input(0)? == input).then_some(input)
}
