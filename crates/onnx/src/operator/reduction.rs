//! Reductions along axes, sorting, losses, and normalisations, counted as `stepcast_core::model::Norm` counts them.

use super::{InferenceError, Inferred, OperatorCall, Rule, axis, scaled, wrong};
use crate::tensor::{Number, Size};
use stepcast_core::model::{Activation, CostKind, EXPONENTIAL, Norm};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        _ if operations(op).is_some() => reduce,
        "ArgMax" | "ArgMin" => extreme,
        "CumSum" | "CumProd" => running,
        "TopK" => top,
        "SoftmaxCrossEntropyLoss" => |call| loss(call, Activation::Softmax.operations() + EXPONENTIAL),
        "NegativeLogLikelihoodLoss" => |call| loss(call, 1),
        "BatchNormalization" => |call| normalise(call, Norm::Batch { affine: true }.operations()),
        "LayerNormalization" => layer,
        "GroupNormalization" | "InstanceNormalization" => {
            |call| normalise(call, Norm::Layer { affine: true }.operations())
        }
        // The square, its mean, the quotient, the scale.
        "RMSNormalization" => |call| normalise(call, 4),
        "MeanVarianceNormalization" => |call| normalise(call, Norm::Layer { affine: false }.operations()),
        "LpNormalization" => |call| normalise(call, 3),
        "LRN" => local_response,
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
pub(crate) fn axes(call: &OperatorCall<'_>) -> Result<Vec<usize>, InferenceError> {
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

fn reduce(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let shape = reduced(call.shape(0)?, &axes(call)?, call.int("keepdims", 1) != 0);
    let amount = scaled(call.elements(0)?, operations(&call.node.op).unwrap_or(1))?;
    let sizes = call.sizes(0).ok().filter(|_| call.node.op == "ReduceProd");
    let product = sizes.and_then(|sizes| sizes.into_iter().try_fold(Size::ONE, Size::times));
    let content = product.map(|product| vec![Number::Whole(product)]).filter(|_| shape.len() <= 1);
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() }.with(CostKind::Elementwise, amount))
}

fn extreme(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let place = axis(call.int("axis", 0), dims.len())?;
    let shape = reduced(dims, &[place], call.int("keepdims", 1) != 0);
    Ok(Inferred::free(shape)?.with(CostKind::Elementwise, call.elements(0)?))
}

fn running(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    Ok(Inferred::free(call.shape(0)?.to_vec())?.with(CostKind::Elementwise, call.elements(0)?))
}

/// One comparison for each element: selection, not sorting.
fn top(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
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
    Ok(Inferred { shapes: vec![shape.clone(), shape], ..Inferred::default() }
        .with(CostKind::Elementwise, call.elements(0)?))
}

fn loss(call: &OperatorCall<'_>, each: u64) -> Result<Inferred, InferenceError> {
    let summed = call.text("reduction").unwrap_or("mean") != "none";
    let shape = if summed { Vec::new() } else { call.shape(1)?.to_vec() };
    let amount = scaled(call.elements(0)?, each)?;
    let shapes = vec![shape, call.shape(0)?.to_vec()];
    Ok(Inferred { shapes, ..Inferred::default() }.with(CostKind::Activation, amount))
}

fn normalise(call: &OperatorCall<'_>, each: u64) -> Result<Inferred, InferenceError> {
    let shape = call.shape(0)?.to_vec();
    let amount = scaled(call.elements(0)?, each)?;
    // Further outputs are running statistics: one number for each channel.
    let channels = shape.get(1).copied().unwrap_or(Size::ONE);
    let mut shapes = vec![shape];
    shapes.resize(call.node.outputs.len().max(1), vec![channels]);
    Ok(Inferred { shapes, ..Inferred::default() }.with(CostKind::Normalisation, amount))
}

fn layer(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let shape = call.shape(0)?.to_vec();
    let place = axis(call.int("axis", -1), shape.len())?;
    let mut statistics = shape.clone();
    statistics[place..].fill(Size::ONE);
    let each = Norm::Layer { affine: call.has(1) }.operations();
    let amount = scaled(call.elements(0)?, each)?;
    let mut shapes = vec![shape];
    shapes.resize(call.node.outputs.len().max(1), statistics);
    Ok(Inferred { shapes, ..Inferred::default() }.with(CostKind::Normalisation, amount))
}

fn local_response(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let Ok(depth) = u64::try_from(call.int("size", 0)) else { return wrong("its size is negative") };
    normalise(call, Norm::LocalResponse { depth }.operations())
}
