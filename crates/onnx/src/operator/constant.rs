//! Tensors that need no data: constants, ranges, random numbers.

use super::call::{Call, Kind, Made, Rule, Stop, overflow, wrong};
use crate::proto::TensorProto;
use crate::size::{Size, elements};
use crate::tensor::{MOST_CONTENT, Number, stored_content, stored_shape};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Constant" => constant,
        "ConstantOfShape" => filled,
        "Shape" => shape,
        "Size" => size,
        "Range" => range,
        "RandomNormal" | "RandomUniform" => random,
        "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" | "EyeLike" => like,
        "Multinomial" => drawn,
        "BlackmanWindow" | "HannWindow" | "HammingWindow" => window,
        _ => return None,
    })
}

fn constant(call: &Call<'_>) -> Result<Made, Stop> {
    let whole = |value: i64| Number::Whole(Size::fixed(value));
    let real = |value: f32| Number::Real(f64::from(value));
    let (shape, content) = if let Some(tensor) = call.attribute("value").and_then(|a| a.tensor.as_ref()) {
        let negative = || Stop::Wrong("a dimension of its tensor is negative".to_owned());
        (stored_shape(tensor).ok_or_else(negative)?, stored_content(tensor))
    } else if let Some(attribute) = call.attribute("value_int") {
        (Vec::new(), Some(vec![whole(attribute.int)]))
    } else if let Some(attribute) = call.attribute("value_float") {
        (Vec::new(), Some(vec![real(attribute.float)]))
    } else if let Some(attribute) = call.attribute("value_ints") {
        list(attribute.ints.iter().map(|&value| whole(value)))
    } else if let Some(attribute) = call.attribute("value_floats") {
        list(attribute.floats.iter().map(|&value| real(value)))
    } else {
        return Err(Stop::Unknown("it holds no tensor of numbers".to_owned()));
    };
    Ok(Made { shapes: vec![shape], content, ..Made::default() })
}

fn list(numbers: impl ExactSizeIterator<Item = Number>) -> (Vec<Size>, Option<Vec<Number>>) {
    let shape = vec![Size::fixed(numbers.len() as i64)];
    (shape, (numbers.len() <= MOST_CONTENT).then(|| numbers.collect()))
}

fn filled(call: &Call<'_>) -> Result<Made, Stop> {
    let shape = call.sizes(0)?;
    let value = call.attribute("value").and_then(|attribute| attribute.tensor.as_ref());
    let value = value.map_or_else(|| Some(Number::Real(0.0)), only);
    let count = elements(&shape).and_then(Size::number).and_then(|count| usize::try_from(count).ok());
    let content = value.zip(count.filter(|count| *count <= MOST_CONTENT));
    let content = content.map(|(value, count)| vec![value; count]);
    Ok(Made { shapes: vec![shape], content, ..Made::default() })
}

fn only(tensor: &TensorProto) -> Option<Number> {
    stored_content(tensor).and_then(|content| content.first().copied())
}

fn shape(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.shape(0)?;
    let rank = dims.len() as i64;
    let clamp = |value: i64| (if value < 0 { value.saturating_add(rank) } else { value }).clamp(0, rank);
    let (start, end) = (clamp(call.int("start", 0)), clamp(call.int("end", rank)));
    let kept = dims.get(start as usize..end.max(start) as usize).unwrap_or_default();
    let content = kept.iter().map(|&dim| Number::Whole(dim)).collect();
    let shapes = vec![vec![Size::fixed(kept.len() as i64)]];
    Ok(Made { shapes, content: Some(content), ..Made::default() })
}

fn size(call: &Call<'_>) -> Result<Made, Stop> {
    let content = Some(vec![Number::Whole(call.elements(0)?)]);
    Ok(Made { shapes: vec![Vec::new()], content, ..Made::default() })
}

fn range(call: &Call<'_>) -> Result<Made, Stop> {
    let number = |index: usize| match call.content(index)? {
        [number] => Ok(*number),
        _ => wrong("its bounds are not single numbers"),
    };
    let (start, end, step) = (number(0)?, number(1)?, number(2)?);
    if let Number::Whole(end) = end
        && end.power() > 0
        && start.real() == Some(0.0)
        && step.real() == Some(1.0)
    {
        return Made::free(vec![end]);
    }
    let (Some(start), Some(end), Some(step)) = (start.real(), end.real(), step.real()) else {
        return Err(Stop::Unknown("its bounds depend on the batch".to_owned()));
    };
    if step == 0.0 {
        return wrong("its step is 0");
    }
    let count = ((end - start) / step).ceil().max(0.0);
    if count > i64::MAX as f64 / 2.0 || count.is_nan() {
        return Err(overflow());
    }
    let content = (count <= MOST_CONTENT as f64).then(|| {
        let at = |place: usize| start + place as f64 * step;
        (0..count as usize).map(|place| Number::Whole(Size::fixed(at(place) as i64))).collect()
    });
    Ok(Made { shapes: vec![vec![Size::fixed(count as i64)]], content, ..Made::default() })
}

fn random(call: &Call<'_>) -> Result<Made, Stop> {
    let dims = call.ints("shape").unwrap_or_default();
    Made::free(dims.iter().map(|&dim| Size::fixed(dim.max(0))).collect())
}

fn like(call: &Call<'_>) -> Result<Made, Stop> {
    Ok(Made::free(call.shape(0)?.to_vec())?.with(Kind::Elementwise, call.elements(0)?))
}

fn drawn(call: &Call<'_>) -> Result<Made, Stop> {
    let batch = call.shape(0)?.first().copied().unwrap_or(Size::ONE);
    let made = Made::free(vec![batch, Size::fixed(call.int("sample_size", 1).max(1))])?;
    Ok(made.with(Kind::Elementwise, call.elements(0)?))
}

fn window(call: &Call<'_>) -> Result<Made, Stop> {
    match call.sizes(0)?[..] {
        [length] => Made::free(vec![length]),
        _ => wrong("its length is not a single number"),
    }
}
