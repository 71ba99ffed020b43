//! Operators that act on each element: arithmetic, comparisons, non-linearities. Exporters compute shapes with them, so
//! that contents are followed too.

use super::{InferenceError, Inferred, OperatorCall, Rule, broadcast, product_of, scaled};
use crate::tensor::{MOST_CONTENT, Number, Size};
use stepcast_core::model::{Activation, CostKind, EXPONENTIAL};

pub(super) fn rule(op: &str) -> Option<Rule> {
    if activation(op).is_some() {
        return Some(activate);
    }
    (operations(op).is_some() || op == "Pow").then_some(combine)
}

/// Operations for each element of a non-linearity.
fn activation(op: &str) -> Option<u64> {
    Some(match op {
        "Relu" | "ThresholdedRelu" => Activation::Relu.operations(),
        "Clip" => Activation::Relu6.operations(),
        "LeakyRelu" | "PRelu" | "Shrink" => 2,
        "HardSigmoid" => 4,
        "Sigmoid" => Activation::Sigmoid.operations(),
        "Tanh" => Activation::Tanh.operations(),
        "HardSwish" => Activation::Hardswish.operations(),
        "Gelu" => Activation::Gelu.operations(),
        "Swish" => Activation::Silu.operations(),
        "SwiGLU" => Activation::Silu.operations() + 1,
        "Softmax" => Activation::Softmax.operations(),
        "Softsign" | "Hardmax" => 3,
        "Elu" | "Celu" | "Selu" => EXPONENTIAL + 3,
        "Softplus" => 2 * EXPONENTIAL + 1,
        "Mish" => 3 * EXPONENTIAL + 6,
        "LogSoftmax" => Activation::Softmax.operations() + EXPONENTIAL,
        _ => return None,
    })
}

/// Operations for each element of the output and each operand after the first, or of the only operand.
fn operations(op: &str) -> Option<u64> {
    Some(match op {
        "Add" | "Sub" | "Mul" | "Div" | "Sum" | "Mean" | "Min" | "Max" | "Mod" => 1,
        "And" | "Or" | "Xor" | "Not" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => 1,
        "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "BitwiseNot" => 1,
        "Abs" | "Neg" | "Sign" | "Floor" | "Ceil" | "Round" | "Sqrt" | "Reciprocal" | "IsNaN" | "IsInf" => 1,
        // One operation for the output, whose shape comes of three operands.
        "Where" => 1,
        "Exp" | "Log" | "Sin" | "Cos" | "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" | "Asinh"
        | "Acosh" | "Atanh" | "Erf" => EXPONENTIAL,
        "Dropout" | "QuantizeLinear" | "DequantizeLinear" => 2,
        "DynamicQuantizeLinear" => 4,
        _ => return None,
    })
}

fn activate(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let each = activation(&call.node.op).unwrap_or(1);
    let shape = call.shape(0)?.to_vec();
    let amount = scaled(product_of(&shape)?, each)?;
    Ok(Inferred::free(shape)?.with(CostKind::Activation, amount))
}

fn combine(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let op = call.node.op.as_str();
    // Inputs after the first are parameters of the operation.
    let settings = matches!(op, "Dropout" | "QuantizeLinear" | "DequantizeLinear" | "DynamicQuantizeLinear");
    let operands = if settings { 1 } else { call.inputs.len() };
    let mut shape = call.shape(0)?.to_vec();
    for index in 1..operands {
        shape = broadcast(&shape, call.shape(index)?)?;
    }
    let repetitions = if op == "Where" { 1 } else { operands.saturating_sub(1).max(1) as u64 };
    let each = match op {
        "Pow" => power(call),
        _ => operations(op).unwrap_or(1),
    };
    let amount = scaled(product_of(&shape)?, each.saturating_mul(repetitions))?;
    let contents: Vec<_> =
        call.inputs[..operands].iter().map(|input| input.and_then(|i| i.content.as_deref())).collect();
    let content = content(op, &contents);
    let shapes = vec![shape; call.node.outputs.len().max(1)];
    Ok(Inferred { shapes, content, ..Inferred::default() }.with(CostKind::Elementwise, amount))
}

/// A small whole power is a chain of products, a root one operation, any other a logarithm, a product and an exponential.
fn power(call: &OperatorCall<'_>) -> u64 {
    match call.tensor(1).ok().and_then(|tensor| tensor.scalar()) {
        Some(exponent) if exponent.fract() == 0.0 && (1.0..=8.0).contains(&exponent) => {
            (exponent as u64 - 1).max(1)
        }
        // a root, its inverse, an inverse
        Some(exponent) if [0.5, -0.5, -1.0].contains(&exponent) => 1,
        _ => 2 * EXPONENTIAL + 1,
    }
}

