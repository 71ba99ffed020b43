//! Activation memory: tensors of the forward pass that the backward pass needs.
//!
//! An output is kept if the gradients of its own layer or of a layer that reads it depend on it. Views of a tensor
//! (flatten) are not kept twice. Counted layers need their inputs. The rules are those of PyTorch's derivatives, in
//! 32 bits. Not included are the statistics that a normalisation saves, which are small, and the matrix inside an
//! attention, which fused implementations recompute.

use super::op::{Activation, Op, Pool};
use super::{Layer, LayerId};

/// Bytes of a 32-bit number.
const WIDE: u64 = 4;
/// Bytes of the index of a maximum.
const PLACE: u64 = 8;
/// Bytes per element of a dropout mask.
const MASK: u64 = 1;

/// Bytes kept per sample; none if they overflow 64 bits.
pub(super) fn kept(layers: &[Layer]) -> Option<u64> {
    let mut read = vec![false; layers.len()];
    let mut needed = vec![false; layers.len()];
    let mut bytes = 0_u64;
    let at = |list: &mut Vec<bool>, id: &LayerId| {
        if let Some(entry) = list.get_mut(*id as usize) {
            *entry = true;
        }
    };
    for (id, layer) in layers.iter().enumerate().rev() {
        // An output that no layer reads goes to the loss.
        let loss = !read[id] && layer.op != Op::Input;
        let keep = needed[id] || loss || needs_output(&layer.op);
        let elements = layer.output.elements();
        let own = if keep && !is_view(&layer.op) { WIDE } else { 0 };
        bytes = bytes.checked_add(elements.checked_mul(own + extra(&layer.op))?)?;
        for input in &layer.inputs {
            at(&mut read, input);
            if needs_input(&layer.op) || (keep && is_view(&layer.op)) {
                at(&mut needed, input);
            }
        }
    }
    Some(bytes)
}

fn needs_output(op: &Op) -> bool {
    use Activation::{Relu, Sigmoid, Softmax, Tanh};
    matches!(op, Op::Activate(Relu | Sigmoid | Tanh | Softmax) | Op::Attention { .. })
}

fn needs_input(op: &Op) -> bool {
    use Activation::{Gelu, Hardswish, Relu6, Silu};
    if let Op::Counted(cost) = op {
        return !cost.is_free();
    }
    matches!(
        op,
        Op::Conv2d(_)
            | Op::Linear { .. }
            | Op::Normalise(_)
            | Op::Pool { kind: Pool::Max, .. }
            | Op::AdaptivePool { kind: Pool::Max, .. }
            | Op::Activate(Gelu | Hardswish | Relu6 | Silu)
            | Op::Embedding { .. }
            | Op::Multiply
            | Op::Attention { .. }
    )
}

fn is_view(op: &Op) -> bool {
    let moves = matches!(op, Op::Counted(cost) if cost.is_free());
    moves || matches!(op, Op::Flatten | Op::ToSequence | Op::SelectToken { .. })
}

/// Additional bytes per element of the output.
fn extra(op: &Op) -> u64 {
    match op {
        Op::Pool { kind: Pool::Max, .. } | Op::AdaptivePool { kind: Pool::Max, .. } => PLACE,
        Op::Dropout => MASK,
        _ => 0,
    }
}
