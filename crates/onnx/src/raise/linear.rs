//! Linear layers: `Gemm`, or `MatMul` with the addition of a bias after it.

use super::net::Net;
use super::unit::Unit;
use crate::graph::{NodeId, TensorId};
use crate::operator::Kind;
use crate::size::{Size, elements};
use stepcast_core::model::Op;

/// The linear layer that ends with node `id`.
pub(super) fn unit(net: &Net<'_>, id: NodeId) -> Option<Unit> {
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
            Some(Unit { inputs: vec![data], ..layer(net, id, output, weight, bias)? })
        }
        "MatMul" => {
            let (data, weight) = product(net, id)?;
            Some(Unit { inputs: vec![data], ..layer(net, id, output, weight, None)? })
        }
        "Add" => {
            let (sum, bias) = net.with_parameter(node)?;
            let matmul = net.made_by(sum, "MatMul").filter(|_| net.only_reader(sum) == Some(id))?;
            let (data, weight) = product(net, matmul)?;
            let row = net.tensor(bias).shape.as_deref()?.split_last()?.1.iter().all(|dim| *dim == Size::ONE);
            if !row {
                return None;
            }
            let unit = layer(net, matmul, output, weight, Some(bias))?;
            let added = elements(net.tensor(output).shape.as_deref()?)?;
            let work = unit.work.iter().copied().chain([(Kind::Bias, added)]).collect();
            Some(Unit { inputs: vec![data], work, ..unit })
        }
        _ => None,
    }
}

/// What depends on samples and the weight of a product.
fn product(net: &Net<'_>, id: NodeId) -> Option<(TensorId, TensorId)> {
    let node = net.node(id);
    let (data, weight) = (node.input(0)?, node.input(1)?);
    let matrix = net.tensor(weight).shape.as_deref()?.len() == 2;
    (matrix && net.tensor(data).is_data() && net.tensor(weight).parameters().is_some())
        .then_some((data, weight))
}

fn layer(
    net: &Net<'_>,
    id: NodeId,
    output: TensorId,
    weight: TensorId,
    bias: Option<TensorId>,
) -> Option<Unit> {
    let out = net.tensor(output).shape.as_deref()?.last()?.number()?;
    let op = Op::Linear { out: u64::try_from(out).ok()?, bias: bias.is_some(), tied: false };
    Some(Unit::new(net, id, output).with(Some(op)).parameters(net, Some(weight), bias))
}
