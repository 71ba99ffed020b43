//! Shape and cost inference: the output shape of each operation and its cost per sample.

use super::cost::Cost;
use super::op::{Activation, Conv2d, Norm, Op};
use super::shape::Window;
use super::shape::{Shape, ShapeError};

type Inferred = Result<(Shape, Cost), ShapeError>;

/// Shape of the output and cost of `op` on these inputs.
pub(super) fn infer(op: &Op, inputs: &[&Shape]) -> Inferred {
    match *op {
        Op::Input => Err(ShapeError::in_inputs("an input reads no other layer", "give its shape instead")),
        Op::Add => sum(inputs),
        Op::Concat => concat(inputs),
        Op::Multiply => product(inputs),
        Op::Attention { heads, causal } => attention(inputs, heads, causal),
        Op::Counted(_) => {
            Err(ShapeError::in_field("shape", "its shape is given, not inferred", "give its shape"))
        }
        _ => match inputs {
            [input] => unary(op, input),
            _ => Err(ShapeError::in_inputs(
                format!("it reads {} layers, not one", inputs.len()),
                "name one input layer",
            )),
        },
    }
}

fn unary(op: &Op, input: &Shape) -> Inferred {
    match *op {
        Op::Conv2d(conv) => convolution(&conv, input),
        Op::Linear { out, bias, tied } => linear(out, bias, tied, input),
        Op::Pool { kernel, stride, padding, ceil, .. } => {
            pool(Window { kernel, stride, padding, dilation: (1, 1), ceil }, input)
        }
        Op::AdaptivePool { size, .. } => adaptive_pool(size, input),
        Op::Normalise(norm) => normalise(norm, input),
        Op::Activate(activation) => {
            let operations = times(&[activation.operations(), input.elements()])?;
            Ok((input.clone(), Cost { activation: operations, ..Cost::default() }))
        }
        Op::Embedding { count, width, .. } => embedding(count, width, input),
        Op::PositionEmbedding { count } => position_embedding(count, input),
        Op::ClassToken => {
            let (tokens, width) = sequence(input)?;
            let tokens = tokens.checked_add(1).ok_or_else(ShapeError::overflow)?;
            Ok((shape(&[tokens, width])?, Cost { weights: width, ..Cost::default() }))
        }
        Op::Flatten => free(&[input.elements()]),
        Op::Dropout => {
            Ok((input.clone(), Cost { elementwise: times(&[2, input.elements()])?, ..Cost::default() }))
        }
        Op::ToSequence => {
            let (channels, height, width) = image(input)?;
            free(&[times(&[height, width])?, channels])
        }
        Op::SelectToken { index } => match sequence(input)? {
            (tokens, width) if index < tokens => free(&[width]),
            (tokens, _) => Err(ShapeError::in_field(
                "index",
                format!("there is no token {index} in a sequence of {tokens}"),
                "tokens count from 0",
            )),
        },
        Op::Shortcut { out, stride } => shortcut(out, stride, input),
        Op::Input | Op::Add | Op::Concat | Op::Multiply | Op::Attention { .. } | Op::Counted(_) => {
            Err(ShapeError::in_inputs("it does not read a single layer", "name its inputs"))
        }
    }
}

fn convolution(conv: &Conv2d, input: &Shape) -> Inferred {
    let (channels, height, width) = image(input)?;
    positive("out", conv.out)?;
    positive("groups", conv.groups)?;
    for (what, count) in [("input", channels), ("output", conv.out)] {
        if count % conv.groups != 0 {
            return Err(ShapeError::in_field(
                "groups",
                format!("{} groups do not divide the {count} {what} channels", conv.groups),
                "use a number of groups that divides both numbers of channels",
            ));
        }
    }
    let Conv2d { kernel, stride, padding, dilation, .. } = *conv;
    let (out_height, out_width) =
        Window { kernel, stride, padding, dilation, ceil: false }.output((height, width))?;
    let output = shape(&[conv.out, out_height, out_width])?;
    let per_output = times(&[channels / conv.groups, kernel.0, kernel.1])?;
    let cost = Cost {
        multiply_add: times(&[2, per_output, output.elements()])?,
        bias: if conv.bias { output.elements() } else { 0 },
        weights: times(&[conv.out, per_output])?,
        biases: if conv.bias { conv.out } else { 0 },
        ..Cost::default()
    };
    Ok((output, cost))
}

fn linear(out: u64, bias: bool, tied: bool, input: &Shape) -> Inferred {
    positive("out", out)?;
    let (dims, features) = match *input.dims() {
        [features] => (vec![out], features),
        [tokens, features] => (vec![tokens, out], features),
        _ => {
            return Err(ShapeError::in_inputs(
                format!("a linear layer reads features or a sequence, not {input}"),
                "put a flatten layer before it",
            ));
        }
    };
    let output = shape(&dims)?;
    let cost = Cost {
        multiply_add: times(&[2, features, output.elements()])?,
        bias: if bias { output.elements() } else { 0 },
        weights: if tied { 0 } else { times(&[features, out])? },
        biases: if bias { out } else { 0 },
        ..Cost::default()
    };
    Ok((output, cost))
}

