//! Attention as one operator (opset 23), and the cost of any attention.

use super::{InferenceError, Inferred, OperatorCall, Rule, overflow, product_of, scaled, wrong};
use crate::tensor::{Size, spelled};
use stepcast_core::model::{Activation, CostKind};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Attention" => attention,
        "RotaryEmbedding" => rotary,
        "LinearAttention" => linear,
        _ => return None,
    })
}

/// The sizes of softmax(Q·Kᵀ)·V.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttentionSizes {
    /// Samples times heads.
    pub(crate) outer: Size,
    pub(crate) queries: Size,
    pub(crate) keys: Size,
    /// Width of a query and a key in one head.
    pub(crate) width: Size,
    pub(crate) value_width: Size,
    /// Whether queries only see keys up to their own place.
    pub(crate) causal: bool,
}

impl AttentionSizes {
    /// Products, the softmax and the scaling of the scores: what `Op::Attention` counts.
    pub(crate) fn work(&self) -> Option<Vec<(CostKind, Size)>> {
        let pairs = match (self.causal, self.queries.number(), self.keys.number()) {
            (true, Some(queries), Some(keys)) if queries == keys => {
                Size::fixed(queries.checked_mul(queries.checked_add(1)?)? / 2)
            }
            _ => self.queries.times(self.keys)?,
        };
        let pairs = pairs.times(self.outer)?;
        let widths = self.width.plus(self.value_width)?;
        let softmax = Size::count(Activation::Softmax.operations())?;
        Some(vec![
            (CostKind::MultiplyAdd, pairs.times(widths)?.times(Size::fixed(2))?),
            (CostKind::Activation, pairs.times(softmax)?),
            (CostKind::Elementwise, pairs),
        ])
    }
}

/// Batch, heads, places and width of one of Q, K and V.
fn parts(call: &OperatorCall<'_>, index: usize, heads: &str) -> Result<[Size; 4], InferenceError> {
    match *call.shape(index)? {
        [batch, heads, places, width] => Ok([batch, heads, places, width]),
        [batch, places, packed] => {
            let heads = Size::fixed(call.int(heads, 1));
            let width = packed
                .over(heads)
                .ok_or_else(|| InferenceError::Wrong(format!("{heads} heads do not divide {packed}")))?;
            Ok([batch, heads, places, width])
        }
        ref other => wrong(format!("it reads three or four dimensions, not {}", spelled(other))),
    }
}

fn attention(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let heads = heads(call)?;
    let [batch, count, queries, _] = parts(call, 0, "q_num_heads")?;
    let shape = match call.shape(0)?.len() {
        3 => vec![batch, queries, count.times(heads.value_width).ok_or_else(overflow)?],
        _ => vec![batch, count, queries, heads.value_width],
    };
    let mut shapes = vec![shape];
    if call.node.outputs.len() > 1 {
        let [batch, count, keys, width] = parts(call, 1, "kv_num_heads")?;
        shapes.push(vec![batch, count, keys, width]);
        shapes.push(vec![batch, count, keys, heads.value_width]);
        shapes.push(vec![batch, count, queries, heads.keys]);
    }
    let work = heads.work().ok_or_else(overflow)?;
    Ok(Inferred { shapes, work, ..Inferred::default() })
}

pub(crate) fn heads(call: &OperatorCall<'_>) -> Result<AttentionSizes, InferenceError> {
    let [batch, count, queries, width] = parts(call, 0, "q_num_heads")?;
    let [_, _, keys, _] = parts(call, 1, "kv_num_heads")?;
    let [_, _, _, value_width] = parts(call, 2, "kv_num_heads")?;
    let outer = product_of(&[batch, count])?;
    let masked = call.tensor(3).is_ok_and(|mask| mask.causal);
    let causal = call.int("is_causal", 0) != 0 || masked;
    Ok(AttentionSizes { outer, queries, keys, width, value_width, causal })
}

/// Each pair of elements is turned: four products, two sums.
fn rotary(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let amount = scaled(call.elements(0)?, 3)?;
    Ok(Inferred::free(call.shape(0)?.to_vec())?.with(CostKind::Elementwise, amount))
}

/// Attention with a state instead of pairs (opset 27): each token adds a product of key and value to the state of its head
/// and reads it by its query; other rules subtract the value that the state holds already, or let it decay.
fn linear(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let [batch, count, places, width] = parts(call, 0, "q_num_heads")?;
    let [_, _, _, value_width] = parts(call, 2, "kv_num_heads")?;
    let rule = call.text("update_rule").unwrap_or("gated_delta");
    let cells = product_of(&[batch, count, places, width, value_width])?;
    let products = if rule.contains("delta") { 3 } else { 2 };
    let shape = vec![batch, places, count.times(value_width).ok_or_else(overflow)?];
    let state = vec![batch, Size::fixed(call.int("kv_num_heads", 1)), width, value_width];
    let made = Inferred { shapes: vec![shape, state], ..Inferred::default() };
    let made = made.with(CostKind::MultiplyAdd, scaled(cells, 2 * products)?);
    Ok(if rule.contains("gated") { made.with(CostKind::Elementwise, cells) } else { made })
}
