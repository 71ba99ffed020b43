//! Peak memory of a training step, counted from the layers; nothing is fitted (docs/priors.md, peak memory; slow twin:
//! research/priors/memory.py).
//!
//! Weights, states of the optimiser and kept activations fill the memory; the backward pass frees activations layer by
//! layer, while gradients fill it again. The rules are those of PyTorch's derivatives with operations in
//! place where its library networks have them.

use crate::fitted::steps::{Class, StepOp};
use crate::model::{Activation, Layer, LayerId, Model, Norm, Op, Pool};
use crate::precision::Precision;
use crate::quantity::Bytes;
use crate::strategy::Optimiser;

/// Bytes of a 32-bit number.
const WIDE: f64 = 4.0;
/// Bytes of the index of a maximum.
const PLACE: f64 = 8.0;
/// Bytes per element of a dropout mask.
const MASK: f64 = 1.0;
/// Bytes that a GELU of separate operations keeps for each element, in 16 and in 32 bits.
const UNFUSED_GELU: [f64; 2] = [16.0, 24.0];
/// Numbers in the tiles of Winograd's F(4×4, 3×3) for each number of the image: 36 for 16.
const WINOGRAD: f64 = 2.25;
/// Numbers of a transformed 3×3 filter for each of its weights in convolutions by tiled FFT: 32 × 17 complex ones for 9.
const FFT: f64 = 121.0;

/// How a step is run, as far as memory is concerned.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Format {
    /// Bytes of an element of an activation.
    element: f64,
    /// Bytes of a weight, a gradient and each state.
    weight: f64,
    /// Whether weights are cast for products.
    mixed: bool,
}

impl Model {
    /// Memory in use at the peak of a step with `batch` samples, with algorithms chosen by speed.
    pub fn peak_memory(&self, batch: u32, precision: Precision, optimiser: Optimiser) -> Bytes {
        let workspace = self.workspace(&StepOp::from_model(self), precision, f64::from(batch));
        self.least_memory(batch, precision, optimiser) + Bytes::new(workspace)
    }

    /// Memory in use at the peak with algorithms that need no workspace, on which libraries fall back where memory is short.
    pub fn least_memory(&self, batch: u32, precision: Precision, optimiser: Optimiser) -> Bytes {
        let mixed = precision.is_mixed();
        let element = f64::from(precision.width());
        let format = Format { element, weight: if mixed { WIDE } else { element }, mixed };
        let batch = f64::from(batch);
        let ops = StepOp::from_model(self);
        let kept = kept(self, &ops, format);
        let parameters = self.parameters() as f64;
        let held = parameters
            * (format.weight * (1.0 + optimiser.state_bytes() / WIDE) + if mixed { element } else { 0.0 });
        let mut left: f64 = held + kept.iter().sum::<f64>() * batch;
        let mut peak = left + self.loss(&ops, format) * batch;
        for (layer, kept) in self.layers().iter().zip(&kept).rev() {
            left += layer.gradient_bytes(batch, format.weight);
            let touched = self.read(layer) + layer.output.elements() as f64;
            peak = peak.max(left + touched * element * batch);
            left -= kept * batch;
        }
        Bytes::new(peak)
    }

    /// Elements of all inputs of a layer.
    fn read(&self, layer: &Layer) -> f64 {
        layer.inputs.iter().map(|id| self.layers()[*id as usize].output.elements() as f64).sum()
    }

    /// Bytes of the loss of a sample: the logarithm of the softmax and its gradient in 32 bits, the logits in 16, and
    /// in 32 in decoders, which cast them.
    fn loss(&self, ops: &[StepOp], format: Format) -> f64 {
        let logits = self.layers().last().map_or(0.0, |last| last.output.elements() as f64);
        let decoder = ops.iter().any(|op| op.class == Class::UnfusedGelu);
        let copies =
            2.0 * WIDE + if format.mixed { format.element } else { 0.0 } + if decoder { WIDE } else { 0.0 };
        logits * copies
    }

    /// Workspace of the largest 3×3 convolution of stride 1 in 32 bits, whose fastest algorithms transform images and
    /// filters.
    fn workspace(&self, ops: &[StepOp], precision: Precision, batch: f64) -> f64 {
        if f64::from(precision.width()) < WIDE {
            return 0.0;
        }
        let square = ops.iter().filter(|op| op.class == Class::Square && !op.is_grouped());
        let layers: Vec<&Layer> = square.filter_map(|op| self.layers().get(op.place()?)).collect();
        let largest =
            |size: &dyn Fn(&Layer) -> f64| layers.iter().map(|layer| size(layer)).fold(0.0, f64::max);
        let image = largest(&|layer| self.read(layer) + layer.output.elements() as f64);
        let filter = largest(&|layer| layer.cost.weights as f64);
        WIDE * (WINOGRAD * batch * image + FFT * filter)
    }
}

