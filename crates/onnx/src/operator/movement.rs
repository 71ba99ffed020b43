//! Operators that only move elements: reshaping, transposing, casting, taking parts, putting parts together.

use super::{InferenceError, Inferred, OperatorCall, Rule, axis, broadcast, overflow, product_of, wrong};
use crate::tensor::{MOST_CONTENT, Number, Size, elements, spelled};

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
        "Gather" => gather,
        "GatherElements" => like_second,
        "GatherND" => gather_nd,
        "Slice" => slice,
        "Split" => split,
        "SplitToSequence" => split_to_sequence,
        "Concat" | "ConcatFromSequence" => concat,
        "Pad" => pad,
        "Tile" => tile,
        "ScatterND" | "ScatterElements" | "Scatter" | "TensorScatter" => like_first,
        "OneHot" => one_hot,
        "Compress" | "NonZero" | "Unique" | "NonMaxSuppression" => depends_on_content,
        _ => return None,
    })
}

fn same(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let content = call.tensor(0)?.content.clone();
    Ok(Inferred { shapes: vec![call.shape(0)?.to_vec()], content, ..Inferred::default() })
}

fn cast(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    use crate::proto::element::is_real;
    let to_real = i32::try_from(call.int("to", 0)).is_ok_and(is_real);
    let convert = |number: &Number| match *number {
        Number::Whole(size) if to_real => size.number().map_or(*number, |value| Number::Real(value as f64)),
        Number::Real(real) if !to_real => Number::Whole(Size::fixed(real as i64)),
        other => other,
    };
    let content = call.tensor(0)?.content.as_ref().map(|content| content.iter().map(convert).collect());
    Ok(Inferred { shapes: vec![call.shape(0)?.to_vec()], content, ..Inferred::default() })
}

