//! The neural network: a graph of layers with shapes, operation counts, parameters and gradients.
//!
//! A [`Model`] is built once by [`Builder`] (used by the zoo and by custom-model files), with all shapes inferred and
//! checked; afterwards it is read-only. All counts are per sample: the strategy determines the batch. A multiply-add
//! counts as two operations.

mod builder;
mod cost;
mod file;
mod infer;
mod op;
mod shape;
pub mod transformer;
pub mod zoo;

pub use builder::Builder;
pub use cost::{Cost, CostKind, Counting, Rows};
pub use file::{BlockFile, Head, LayerFile, ModelFile, NoHead, OPS, Value};
pub use op::{Activation, Conv2d, EXPONENTIAL, Norm, Op, Padding, Pool};
pub use shape::{Shape, ShapeError};

use crate::quantity::{Bytes, Flops};
use serde::Deserialize;

pub type LayerId = u32;

#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Unique within the model; dots mark nesting: "layer1.0.conv2".
    pub name: String,
    pub op: Op,
    /// The layers whose outputs it reads, in order.
    pub inputs: Vec<LayerId>,
    /// Shape of its output for one sample.
    pub output: Shape,
    pub cost: Cost,
}

/// A gradient that the backward pass produces and the workers exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gradient {
    /// Name, such as "fc6.weight".
    pub name: String,
    pub layer: LayerId,
    pub elements: u64,
    /// The rows of its table, if it is sparse.
    pub rows: Option<Rows>,
}

/// A documented deviation of a published count from the layout.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjustment {
    /// Why the published count differs.
    pub reason: String,
    /// Added to the forward operations of one sample.
    #[serde(default)]
    pub forward: i64,
    /// Added to the number of weights.
    #[serde(default)]
    pub weights: i64,
    /// Whether `forward` is the paper's count of pooling; ignored if pooling is counted from the layout.
    #[serde(default)]
    pub pooling: bool,
}

/// Figures that a paper measured or stated instead of deriving them from the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Number of pushes in one iteration (Zeng 2023, Table 1).
    pub pushes: Option<u32>,
    /// Parameters that the framework transfers in one push or pull (Zeng 2023, Tables 6 and 7).
    pub shipped: Option<u64>,
    /// Forward operations used outside Table 1 (Zeng 2023, AlexNet).
    pub forward: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Name in the zoo, or the user's own.
    pub name: String,
    /// The paper and, if it differs, the implementation that defines the layout.
    pub source: String,
    layers: Vec<Layer>,
    input: Shape,
    total: Cost,
    input_elements: u64,
    activation_bytes: u64,
    adjustments: Vec<Adjustment>,
    published: Published,
}

/// Bytes of a 32-bit number.
const ELEMENT: f64 = 4.0;

impl Model {
    /// All layers, in topological order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Shape of the first input.
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// Size of one sample with all inputs, at 4 bytes per element.
    pub fn input_bytes(&self) -> Bytes {
        Bytes::new(self.input_elements as f64 * ELEMENT)
    }

    /// Forward operations per sample, including the adjustments.
    pub fn forward(&self, counting: Counting) -> Flops {
        let adjustments = self
            .adjustments
            .iter()
            .filter(|adjustment| !(adjustment.pooling && counting.pooling))
            .map(|adjustment| i128::from(adjustment.forward));
        Flops::new((i128::from(self.total.forward(counting)) + adjustments.sum::<i128>()).max(0) as f64)
    }

    /// Operations and parameters of all layers, excluding the adjustments.
    pub fn cost(&self) -> Cost {
        self.total
    }

    /// Number of weights, including the adjustments.
    pub fn weights(&self) -> u64 {
        let adjustments = self.adjustments.iter().map(|adjustment| i128::from(adjustment.weights));
        let weights = (i128::from(self.total.weights) + adjustments.sum::<i128>()).max(0);
        u64::try_from(weights).unwrap_or(u64::MAX)
    }

    pub fn biases(&self) -> u64 {
        self.total.biases
    }

    /// Number of elements of untrained state.
    pub fn buffers(&self) -> u64 {
        self.total.buffers
    }

    /// Number of trainable parameters: weights of the layout, excluding the adjustments, and biases.
    pub fn parameters(&self) -> u64 {
        self.total.weights.saturating_add(self.total.biases)
    }

    /// The gradients in the order in which the backward pass completes them: last layer first.
    ///
    /// Within a layer the weight comes before the bias, except in linear layers, in the order in which PyTorch
    /// computes them in 32 bits (its backward of `addmm` returns the bias first, those of convolution and
    /// normalisation the weight). A weight shared by an embedding and a linear layer is complete only after the
    /// embedding.
    pub fn gradients(&self) -> Vec<Gradient> {
        let mut gradients = Vec::new();
        let mut id = self.layers.len() as LayerId;
        for layer in self.layers.iter().rev() {
            id -= 1;
            let mut own = [("weight", layer.cost.weights, layer.rows()), ("bias", layer.cost.biases, None)];
            if matches!(layer.op, Op::Linear { .. }) {
                own.reverse();
            }
            let own = own.into_iter().filter(|(_, elements, _)| *elements > 0);
            gradients.extend(own.map(|(kind, elements, rows)| {
                let name = format!("{}.{kind}", layer.name);
                Gradient { name, layer: id, elements, rows }
            }));
        }
        gradients
    }

    /// Activation memory per sample between forward and backward pass, at 4 bytes per element.
    ///
    /// Counts each input and output that some gradient depends on once, plus indices of maxima and dropout masks. The
    /// documentation of `memory.rs` has the rules.
    pub fn activation_bytes(&self) -> Bytes {
        Bytes::new(self.activation_bytes as f64)
    }

    /// Deviations of published counts from the layout; empty unless the model comes from a paper.
    pub fn adjustments(&self) -> &[Adjustment] {
        &self.adjustments
    }

    /// Published figures other than the layout.
    pub fn published(&self) -> Published {
        self.published
    }
}

/// Bytes of a 32-bit number.
const WIDE: u64 = 4;
/// Bytes of the index of a maximum.
const PLACE: u64 = 8;
/// Bytes per element of a dropout mask.
const MASK: u64 = 1;

/// Activation memory: bytes per sample of tensors of the forward pass that the backward pass needs; none if they overflow 64
/// bits.
///
/// An output is kept if the gradients of its own layer or of a layer that reads it depend on it. Views of a tensor (flatten) are
/// not kept twice. Counted layers need their inputs. The rules are those of PyTorch's derivatives, in 32 bits. Not included are
/// the statistics that a normalisation saves, which are small, and the matrix inside an attention, which fused implementations
/// recompute.
fn kept(layers: &[Layer]) -> Option<u64> {
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
