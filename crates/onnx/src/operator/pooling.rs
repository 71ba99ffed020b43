//! Pooling: one operation for each element of each window.

use super::call::{Call, Kind, Made, Rule, Stop, overflow, product_of, wrong};
use super::convolution::{Windows, image};
use crate::size::Size;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "MaxPool" | "AveragePool" | "LpPool" => pool,
        "GlobalMaxPool" | "GlobalAveragePool" | "GlobalLpPool" => global,
        "MaxRoiPool" | "RoiAlign" => regions,
        "MaxUnpool" => unpool,
        _ => return None,
    })
}

fn pool(call: &Call<'_>) -> Result<Made, Stop> {
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let kernel = call.ints("kernel_shape").unwrap_or_default().to_vec();
    let windows = Windows::new(call, kernel, &sizes)?;
    let mut shape = vec![batch, channels];
    shape.extend(windows.output(&sizes)?);
    let mut amount: Vec<Size> = windows.kernel.iter().map(|&side| Size::fixed(side)).collect();
    amount.extend(&shape);
    let amount = product_of(&amount)?;
    let shapes = vec![shape; call.node.outputs.len().max(1)];
    Ok(Made { shapes, ..Made::default() }.with(Kind::Pooling, amount))
}

fn global(call: &Call<'_>) -> Result<Made, Stop> {
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let mut shape = vec![batch, channels];
    shape.extend(sizes.iter().map(|_| Size::ONE));
    Ok(Made::free(shape)?.with(Kind::Pooling, call.elements(0)?))
}

/// Regions of an image, each pooled to one size; aligned ones read four pixels for each sample they take.
fn regions(call: &Call<'_>) -> Result<Made, Stop> {
    let (_, channels, _) = image(call.shape(0)?)?;
    let Some(&count) = call.shape(1)?.first() else { return wrong("its regions have no dimension") };
    let (height, width) = match call.ints("pooled_shape") {
        Some(&[height, width]) => (height, width),
        _ => (call.int("output_height", 1), call.int("output_width", 1)),
    };
    let shape = vec![count, channels, Size::fixed(height.max(1)), Size::fixed(width.max(1))];
    let taken = call.int("sampling_ratio", 2).clamp(1, 64);
    let each = if call.node.op == "RoiAlign" { 8 * taken * taken } else { 1 };
    let amount = product_of(&shape)?.times(Size::fixed(each)).ok_or_else(overflow)?;
    Ok(Made::free(shape)?.with(Kind::Pooling, amount))
}

fn unpool(call: &Call<'_>) -> Result<Made, Stop> {
    if call.has(2) {
        return Made::free(call.sizes(2)?);
    }
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let windows = Windows::new(call, call.ints("kernel_shape").unwrap_or_default().to_vec(), &sizes)?;
    let mut shape = vec![batch, channels];
    for (at, &length) in sizes.iter().enumerate() {
        let (before, after) = windows.pads[at];
        let far =
            (length - 1).checked_mul(windows.stride[at]).and_then(|far| far.checked_add(windows.kernel[at]));
        let size = far.and_then(|far| far.checked_sub(before)?.checked_sub(after)).filter(|size| *size > 0);
        shape.push(size.map(Size::fixed).ok_or_else(overflow)?);
    }
    Made::free(shape)
}
