//! Recurrent layers and Fourier transforms: work that grows with the length of a sequence.

use super::{InferenceError, Inferred, OperatorCall, Rule, axis, overflow, product_of, scaled, wrong};
use crate::tensor::Size;
use stepcast_core::model::{Activation, CostKind};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "LSTM" => |call| recurrent(call, 4),
        "GRU" => |call| recurrent(call, 3),
        "RNN" => |call| recurrent(call, 1),
        "DFT" => transform,
        "STFT" => frames,
        _ => return None,
    })
}

/// At every step each gate multiplies the input and the state by matrices, adds two biases and bends the sum; the state
/// is combined with about as many products and sums as there are gates.
fn recurrent(call: &OperatorCall<'_>, gates: u64) -> Result<Inferred, InferenceError> {
    let &[first, second, width] = call.shape(0)? else {
        return wrong("it reads sequences of three dimensions");
    };
    let &[directions, _, hidden] = call.shape(2)? else {
        return wrong("its recurrent weight has three dimensions");
    };
    let batch_first = call.int("layout", 0) != 0;
    let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
    let both = width.plus(hidden).ok_or_else(overflow)?;
    let states = product_of(&[steps, batch, directions, hidden])?;
    let gated = scaled(states, gates)?;
    let product = scaled(gated.times(both).ok_or_else(overflow)?, 2)?;
    let activation = scaled(gated, Activation::Sigmoid.operations())?;
    let last = if batch_first { vec![batch, directions, hidden] } else { vec![directions, batch, hidden] };
    let all = if batch_first {
        vec![batch, steps, directions, hidden]
    } else {
        vec![steps, directions, batch, hidden]
    };
    let mut shapes = vec![all];
    shapes.resize(call.node.outputs.len().max(1), last);
    let made = Inferred { shapes, ..Inferred::default() }.with(CostKind::MultiplyAdd, product);
    let made = if call.has(3) { made.with(CostKind::Bias, scaled(gated, 2)?) } else { made };
    Ok(made.with(CostKind::Activation, activation).with(CostKind::Elementwise, gated))
}

/// Operations of a transform for each of its n complex numbers: 5·log₂ n (Cooley and Tukey 1965).
fn butterflies(length: i64) -> u64 {
    ((5.0 * (length as f64).log2()).ceil() as u64).max(1)
}

/// A transform of each frame of a signal, after a window.
fn frames(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let [batch, signal, ..] = call.shape(0)? else { return wrong("it reads signals") };
    let single = |index: usize| match call.wholes(index)?[..] {
        [number] if number > 0 => Ok(number),
        _ => wrong("a length of its frames is not a positive number"),
    };
    let signal = signal
        .number()
        .ok_or_else(|| InferenceError::Unknown("the length of its signal is not known".to_owned()))?;
    let length = match (call.has(3), call.has(2)) {
        (true, _) => single(3)?,
        (false, true) => call.shape(2)?.first().and_then(|dim| dim.number()).unwrap_or(signal),
        (false, false) => signal,
    };
    if length > signal || length <= 0 {
        return wrong(format!("a frame of {length} does not fit into a signal of {signal}"));
    }
    let count = Size::fixed((signal - length) / single(1)? + 1);
    let all = product_of(&[*batch, count, Size::fixed(length)])?;
    let bins = if call.int("onesided", 1) != 0 { length / 2 + 1 } else { length };
    let made = Inferred::free(vec![*batch, count, Size::fixed(bins), Size::fixed(2)])?;
    let windowed = if call.has(2) { made.with(CostKind::Elementwise, all) } else { made };
    Ok(windowed.with(CostKind::MultiplyAdd, scaled(all, butterflies(length))?))
}

fn transform(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let dims = call.shape(0)?;
    let rank = dims.len();
    let given = if call.has(2) { call.wholes(2)?.first().copied() } else { None };
    let place = axis(given.unwrap_or_else(|| call.int("axis", if call.opset < 20 { 1 } else { -2 })), rank)?;
    let mut shape = dims.to_vec();
    if call.has(1)
        && let [length] = call.sizes(1)?[..]
    {
        shape[place] = length;
    }
    let length = shape[place].number().filter(|length| *length > 0);
    let length = length
        .ok_or_else(|| InferenceError::Unknown("the length of its transform is not known".to_owned()))?;
    if let Some(last) = shape.last_mut() {
        *last = Size::ONE;
    }
    let amount = scaled(product_of(&shape)?, butterflies(length))?;
    if call.int("onesided", 0) != 0 {
        shape[place] = Size::fixed(length / 2 + 1);
    }
    if let Some(last) = shape.last_mut() {
        *last = Size::fixed(2);
    }
    Ok(Inferred::free(shape)?.with(CostKind::MultiplyAdd, amount))
}
