//! Images at other sizes, and points read between pixels: one multiply-add for each pixel that takes part.

use super::{InferenceError, Inferred, OperatorCall, Rule, axis, product_of, scaled, wrong};
use crate::tensor::Size;
use stepcast_core::model::CostKind;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Resize" => |call| resize(call, 2, Some(3)),
        "Upsample" => |call| resize(call, 1, None),
        "GridSample" => grid_sample,
        "AffineGrid" => affine_grid,
        "CenterCropPad" => crop,
        "Col2Im" => columns,
        _ => return None,
    })
}

fn resize(
    call: &OperatorCall<'_>,
    scales_at: usize,
    sizes_at: Option<usize>,
) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    // Only some dimensions may be meant (opset 18).
    let rank = dims.len();
    let places = match call.ints("axes") {
        Some(axes) => axes.iter().map(|&place| axis(place, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    let mut shape = dims.to_vec();
    // The first version of resizing has the factors as its second input.
    let scales_at = if call.inputs.len() == 2 { 1 } else { scales_at };
    match sizes_at.filter(|&at| call.has(at)) {
        Some(at) => {
            let sizes = call.sizes(at)?;
            for (&place, size) in places.iter().zip(sizes) {
                shape[place] = size;
            }
        }
        None => {
            let factors: Vec<f64> = match call.attribute("scales") {
                Some(attribute) => attribute.floats.iter().map(|&factor| f64::from(factor)).collect(),
                None => call.content(scales_at)?.iter().filter_map(|number| number.real()).collect(),
            };
            for (&place, factor) in places.iter().zip(factors) {
                shape[place] = stretched(shape[place], factor)?;
            }
        }
    }
    // Dimensions that change are interpolated: two pixels each if linear, four if cubic.
    let changed = dims.iter().zip(&shape).filter(|(before, after)| before != after).count() as u32;
    let taken = match call.text("mode").unwrap_or("nearest") {
        "nearest" => return Inferred::free(shape),
        "cubic" => 4_u64.checked_pow(changed),
        _ => 2_u64.checked_pow(changed),
    };
    let amount =
        scaled(product_of(&shape)?, taken.and_then(|taken| taken.checked_mul(2)).unwrap_or(u64::MAX))?;
    Ok(Inferred::free(shape)?.with(CostKind::Elementwise, amount))
}

fn stretched(dim: Size, factor: f64) -> Result<Size, InferenceError> {
    let size = dim.number().map(|dim| (dim as f64 * factor).floor());
    match size {
        Some(size) if (1.0..1e15).contains(&size) => Ok(Size::fixed(size as i64)),
        // Samples are not stretched.
        None if [1.0].contains(&factor) => Ok(dim),
        _ => wrong(format!("{dim} pixels cannot be stretched by {factor}")),
    }
}

fn grid_sample(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (dims, grid) = (call.shape(0)?, call.shape(1)?);
    let ([batch, channels, ..], [_, places @ .., rank]) = (dims, grid) else {
        return wrong("it reads images and a grid of places");
    };
    let mut shape = vec![*batch, *channels];
    shape.extend(places);
    let rank = rank.number().and_then(|rank| u32::try_from(rank).ok()).unwrap_or(2);
    let side = match call.text("mode").unwrap_or("linear") {
        "nearest" => 1_u64,
        "cubic" | "bicubic" => 4,
        _ => 2,
    };
    let each = side.checked_pow(rank).and_then(|taken| taken.checked_mul(2)).unwrap_or(u64::MAX);
    let amount = scaled(product_of(&shape)?, each)?;
    Ok(Inferred::free(shape)?.with(CostKind::Elementwise, amount))
}

fn affine_grid(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let size = call.sizes(1)?;
    let [batch, _, image @ ..] = &size[..] else { return wrong("its size lacks batch and channels") };
    let rank = image.len() as u64;
    let mut shape = vec![*batch];
    shape.extend(image);
    shape.push(Size::fixed(rank as i64));
    let amount = scaled(product_of(&shape)?, 2 * (rank + 1))?;
    Ok(Inferred::free(shape)?.with(CostKind::MultiplyAdd, amount))
}

fn crop(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let mut shape = call.shape(0)?.to_vec();
    let wanted = call.sizes(1)?;
    let axes: Vec<i64> = call.ints("axes").map_or_else(|| (0..shape.len() as i64).collect(), <[i64]>::to_vec);
    for (&place, size) in axes.iter().zip(wanted) {
        let place = axis(place, shape.len())?;
        shape[place] = size;
    }
    Inferred::free(shape)
}

/// Windows put back into an image, overlaps summed.
fn columns(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (image, window) = (call.sizes(1)?, call.sizes(2)?);
    let &[batch, stacked, _] = call.shape(0)? else { return wrong("it reads windows as columns") };
    let channels = stacked.over(product_of(&window)?);
    let Some(channels) = channels else { return wrong("its window does not divide its columns") };
    let mut shape = vec![batch, channels];
    shape.extend(image);
    Ok(Inferred::free(shape)?.with(CostKind::Elementwise, call.elements(0)?))
}
