//! Tensors that need no data: constants, ranges, random numbers.

use super::{InferenceError, Inferred, OperatorCall, Rule, overflow, wrong};
use crate::proto::TensorProto;
use crate::tensor::{MOST_CONTENT, Number, Size, elements, stored_content, stored_shape};
use stepcast_core::model::CostKind;

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

fn constant(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let whole = |value: i64| Number::Whole(Size::fixed(value));
    let real = |value: f32| Number::Real(f64::from(value));
    let (shape, content) = if let Some(tensor) = call.attribute("value").and_then(|a| a.tensor.as_ref()) {
        let negative = || InferenceError::Wrong("a dimension of its tensor is negative".to_owned());
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
        return Err(InferenceError::Unknown("it holds no tensor of numbers".to_owned()));
    };
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

fn list(numbers: impl ExactSizeIterator<Item = Number>) -> (Vec<Size>, Option<Vec<Number>>) {
    let shape = vec![Size::fixed(numbers.len() as i64)];
    (shape, (numbers.len() <= MOST_CONTENT).then(|| numbers.collect()))
}

fn filled(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let shape = call.sizes(0)?;
    let value = call.attribute("value").and_then(|attribute| attribute.tensor.as_ref());
    let value = value.map_or_else(|| Some(Number::Real(0.0)), only);
    let count = elements(&shape).and_then(Size::number).and_then(|count| usize::try_from(count).ok());
    let content = value.zip(count.filter(|count| *count <= MOST_CONTENT));
    let content = content.map(|(value, count)| vec![value; count]);
    Ok(Inferred { shapes: vec![shape], content, ..Inferred::default() })
}

fn only(tensor: &TensorProto) -> Option<Number> {
    stored_content(tensor).and_then(|content| content.first().copied())
}

fn shape(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let rank = dims.len() as i64;
    let clamp = |value: i64| (if value < 0 { value.saturating_add(rank) } else { value }).clamp(0, rank);
    let (start, end) = (clamp(call.int("start", 0)), clamp(call.int("end", rank)));
    let kept = dims.get(start as usize..end.max(start) as usize).unwrap_or_default();
    let content = kept.iter().map(|&dim| Number::Whole(dim)).collect();
    let shapes = vec![vec![Size::fixed(kept.len() as i64)]];
    Ok(Inferred { shapes, content: Some(content), ..Inferred::default() })
}

fn size(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let content = Some(vec![Number::Whole(call.elements(0)?)]);
    Ok(Inferred { shapes: vec![Vec::new()], content, ..Inferred::default() })
}

fn range(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
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
        return Inferred::free(vec![end]);
    }
    let (Some(start), Some(end), Some(step)) = (start.real(), end.real(), step.real()) else {
        return Err(InferenceError::Unknown("its bounds depend on the batch".to_owned()));
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
    Ok(Inferred { shapes: vec![vec![Size::fixed(count as i64)]], content, ..Inferred::default() })
}

fn random(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.ints("shape").unwrap_or_default();
    Inferred::free(dims.iter().map(|&dim| Size::fixed(dim.max(0))).collect())
}

fn like(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    Ok(Inferred::free(call.shape(0)?.to_vec())?.with(CostKind::Elementwise, call.elements(0)?))
}

fn drawn(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let batch = call.shape(0)?.first().copied().unwrap_or(Size::ONE);
    let made = Inferred::free(vec![batch, Size::fixed(call.int("sample_size", 1).max(1))])?;
    Ok(made.with(CostKind::Elementwise, call.elements(0)?))
}

fn window(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    match call.sizes(0)?[..] {
        [length] => Inferred::free(vec![length]),
        _ => wrong("its length is not a single number"),
    }
}
