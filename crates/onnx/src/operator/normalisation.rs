//! Normalisations, counted as `stepcast_core::model::Norm` counts them.

use super::call::{Call, Kind, Made, Rule, Stop, axis, scaled, wrong};
use crate::size::Size;
use stepcast_core::model::Norm;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
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

fn normalise(call: &Call<'_>, each: u64) -> Result<Made, Stop> {
    let shape = call.shape(0)?.to_vec();
    let amount = scaled(call.elements(0)?, each)?;
    // Further outputs are running statistics: one number for each channel.
    let channels = shape.get(1).copied().unwrap_or(Size::ONE);
    let mut shapes = vec![shape];
    shapes.resize(call.node.outputs.len().max(1), vec![channels]);
    Ok(Made { shapes, ..Made::default() }.with(Kind::Normalisation, amount))
}

fn layer(call: &Call<'_>) -> Result<Made, Stop> {
    let shape = call.shape(0)?.to_vec();
    let place = axis(call.int("axis", -1), shape.len())?;
    let mut statistics = shape.clone();
    statistics[place..].fill(Size::ONE);
    let each = Norm::Layer { affine: call.has(1) }.operations();
    let amount = scaled(call.elements(0)?, each)?;
    let mut shapes = vec![shape];
    shapes.resize(call.node.outputs.len().max(1), statistics);
    Ok(Made { shapes, ..Made::default() }.with(Kind::Normalisation, amount))
}

fn local_response(call: &Call<'_>) -> Result<Made, Stop> {
    let Ok(depth) = u64::try_from(call.int("size", 0)) else { return wrong("its size is negative") };
    normalise(call, Norm::LocalResponse { depth }.operations())
}
