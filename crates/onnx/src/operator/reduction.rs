//! Reductions along axes, sorting, and losses.

use super::call::{Call, Kind, Made, Rule, Stop, axis, scaled, wrong};
use crate::size::Size;
use crate::tensor::Number;
use stepcast_core::model::{Activation, EXPONENTIAL};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        _ if operations(op).is_some() => reduce,
        "ArgMax" | "ArgMin" => extreme,
        "CumSum" | "CumProd" => running,
        "TopK" => top,
        "SoftmaxCrossEntropyLoss" => |call| loss(call, Activation::Softmax.operations() + EXPONENTIAL),
        "NegativeLogLikelihoodLoss" => |call| loss(call, 1),
        _ => return None,
    })
}

/// Operations for each element of the input.
fn operations(op: &str) -> Option<u64> {
    Some(match op {
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1" => 1,
        "ReduceSumSquare" | "ReduceL2" => 2,
        "ReduceLogSum" => 1,
        "ReduceLogSumExp" => EXPONENTIAL + 1,
        _ => return None,
    })
}

/// The axes that vanish or become 1.
pub(crate) fn axes(call: &Call<'_>) -> Result<Vec<usize>, Stop> {
    let rank = call.shape(0)?.len();
    let given = call.setting("axes", 1)?.filter(|axes| !axes.is_empty());
    match given {
        Some(axes) => axes.iter().map(|&place| axis(place, rank)).collect(),
        None if call.int("noop_with_empty_axes", 0) != 0 => Ok(Vec::new()),
        None => Ok((0..rank).collect()),
    }
}

fn reduced(dims: &[Size], axes: &[usize], keep: bool) -> Vec<Size> {
    let dim = |(place, &dim): (usize, &Size)| match axes.contains(&place) {
        false => Some(dim),
        true => keep.then_some(Size::ONE),
    };
    dims.iter().enumerate().filter_map(dim).collect()
}

fn reduce(call: &Call<'_>) -> Result<Made, Stop> {
    let shape = reduced(call.shape(0)?, &axes(call)?, call.int("keepdims", 1) != 0);
    let amount = scaled(call.elements(0)?, operations(&call.node.op).unwrap_or(1))?;
    let sizes = call.sizes(0).ok().filter(|_| call.node.op == "ReduceProd");
    let product = sizes.and_then(|sizes| sizes.into_iter().try_fold(Size::ONE, Size::times));
    let content = product.map(|product| vec![Number::Whole(product)]).filter(|_| shape.len() <= 1);
    Ok(Made { shapes: vec![shape], content, ..Made::default() }.with(Kind::Elementwise, amount))
}

fn extreme(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.shape(0)?;
    let place = axis(call.int("axis", 0), dims.len())?;
    let shape = reduced(dims, &[place], call.int("keepdims", 1) != 0);
    Ok(Made::free(shape)?.with(Kind::Elementwise, call.elements(0)?))
}

fn running(call: &Call<'_>) -> Result<Made, Stop> {
    Ok(Made::free(call.shape(0)?.to_vec())?.with(Kind::Elementwise, call.elements(0)?))
}

/// One comparison for each element: selection, not sorting.
fn top(call: &Call<'_>) -> Result<Made, Stop> {
    let mut shape = call.shape(0)?.to_vec();
    let place = axis(call.int("axis", -1), shape.len())?;
    shape[place] = match (call.attribute("k"), call.has(1)) {
        (Some(attribute), _) => Size::fixed(attribute.int),
        (None, true) => match call.sizes(1)?[..] {
            [count] => count,
            _ => return wrong("its count is not a single number"),
        },
        (None, false) => return wrong("it does not say how many"),
    };
    Ok(Made { shapes: vec![shape.clone(), shape], ..Made::default() }
        .with(Kind::Elementwise, call.elements(0)?))
}

fn loss(call: &Call<'_>, each: u64) -> Result<Made, Stop> {
    let summed = call.text("reduction").unwrap_or("mean") != "none";
    let shape = if summed { Vec::new() } else { call.shape(1)?.to_vec() };
    let amount = scaled(call.elements(0)?, each)?;
    let shapes = vec![shape, call.shape(0)?.to_vec()];
    Ok(Made { shapes, ..Made::default() }.with(Kind::Activation, amount))
}