/// Bytes that each layer keeps for the backward pass, for one sample.
fn kept(model: &Model, ops: &[StepOp], format: Format) -> Vec<f64> {
    let layers = model.layers();
    let mut kept = vec![0.0; layers.len()];
    // Outputs that a later product keeps, not their own layer.
    let mut shared = vec![false; layers.len()];
    let origins = origins(layers);
    let normalised = normalised(layers);
    for op in ops {
        let Some(place) = op.place() else { continue };
        let layer = &layers[place];
        let output = layer.output.elements() as f64;
        let input = model.read(layer);
        kept[place] = match op.class {
            Class::Stem => input * (format.element + if format.mixed { WIDE } else { 0.0 }),
            _ if matches!(layer.op, Op::Conv2d(_)) => {
                let from = source(layers, &origins, layer);
                let unkept =
                    from.is_some_and(|(_, op)| matches!(op, Op::Normalise(_) | Op::Add | Op::Multiply));
                input * once(&mut shared, from.filter(|_| unkept)) * format.element
            }
            Class::Linear => {
                let from = source(layers, &origins, layer);
                let normal = from.filter(|(_, op)| matches!(op, Op::Normalise(_)));
                // In mixed precision, every product casts its own input.
                let cast =
                    |op: &Op| matches!(op, Op::Normalise(_) | Op::Linear { .. } | Op::Embedding { .. });
                let times = match from {
                    Some((_, op)) if format.mixed => f64::from(u8::from(cast(op))),
                    _ => once(&mut shared, normal),
                };
                input * times * format.element
            }
            Class::Attention => (input + output) * format.element,
            Class::UnfusedGelu => output * UNFUSED_GELU[usize::from(format.element >= WIDE)],
            _ => match layer.op {
                Op::Normalise(Norm::Layer { .. }) => input * WIDE,
                Op::Normalise(_) | Op::Multiply => input * format.element,
                Op::Activate(
                    Activation::Gelu | Activation::Silu | Activation::Hardswish | Activation::Relu6,
                ) => (input + output) * format.element,
                Op::Pool { kind: Pool::Max, .. } => output * (format.element + PLACE),
                Op::Activate(_) | Op::Pool { .. } | Op::AdaptivePool { .. } => output * format.element,
                Op::Concat if normalised[place] => 0.0,
                Op::Concat => output * format.element,
                Op::Dropout => output * MASK,
                Op::Counted(_) => input * format.element,
                _ => 0.0,
            },
        };
    }
    kept
}

/// For each layer, the layer that computes its output: itself, or the input of its reshapes, if they have one.
fn origins(layers: &[Layer]) -> Vec<Option<LayerId>> {
    let mut origins: Vec<Option<LayerId>> = Vec::with_capacity(layers.len());
    for (id, layer) in layers.iter().enumerate() {
        origins.push(match layer.op {
            Op::Flatten | Op::ToSequence | Op::SelectToken { .. } => {
                layer.inputs.first().and_then(|from| origins[*from as usize])
            }
            _ => LayerId::try_from(id).ok(),
        });
    }
    origins
}

/// The layer that computes the first input of `layer`, looking through reshapes.
fn source<'a>(layers: &'a [Layer], origins: &[Option<LayerId>], layer: &Layer) -> Option<(LayerId, &'a Op)> {
    let id = origins[*layer.inputs.first()? as usize]?;
    Some((id, &layers[id as usize].op))
}

/// One if the output of the layer is kept here for the first time, else zero.
fn once(shared: &mut [bool], from: Option<(LayerId, &Op)>) -> f64 {
    match from {
        Some((id, _)) if !std::mem::replace(&mut shared[id as usize], true) => 1.0,
        _ => 0.0,
    }
}

/// By layer: whether a normalisation, which keeps its input, reads it.
fn normalised(layers: &[Layer]) -> Vec<bool> {
    let mut read = vec![false; layers.len()];
    for layer in layers.iter().filter(|layer| matches!(layer.op, Op::Normalise(_))) {
        for id in &layer.inputs {
            read[*id as usize] = true;
        }
    }
    read
}