/// The content of an element-wise operator's output; none where it is not known.
fn content(op: &str, inputs: &[Option<&[Number]>]) -> Option<Vec<Number>> {
    let inputs: Vec<&[Number]> = inputs.iter().copied().collect::<Option<_>>()?;
    let length = inputs.iter().map(|input| input.len()).max().filter(|length| *length <= MOST_CONTENT)?;
    if inputs.iter().any(|input| input.len() != length && input.len() != 1) {
        return None;
    }
    let at = |input: &[Number], place: usize| input.get(if input.len() == 1 { 0 } else { place }).copied();
    (0..length)
        .map(|place| {
            let operands: Vec<Number> = inputs.iter().map(|input| at(input, place)).collect::<Option<_>>()?;
            apply(op, &operands)
        })
        .collect()
}

fn apply(op: &str, operands: &[Number]) -> Option<Number> {
    use Number::{Real, Whole};
    let truth = |value: bool| Whole(Size::fixed(i64::from(value)));
    let reals = || operands.iter().map(|number| number.real()).collect::<Option<Vec<f64>>>();
    Some(match (op, operands) {
        ("Identity", [a]) => *a,
        ("Where", [condition, yes, no]) => {
            if condition.real()? != 0.0 {
                *yes
            } else {
                *no
            }
        }
        ("Add", [Whole(a), Whole(b)]) => Whole(a.plus(*b)?),
        ("Sub", [Whole(a), Whole(b)]) => Whole(a.plus(b.negated()?)?),
        ("Mul", [Whole(a), Whole(b)]) => Whole(a.times(*b)?),
        ("Div", [Whole(a), Whole(b)]) => Whole(a.over(*b)?),
        ("Equal", [Whole(a), Whole(b)]) => truth(a == b),
        ("Neg", [Whole(a)]) => Whole(a.negated()?),
        ("Min" | "Max" | "Abs" | "Floor" | "Ceil" | "Round", [Whole(a)]) if op != "Abs" => Whole(*a),
        ("Mod", [Whole(a), Whole(b)]) => {
            Whole(Size::fixed(a.number()?.checked_rem_euclid(b.number().filter(|b| *b > 0)?)?))
        }
        ("Min" | "Max", [Whole(a), Whole(b)]) => {
            let (a, b) = (a.number()?, b.number()?);
            Whole(Size::fixed(if op == "Min" { a.min(b) } else { a.max(b) }))
        }
        ("Not", [a]) => truth(a.real()? == 0.0),
        ("And", [a, b]) => truth(a.real()? != 0.0 && b.real()? != 0.0),
        ("Or", [a, b]) => truth(a.real()? != 0.0 || b.real()? != 0.0),
        ("Greater", [a, b]) => truth(a.real()? > b.real()?),
        ("GreaterOrEqual", [a, b]) => truth(a.real()? >= b.real()?),
        ("Less", [a, b]) => truth(a.real()? < b.real()?),
        ("LessOrEqual", [a, b]) => truth(a.real()? <= b.real()?),
        _ => Real(match (op, &reals()?[..]) {
            ("Add", [a, b]) => a + b,
            ("Sub", [a, b]) => a - b,
            ("Mul", [a, b]) => a * b,
            ("Div", [a, b]) => a / b,
            ("Pow", [a, b]) => a.powf(*b),
            ("Min", [a, b]) => a.min(*b),
            ("Max", [a, b]) => a.max(*b),
            ("Neg", [a]) => -a,
            ("Abs", [a]) => a.abs(),
            ("Floor", [a]) => a.floor(),
            ("Ceil", [a]) => a.ceil(),
            ("Round", [a]) => a.round(),
            ("Sqrt", [a]) => a.sqrt(),
            ("Reciprocal", [a]) => 1.0 / a,
            _ => return None,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_computed_with_the_batch_left_open() {
        let whole = |value| Number::Whole(Size::fixed(value));
        let batch = Number::Whole(Size::BATCH);
        let heads = content("Mul", &[Some(&[batch]), Some(&[whole(12)])]).unwrap();
        assert_eq!(content("Div", &[Some(&heads), Some(&[whole(12)])]), Some(vec![batch]));
        assert_eq!(content("Equal", &[Some(&[batch, whole(-1)]), Some(&[whole(-1)])]).unwrap()[1], whole(1));
        assert_eq!(content("Mod", &[Some(&[whole(2)]), Some(&[whole(3)])]), Some(vec![whole(2)]));
        assert_eq!(content("Add", &[Some(&[batch]), Some(&[whole(1)])]), None);
        assert_eq!(content("Div", &[Some(&[whole(1)]), Some(&[whole(0)])]), None);
        assert_eq!(content("Mul", &[Some(&[whole(1)]), None]), None);
    }
}
