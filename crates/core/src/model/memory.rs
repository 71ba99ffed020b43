//! Activation memory: tensors of the forward pass that the backward pass needs.
//!
//! An output is kept if the gradients of its own layer or of a layer that reads it depend on it. Views of a tensor
//! (flatten) are not kept twice. Counted layers need their inputs. The rules are those of PyTorch's derivatives, in
//! 32 bits. Not included are the statistics that a normalisation saves, which are small, and the matrix inside an
//! attention, which fused implementations recompute.

use super::op::{Activation, Op, Pool};
use super::{Layer, LayerId};

/// Bytes of a 32-bit number.
const ELEMENT: u64 = 4;
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
        let own = if keep && !is_view(&layer.op) { ELEMENT } else { 0 };
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

#[cfg(test)]
mod tests {
    use crate::model::op::{Activation, Conv2d, Op, Pool};
    use crate::model::{Builder, ShapeError};

    /// Convolution, ReLU, pooling, flatten, linear over one channel of 8×8.
    #[test]
    fn each_tensor_is_kept_once() -> Result<(), ShapeError> {
        let mut b = Builder::new("small", "test");
        let x = b.input("input", &[1, 8, 8])?;
        let x = b.conv("conv", Conv2d::new(1, 3).padding(1), x)?;
        let x = b.activate("relu", Activation::Relu, x)?;
        let x = b.pool("pool", Pool::Max, (2, 2, 0), x)?;
        let x = b.add("flatten", Op::Flatten, &[x])?;
        b.linear("fc", 10, x)?;
        // Input, ReLU (which overwrites the convolution's output), pooling with indices, logits.
        let bytes = 4 * 64 + 4 * 64 + (4 + 8) * 16 + 4 * 10;
        assert_eq!(b.finish()?.activation_bytes().get() as u64, bytes);
        Ok(())
    }

    /// The sum of a residual block is overwritten by its ReLU, and no gradient needs the branches.
    #[test]
    fn sums_keep_nothing() -> Result<(), ShapeError> {
        let mut b = Builder::new("residual", "test");
        let input = b.input("input", &[4, 8, 8])?;
        let left = b.conv("left", Conv2d::new(4, 1), input)?;
        let right = b.conv("right", Conv2d::new(4, 1), input)?;
        let x = b.add("add", Op::Add, &[left, right])?;
        b.activate("relu", Activation::Relu, x)?;
        assert_eq!(b.finish()?.activation_bytes().get() as u64, 2 * 4 * 4 * 64);
        Ok(())
    }
}