fn pool(window: Window, input: &Shape) -> Inferred {
    let (channels, height, width) = image(input)?;
    let (out_height, out_width) = window.output((height, width))?;
    let output = shape(&[channels, out_height, out_width])?;
    let pooling = times(&[window.kernel.0, window.kernel.1, output.elements()])?;
    Ok((output, Cost { pooling, ..Cost::default() }))
}

/// Output `i` of `out` covers the elements from ⌊i·n/out⌋ to ⌈(i+1)·n/out⌉ (PyTorch); over all `i` these are
/// n + out − gcd(n, out) elements.
fn adaptive_pool(size: (u64, u64), input: &Shape) -> Inferred {
    let (channels, height, width) = image(input)?;
    positive("size", size.0.min(size.1))?;
    let output = shape(&[channels, size.0, size.1])?;
    let covered = |n: u64, out: u64| n.checked_add(out - gcd(n, out)).ok_or_else(ShapeError::overflow);
    let pooling = times(&[channels, covered(height, size.0)?, covered(width, size.1)?])?;
    Ok((output, Cost { pooling, ..Cost::default() }))
}

fn normalise(norm: Norm, input: &Shape) -> Inferred {
    let dims = input.dims();
    let (parameters, buffers) = match norm {
        Norm::Batch { affine } => {
            let channels = dims.first().copied().unwrap_or(0);
            let buffers = times(&[2, channels])?.checked_add(1).ok_or_else(ShapeError::overflow)?;
            (if affine { channels } else { 0 }, buffers)
        }
        Norm::Layer { affine } => (if affine { dims.last().copied().unwrap_or(0) } else { 0 }, 0),
        Norm::LocalResponse { depth } => {
            positive("depth", depth)?;
            image(input)?;
            (0, 0)
        }
    };
    let normalisation = times(&[norm.operations(), input.elements()])?;
    Ok((
        input.clone(),
        Cost { normalisation, weights: parameters, biases: parameters, buffers, ..Cost::default() },
    ))
}

fn embedding(count: u64, width: u64, input: &Shape) -> Inferred {
    positive("count", count)?;
    positive("width", width)?;
    let [tokens] = *input.dims() else {
        return Err(ShapeError::in_inputs(
            format!("an embedding reads one dimension of tokens, not {input}"),
            "give the model an input of one dimension, such as input = [128]",
        ));
    };
    Ok((shape(&[tokens, width])?, Cost { weights: times(&[count, width])?, ..Cost::default() }))
}

fn position_embedding(count: u64, input: &Shape) -> Inferred {
    let (tokens, width) = sequence(input)?;
    if tokens > count {
        return Err(ShapeError::in_field(
            "count",
            format!("{count} positions are fewer than the {tokens} tokens of the sequence"),
            "raise count or shorten the sequence",
        ));
    }
    let cost = Cost { elementwise: input.elements(), weights: times(&[count, width])?, ..Cost::default() };
    Ok((input.clone(), cost))
}

fn attention(inputs: &[&Shape], heads: u64, causal: bool) -> Inferred {
    positive("heads", heads)?;
    let (queries, keys, width, value_width) = match inputs {
        [packed] => match sequence(packed)? {
            (tokens, packed) if packed % 3 == 0 => (tokens, tokens, packed / 3, packed / 3),
            (_, packed) => {
                return Err(ShapeError::in_inputs(
                    format!("a width of {packed} does not hold queries, keys and values of one width"),
                    "name three inputs, or one whose width is three times that of the attention",
                ));
            }
        },
        [q, k, v] => {
            let ((queries, width), (keys, key_width), (values, value_width)) =
                (sequence(q)?, sequence(k)?, sequence(v)?);
            if width != key_width || keys != values {
                return Err(ShapeError::in_inputs(
                    format!("queries {q}, keys {k} and values {v} do not match"),
                    "queries and keys need one width, keys and values one length",
                ));
            }
            (queries, keys, width, value_width)
        }
        _ => {
            return Err(ShapeError::in_inputs(
                format!("an attention reads {} layers", inputs.len()),
                "name three inputs (queries, keys, values), or one that holds all three",
            ));
        }
    };
    if width % heads != 0 || value_width % heads != 0 {
        return Err(ShapeError::in_field(
            "heads",
            format!("{heads} heads do not divide the width {width}"),
            "use a number of heads that divides the width",
        ));
    }
    let pairs = if causal { causal_pairs(queries, keys)? } else { times(&[queries, keys])? };
    let widths = width.checked_add(value_width).ok_or_else(ShapeError::overflow)?;
    let cost = Cost {
        multiply_add: times(&[2, pairs, widths])?,
        activation: times(&[Activation::Softmax.operations(), heads, pairs])?,
        elementwise: times(&[heads, pairs])?,
        ..Cost::default()
    };
    Ok((shape(&[queries, value_width])?, cost))
}

