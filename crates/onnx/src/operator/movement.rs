//! Operators that see a tensor in another way: reshaping, transposing, casting.

use super::call::{Call, Made, Rule, Stop, axis, broadcast, overflow, product_of, wrong};
use crate::size::{Size, elements, spelled};
use crate::tensor::Number;

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Identity" | "CastLike" | "BitCast" | "SequenceAt" | "SequenceConstruct" | "Optional"
        | "OptionalGetElement" | "ReverseSequence" | "Trilu" => same,
        "Cast" => cast,
        "Reshape" => reshape,
        "Flatten" => flatten,
        "Squeeze" => squeeze,
        "Unsqueeze" => unsqueeze,
        "Transpose" => transpose,
        "Expand" => expand,
        "SpaceToDepth" | "DepthToSpace" => blocks,
        _ => return None,
    })
}

fn same(call: &Call<'_>) -> Result<Made, Stop> {
    let content = call.tensor(0)?.content.clone();
    Ok(Made { shapes: vec![call.shape(0)?.to_vec()], content, ..Made::default() })
}

fn cast(call: &Call<'_>) -> Result<Made, Stop> {
    use crate::proto::element::is_real;
    let to_real = i32::try_from(call.int("to", 0)).is_ok_and(is_real);
    let convert = |number: &Number| match *number {
        Number::Whole(size) if to_real => size.number().map_or(*number, |value| Number::Real(value as f64)),
        Number::Real(real) if !to_real => Number::Whole(Size::fixed(real as i64)),
        other => other,
    };
    let content = call.tensor(0)?.content.as_ref().map(|content| content.iter().map(convert).collect());
    Ok(Made { shapes: vec![call.shape(0)?.to_vec()], content, ..Made::default() })
}

/// The same elements under other dimensions.
fn seen_as(call: &Call<'_>, shape: Vec<Size>) -> Result<Made, Stop> {
    let content = call.tensor(0)?.content.clone();
    Ok(Made { shapes: vec![shape], content, ..Made::default() })
}

fn reshape(call: &Call<'_>) -> Result<Made, Stop> {
    let from = call.shape(0)?;
    let wanted = match call.ints("shape") {
        Some(ints) => ints.iter().map(|&dim| Size::fixed(dim)).collect(),
        None => call.sizes(1)?,
    };
    let keep_zero = call.int("allowzero", 0) != 0;
    let mut shape = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (place, &dim) in wanted.iter().enumerate() {
        shape.push(match dim.number() {
            Some(0) if !keep_zero => match from.get(place) {
                Some(&dim) => dim,
                None => return wrong("it copies a dimension that its input does not have"),
            },
            Some(-1) if open.is_none() => {
                open = Some(place);
                Size::ONE
            }
            Some(number) if number < 0 => return wrong("more than one dimension is left open"),
            _ => dim,
        });
    }
    let misfit = || Stop::Wrong(format!("{} cannot be reshaped to {}", spelled(from), spelled(&wanted)));
    let (have, want) = (product_of(from)?, product_of(&shape)?);
    match open {
        Some(place) if have != Size::fixed(0) => {
            shape[place] = have.over(want).filter(|dim| dim.times(want) == Some(have)).ok_or_else(misfit)?;
        }
        Some(place) => shape[place] = Size::fixed(0),
        None if have != want => return Err(misfit()),
        None => {}
    }
    seen_as(call, shape)
}

fn flatten(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.shape(0)?;
    let place = match call.int("axis", 1) {
        end if end == dims.len() as i64 => dims.len(),
        place => axis(place, dims.len())?,
    };
    let (outer, inner) = dims.split_at(place);
    seen_as(call, vec![product_of(outer)?, product_of(inner)?])
}

fn squeeze(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.shape(0)?;
    let axes = match call.setting("axes", 1)? {
        Some(axes) => axes.iter().map(|&place| axis(place, dims.len())).collect::<Result<Vec<_>, _>>()?,
        None => (0..dims.len()).filter(|place| dims[*place] == Size::ONE).collect(),
    };
    if let Some(&place) = axes.iter().find(|place| dims[**place] != Size::ONE) {
        return wrong(format!("dimension {place} of {} is not 1", spelled(dims)));
    }
    let kept = dims.iter().enumerate().filter(|(place, _)| !axes.contains(place));
    seen_as(call, kept.map(|(_, &dim)| dim).collect())
}

fn unsqueeze(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.shape(0)?;
    let axes = call.setting("axes", 1)?.unwrap_or_default();
    let rank = dims.len() + axes.len();
    let places = axes.iter().map(|&place| axis(place, rank)).collect::<Result<Vec<_>, _>>()?;
    let mut rest = dims.iter();
    let dim = |place: usize| match places.contains(&place) {
        true => Some(Size::ONE),
        false => rest.next().copied(),
    };
    let twice = || Stop::Wrong("an axis is named twice".to_owned());
    let shape = (0..rank).map(dim).collect::<Option<Vec<_>>>().ok_or_else(twice)?;
    seen_as(call, shape)
}

fn transpose(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.shape(0)?;
    let order: Vec<i64> = match call.ints("perm") {
        Some(order) => order.to_vec(),
        None => (0..dims.len() as i64).rev().collect(),
    };
    if order.len() != dims.len() {
        return wrong(format!("it orders {} dimensions of {}", order.len(), spelled(dims)));
    }
    let places = order.iter().map(|&place| axis(place, dims.len())).collect::<Result<Vec<_>, _>>()?;
    Made::free(places.into_iter().map(|place| dims[place]).collect())
}

fn expand(call: &Call<'_>) -> Result<Made, Stop> {
    let shape = broadcast(call.shape(0)?, &call.sizes(1)?)?;
    // One element spread over few places is still known.
    let count = elements(&shape).and_then(Size::number).and_then(|count| usize::try_from(count).ok());
    let content = match (call.tensor(0)?.content.as_deref(), count) {
        (Some([only]), Some(count)) if count <= crate::tensor::MOST_CONTENT => Some(vec![*only; count]),
        (Some(content), Some(count)) if content.len() == count => Some(content.to_vec()),
        _ => None,
    };
    Ok(Made { shapes: vec![shape], content, ..Made::default() })
}

/// Squares of pixels become channels, or the reverse.
fn blocks(call: &Call<'_>) -> Result<Made, Stop> {
    let &[batch, channels, height, width] = call.shape(0)? else {
        return wrong("it reads an image of four dimensions");
    };
    let side = Size::fixed(call.int("blocksize", 1));
    let square = side.times(side).ok_or_else(overflow)?;
    let (divide, multiply) =
        (Size::over as fn(Size, Size) -> Option<Size>, Size::times as fn(Size, Size) -> Option<Size>);
    let (deep, flat) = if call.node.op == "SpaceToDepth" { (multiply, divide) } else { (divide, multiply) };
    let shape = (|| Some(vec![batch, deep(channels, square)?, flat(height, side)?, flat(width, side)?]))();
    Made::free(shape.ok_or_else(|| Stop::Wrong("its block does not divide its input".to_owned()))?)
}