/// The elements of the input under other dimensions.
fn seen_as(call: &OperatorCall<'_>, shape: Vec<Size>) -> Result<Inferred, InferenceError> {
    let content = call.tensor(0)?.content.clone();
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

fn reshape(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
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
    let misfit =
        || InferenceError::Wrong(format!("{} cannot be reshaped to {}", spelled(from), spelled(&wanted)));
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

fn flatten(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let place = match call.int("axis", 1) {
        end if end == dims.len() as i64 => dims.len(),
        place => axis(place, dims.len())?,
    };
    let (outer, inner) = dims.split_at(place);
    seen_as(call, vec![product_of(outer)?, product_of(inner)?])
}

fn squeeze(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
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

fn unsqueeze(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let axes = call.setting("axes", 1)?.unwrap_or_default();
    let rank = dims.len() + axes.len();
    let places = axes.iter().map(|&place| axis(place, rank)).collect::<Result<Vec<_>, _>>()?;
    let mut rest = dims.iter();
    let dim = |place: usize| match places.contains(&place) {
        true => Some(Size::ONE),
        false => rest.next().copied(),
    };
    let twice = || InferenceError::Wrong("an axis is named twice".to_owned());
    let shape = (0..rank).map(dim).collect::<Option<Vec<_>>>().ok_or_else(twice)?;
    seen_as(call, shape)
}

fn transpose(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let order: Vec<i64> = match call.ints("perm") {
        Some(order) => order.to_vec(),
        None => (0..dims.len() as i64).rev().collect(),
    };
    if order.len() != dims.len() {
        return wrong(format!("it orders {} dimensions of {}", order.len(), spelled(dims)));
    }
    let places = order.iter().map(|&place| axis(place, dims.len())).collect::<Result<Vec<_>, _>>()?;
    Inferred::free(places.into_iter().map(|place| dims[place]).collect())
}

fn expand(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let shape = broadcast(call.shape(0)?, &call.sizes(1)?)?;
    // One element spread over few places is still known.
    let count = elements(&shape).and_then(Size::number).and_then(|count| usize::try_from(count).ok());
    let content = match (call.tensor(0)?.content.as_deref(), count) {
        (Some([only]), Some(count)) if count <= crate::tensor::MOST_CONTENT => Some(vec![*only; count]),
        (Some(content), Some(count)) if content.len() == count => Some(content.to_vec()),
        _ => None,
    };
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

/// Squares of pixels become channels, or the reverse.
fn blocks(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let &[batch, channels, height, width] = call.shape(0)? else {
        return wrong("it reads an image of four dimensions");
    };
    let side = Size::fixed(call.int("blocksize", 1));
    let square = side.times(side).ok_or_else(overflow)?;
    let (divide, multiply) =
        (Size::over as fn(Size, Size) -> Option<Size>, Size::times as fn(Size, Size) -> Option<Size>);
    let (deep, flat) = if call.node.op == "SpaceToDepth" { (multiply, divide) } else { (divide, multiply) };
    let shape = (|| Some(vec![batch, deep(channels, square)?, flat(height, side)?, flat(width, side)?]))();
    Inferred::free(
        shape.ok_or_else(|| InferenceError::Wrong("its block does not divide its input".to_owned()))?,
    )
}

fn like_first(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    Inferred::free(call.shape(0)?.to_vec())
}

fn like_second(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    Inferred::free(call.shape(1)?.to_vec())
}

fn depends_on_content(_: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    Err(InferenceError::Unknown("how much it puts out depends on the samples".to_owned()))
}

fn gather(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (dims, indices) = (call.shape(0)?, call.shape(1)?);
    let place = axis(call.int("axis", 0), dims.len())?;
    let shape = [&dims[..place], indices, &dims[place + 1..]].concat();
    let picked = |content: &[Number]| {
        let places = call.wholes(1).ok()?;
        places.iter().map(|&at| content.get(axis(at, content.len()).ok()?).copied()).collect()
    };
    let content = call.tensor(0)?.content.as_deref().filter(|_| dims.len() == 1).and_then(picked);
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

fn gather_nd(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (dims, indices) = (call.shape(0)?, call.shape(1)?);
    let batch = usize::try_from(call.int("batch_dims", 0)).unwrap_or(0);
    let Some((depth, outer)) = indices.split_last() else { return wrong("its indices have no dimension") };
    let depth = depth.number().and_then(|depth| usize::try_from(depth).ok());
    let depth =
        depth.ok_or_else(|| InferenceError::Unknown("the length of its indices is not known".to_owned()))?;
    let Some(rest) = batch.checked_add(depth).and_then(|first| dims.get(first..)) else {
        return wrong(format!("indices of length {depth} exceed the rank of {}", spelled(dims)));
    };
    Inferred::free([outer, rest].concat())
}

fn slice(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let bounds = |name: &str, index: usize| match call.ints(name) {
        Some(ints) => Ok(ints.iter().map(|&value| Size::fixed(value)).collect()),
        None => call.sizes(index),
    };
    let (starts, ends) = (bounds("starts", 1)?, bounds("ends", 2)?);
    let axes = call.setting("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = if call.has(4) { call.wholes(4)? } else { vec![1; starts.len()] };
    let mut shape = dims.to_vec();
    let mut content = call.tensor(0)?.content.clone().filter(|_| dims.len() == 1);
    for (((&start, &end), &place), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let place = axis(place, dims.len())?;
        let dim = dims[place];
        let (Some(length), Some(from), Some(to)) = (dim.number(), start.number(), end.number()) else {
            shape[place] = open_slice(dim, start, end, step)?;
            content = None;
            continue;
        };
        let picked = picked(length, from, to, step)?;
        shape[place] = Size::fixed(picked.1);
        content = content.and_then(|content| pick(&content, picked, step));
    }
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

/// First place and number of places of a slice.
fn picked(length: i64, from: i64, to: i64, step: i64) -> Result<(i64, i64), InferenceError> {
    let from_end = |value: i64| if value < 0 { value.saturating_add(length) } else { value };
    match step {
        0 => wrong("its step is 0"),
        1.. => {
            let (from, to) = (from_end(from).clamp(0, length), from_end(to).clamp(0, length));
            Ok((from, (to - from).max(0).div_euclid(step) + i64::from((to - from).max(0) % step != 0)))
        }
        _ => {
            let (from, to) = (from_end(from).clamp(-1, length - 1), from_end(to).clamp(-1, length - 1));
            let (span, step) = ((from - to).max(0), step.saturating_neg());
            Ok((from, span / step + i64::from(span % step != 0)))
        }
    }
}

fn pick(content: &[Number], (first, count): (i64, i64), step: i64) -> Option<Vec<Number>> {
    let at = |place: i64| usize::try_from(first.checked_add(place.checked_mul(step)?)?).ok();
    (0..count).map(|place| at(place).and_then(|at| content.get(at)).copied()).collect()
}

/// A slice where the batch has a part: all of a dimension, or its first places.
fn open_slice(dim: Size, start: Size, end: Size, step: i64) -> Result<Size, InferenceError> {
    let whole = end == dim || end.number().is_some_and(|end| end >= i64::from(i32::MAX));
    match (start.number(), step) {
        (Some(0), 1) if whole => Ok(dim),
        (Some(0), 1) if dim.number().is_none() && end.number().is_some_and(|end| end > 0) => Ok(end),
        (Some(0), 1) if end.power() > 0 => Ok(end),
        _ => Err(InferenceError::Unknown(format!("which part of {dim} places it takes is not known"))),
    }
}

fn pieces(call: &OperatorCall<'_>, dim: Size, count: usize) -> Result<Vec<Size>, InferenceError> {
    if let Some(sizes) = call.ints("split") {
        return Ok(sizes.iter().map(|&size| Size::fixed(size)).collect());
    }
    if call.has(1) {
        return call.sizes(1);
    }
    let even = Size::count(count as u64).ok_or_else(overflow)?;
    if let Some(piece) = dim.over(even).filter(|piece| piece.times(even) == Some(dim)) {
        return Ok(vec![piece; count]);
    }
    let unknown = || InferenceError::Unknown(format!("how {dim} splits into {count} is not known"));
    let dim = dim.number().ok_or_else(unknown)?;
    let piece = dim.div_euclid(count.max(1) as i64) + 1;
    Ok((0..count as i64).map(|place| Size::fixed((dim - place * piece).clamp(0, piece))).collect())
}

fn split(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let place = axis(call.int("axis", 0), dims.len())?;
    let count = call.node.outputs.len();
    let sizes = pieces(call, dims[place], count)?;
    if sizes.len() != count {
        return wrong(format!("it has {count} outputs, and {} sizes for them", sizes.len()));
    }
    let shape = |&size: &Size| {
        let mut shape = dims.to_vec();
        shape[place] = size;
        shape
    };
    let shapes: Vec<Vec<Size>> = sizes.iter().map(shape).collect();
    Ok(Inferred { shapes, ..Inferred::default() })
}

/// A sequence is followed where all its tensors have one shape: it has the shape of one of them.
fn split_to_sequence(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let place = axis(call.int("axis", 0), dims.len())?;
    let sizes = if call.has(1) { call.sizes(1)? } else { vec![Size::ONE] };
    // A list of sizes, or one size for all pieces.
    let single = call.has(1) && call.shape(1)?.is_empty();
    let (Some(&size), true) = (sizes.first(), sizes.windows(2).all(|pair| pair[0] == pair[1])) else {
        return Err(InferenceError::Unknown("it makes tensors of several shapes".to_owned()));
    };
    if single && size.times(dims[place].over(size).ok_or_else(overflow)?) != Some(dims[place]) {
        return Err(InferenceError::Unknown("its last piece is shorter than the others".to_owned()));
    }
    let mut shape = dims.to_vec();
    shape[place] = size;
    if !call.has(1) && call.int("keepdims", 1) == 0 {
        shape.remove(place);
    }
    Inferred::free(shape)
}

fn concat(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let mut shape = call.shape(0)?.to_vec();
    let place = axis(call.int("axis", 0), shape.len())?;
    for index in 1..call.inputs.len() {
        let more = call.shape(index)?;
        let fits = more.len() == shape.len()
            && more.iter().zip(&shape).enumerate().all(|(at, (a, b))| at == place || a == b);
        if !fits {
            return wrong(format!("{} and {} cannot be joined", spelled(&shape), spelled(more)));
        }
        let both = shape[place].plus(more[place]);
        shape[place] =
            both.ok_or_else(|| InferenceError::Unknown("it joins samples with something else".to_owned()))?;
    }
    let contents = call.inputs.iter().map(|input| input.and_then(|tensor| tensor.content.as_deref()));
    let few = matches!(shape[..], [length] if length.number().is_some_and(|n| n <= MOST_CONTENT as i64));
    let content = contents.collect::<Option<Vec<_>>>().filter(|_| few).map(|all| all.concat());
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

fn pad(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let mut shape = call.shape(0)?.to_vec();
    let pads = call.setting("pads", 1)?.unwrap_or_default();
    let axes = if call.has(3) { call.wholes(3)? } else { (0..shape.len() as i64).collect() };
    if pads.len() != 2 * axes.len() {
        return wrong(format!("{} numbers say how {} dimensions are padded", pads.len(), axes.len()));
    }
    let (before, after) = pads.split_at(axes.len());
    for ((&place, &before), &after) in axes.iter().zip(before).zip(after) {
        let place = axis(place, shape.len())?;
        let more = before.checked_add(after).map(Size::fixed).ok_or_else(overflow)?;
        shape[place] = shape[place].plus(more).filter(|dim| dim.factor() >= 0).ok_or_else(overflow)?;
    }
    Inferred::free(shape)
}

fn tile(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (dims, times) = (call.shape(0)?, call.sizes(1)?);
    if dims.len() != times.len() {
        return wrong(format!("{} numbers say how often {} is repeated", times.len(), spelled(dims)));
    }
    let shape = dims.iter().zip(times).map(|(dim, times)| dim.times(times)).collect::<Option<_>>();
    Inferred::free(shape.ok_or_else(overflow)?)
}

fn one_hot(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let depth = match call.sizes(1)?[..] {
        [depth] => depth,
        _ => return wrong("its depth is not a single number"),
    };
    let place = axis(call.int("axis", -1), dims.len() + 1)?;
    let mut shape = broadcast(dims, &[])?;
    shape.insert(place, depth);
    Inferred::free(shape)
}