/// Number of query-key pairs in causal attention; with equally many of both, query i attends to the first i keys.
fn causal_pairs(queries: u64, keys: u64) -> Result<u64, ShapeError> {
    if queries != keys {
        return Err(ShapeError::in_field(
            "causal",
            format!("{queries} queries and {keys} keys are not places of one sequence"),
            "leave causal out where the keys come from elsewhere",
        ));
    }
    let twice = u128::from(queries) * (u128::from(queries) + 1);
    u64::try_from(twice / 2).map_err(|_| ShapeError::overflow())
}

fn sum(inputs: &[&Shape]) -> Inferred {
    let (first, others) = several(inputs, "add")?;
    if let Some(other) = others.iter().find(|other| **other != first) {
        return Err(ShapeError::in_inputs(
            format!("{first} and {other} cannot be added"),
            "bring all inputs to one shape first, for instance with a 1×1 convolution",
        ));
    }
    let elementwise = times(&[others.len() as u64, first.elements()])?;
    Ok((first.clone(), Cost { elementwise, ..Cost::default() }))
}

fn concat(inputs: &[&Shape]) -> Inferred {
    let (first, others) = several(inputs, "concat")?;
    let mut dims = first.dims().to_vec();
    for other in others {
        if other.dims().get(1..) != first.dims().get(1..) {
            return Err(ShapeError::in_inputs(
                format!("{first} and {other} cannot be joined"),
                "all dimensions but the first have to be the same",
            ));
        }
        for (dim, more) in dims.iter_mut().zip(other.dims()).take(1) {
            *dim = dim.checked_add(*more).ok_or_else(ShapeError::overflow)?;
        }
    }
    free(&dims)
}

fn product(inputs: &[&Shape]) -> Inferred {
    let [first, second] = *inputs else {
        return Err(ShapeError::in_inputs(
            format!("multiply reads {} layers, not two", inputs.len()),
            "name two input layers",
        ));
    };
    let (a, b) = (first.dims(), second.dims());
    if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a != b && *b != 1) {
        return Err(ShapeError::in_inputs(
            format!("{first} cannot be multiplied by {second}"),
            "the second input needs the shape of the first, or 1 where it is to be spread",
        ));
    }
    Ok((first.clone(), Cost { elementwise: first.elements(), ..Cost::default() }))
}

fn shortcut(out: u64, stride: u64, input: &Shape) -> Inferred {
    let (channels, height, width) = image(input)?;
    positive("stride", stride)?;
    if out < channels {
        return Err(ShapeError::in_field(
            "out",
            format!("{channels} channels cannot be padded to {out}"),
            "a shortcut only adds channels",
        ));
    }
    free(&[out, height.div_ceil(stride), width.div_ceil(stride)])
}

/// The first input and the others, of at least two.
fn several<'a, 'b>(inputs: &'a [&'b Shape], op: &str) -> Result<(&'b Shape, &'a [&'b Shape]), ShapeError> {
    match inputs {
        [first, others @ ..] if !others.is_empty() => Ok((first, others)),
        _ => Err(ShapeError::in_inputs(
            format!("{op} reads {}", if inputs.is_empty() { "no layer" } else { "one layer only" }),
            "name at least two input layers",
        )),
    }
}

fn free(dims: &[u64]) -> Inferred {
    Ok((shape(dims)?, Cost::default()))
}

fn shape(dims: &[u64]) -> Result<Shape, ShapeError> {
    Shape::new(dims).ok_or_else(ShapeError::overflow)
}

fn image(input: &Shape) -> Result<(u64, u64, u64), ShapeError> {
    input.image().ok_or_else(|| {
        ShapeError::in_inputs(
            format!("it reads an image (channels, height, width), not {input}"),
            "put it before flatten and linear layers",
        )
    })
}

fn sequence(input: &Shape) -> Result<(u64, u64), ShapeError> {
    input.sequence().ok_or_else(|| {
        ShapeError::in_inputs(
            format!("it reads a sequence (tokens, width), not {input}"),
            "make one with an embedding, or with to-sequence from an image",
        )
    })
}

fn positive(field: &'static str, value: u64) -> Result<(), ShapeError> {
    if value == 0 {
        Err(ShapeError::in_field(field, format!("{field} is 0"), "use at least 1"))
    } else {
        Ok(())
    }
}

fn times(factors: &[u64]) -> Result<u64, ShapeError> {
    factors
        .iter()
        .try_fold(1_u64, |product, &factor| product.checked_mul(factor))
        .ok_or_else(ShapeError::overflow)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
