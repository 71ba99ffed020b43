//! Operators that act on each element: arithmetic, comparisons, non-linearities.

use super::arithmetic;
use super::call::{Call, Kind, Made, Rule, Stop, broadcast, product_of, scaled};
use stepcast_core::model::{Activation, EXPONENTIAL};

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

fn activate(call: &Call<'_>) -> Result<Made, Stop> {
    let each = activation(&call.node.op).unwrap_or(1);
    let shape = call.shape(0)?.to_vec();
    let amount = scaled(product_of(&shape)?, each)?;
    Ok(Made::free(shape)?.with(Kind::Activation, amount))
}

fn combine(call: &Call<'_>) -> Result<Made, Stop> {
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
    let content = arithmetic::content(op, &contents);
    let shapes = vec![shape; call.node.outputs.len().max(1)];
    Ok(Made { shapes, content, ..Made::default() }.with(Kind::Elementwise, amount))
}

/// A small whole power is a chain of products, a root one operation, any other a logarithm, a product and an exponential.
fn power(call: &Call<'_>) -> u64 {
    match call.tensor(1).ok().and_then(|tensor| tensor.scalar()) {
        Some(exponent) if exponent.fract() == 0.0 && (1.0..=8.0).contains(&exponent) => {
            (exponent as u64 - 1).max(1)
        }
        // a root, its inverse, an inverse
        Some(exponent) if [0.5, -0.5, -1.0].contains(&exponent) => 1,
        _ => 2 * EXPONENTIAL + 1,
    }
}
