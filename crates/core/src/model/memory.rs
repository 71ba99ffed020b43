//! Memory of a training step: what the backward pass needs, and the peak; nothing is fitted.
//!
//! An output is kept if the gradients of its own layer or of a layer that reads it depend on it. Views of a tensor
//! (flatten) are not kept twice. Counted layers need their inputs. The rules are those of PyTorch's derivatives. The
//! activation memory ([`kept`]) does not include the statistics that a normalisation saves, which are small, and the
//! matrix inside an attention, which fused implementations recompute.
//!
//! At the peak (docs/priors.md, peak memory; slow twin: research/priors/memory.py) weights, states of the optimiser and
//! what the forward pass keeps fill the memory; the backward pass frees what was kept, layer by layer, while gradients
//! fill it again. Operations are in place where PyTorch's library networks have them so.

use super::op::{Activation, Norm, Op, Pool};
use super::{Layer, LayerId, Model};
use crate::fitted::steps::{Class, StepOp};
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
/// Numbers in the tiles of Winograd's F(4×4, 3×3) for one of the image: 36 for 16.
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
        let mixed = precision.is_mixed();
        let element = f64::from(precision.width());
        let format = Format { element, weight: if mixed { WIDE } else { element }, mixed };
        let batch = f64::from(batch);
        let ops = StepOp::of(self);
        let kept = kept_by_layer(self, &ops, format);
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
        Bytes::new(peak + self.workspace(&ops, format, batch))
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
    fn workspace(&self, ops: &[StepOp], format: Format, batch: f64) -> f64 {
        if format.element < WIDE {
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
fn kept_by_layer(model: &Model, ops: &[StepOp], format: Format) -> Vec<f64> {
    let layers = model.layers();
    let mut kept = vec![0.0; layers.len()];
    // Outputs that their own layer does not keep, and that a product has kept.
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

/// By layer: the one that computes its output, past those that only reshape; none for a reshape of nothing.
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

/// The layer that computes the first input of `layer`, past those that only reshape.
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
        let own = if keep && !is_view(&layer.op) { WIDE as u64 } else { 0 };
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
        Op::Pool { kind: Pool::Max, .. } | Op::AdaptivePool { kind: Pool::Max, .. } => PLACE as u64,
        Op::Dropout => MASK as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{ModelFile, zoo};
    use crate::precision::Precision;
    use crate::strategy::Optimiser;

    fn kept(text: &str) -> u64 {
        toml::from_str::<ModelFile>(text).unwrap().build().unwrap().activation_bytes().get() as u64
    }

    #[test]
    fn each_tensor_is_kept_once() {
        let text = r#"
            input = [1, 8, 8]
            layers = [
                { op = "conv2d", out = 1, kernel = 3, padding = 1, bias = false },
                { op = "relu" },
                { op = "max-pool", kernel = 2 },
                { op = "flatten" },
                { op = "linear", out = 10 },
            ]"#;
        // Input, ReLU (which overwrites the convolution's output), pooling with indices, logits.
        assert_eq!(kept(text), 4 * 64 + 4 * 64 + (4 + 8) * 16 + 4 * 10);
    }

    /// The sum of a residual block is overwritten by its ReLU, and no gradient needs the branches.
    #[test]
    fn sums_keep_nothing() {
        let text = r#"
            input = [4, 8, 8]
            layers = [
                { name = "left", op = "conv2d", out = 4, kernel = 1, bias = false },
                { name = "right", op = "conv2d", inputs = ["input"], out = 4, kernel = 1, bias = false },
                { op = "add", inputs = ["left", "right"] },
                { op = "relu" },
            ]"#;
        assert_eq!(kept(text), 2 * 4 * 4 * 64);
    }

    const VECTORS: &str = include_str!("../../../../research/priors/vectors_memory.csv");

    /// 37 steps measured on an H200 (PyTorch 2.11).
    #[test]
    fn peaks_are_those_of_measured_steps() {
        let mut errors = Vec::new();
        for line in VECTORS.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let [name, batch, precision, measured, twin, ..] = fields[..] else { panic!("{line}") };
            let name = if name == "bert-base" { "bert-base-mlm" } else { name };
            let Ok(model) = zoo::build(&name.replace('_', "-")) else { continue };
            let transformer = name.starts_with("bert") || name.starts_with("gpt");
            let optimiser = if transformer { Optimiser::Adam } else { Optimiser::Sgd };
            let mixed = precision == "amp-bf16";
            let precision = if mixed { Precision::AmpBf16 } else { Precision::Tf32 };
            let got = model.peak_memory(batch.parse().unwrap(), precision, optimiser).get();
            let [measured, twin]: [f64; 2] = [measured, twin].map(|text| text.parse().unwrap());
            // In the slow twin a layer reads its neighbours in the list: it differs in BERT's first block.
            // The zoo has no layers for the permutations and scales of ConvNeXt and the windows of Swin.
            let same = match name {
                _ if name.starts_with("convnext") || name.starts_with("swin") => 0.25,
                _ if transformer => 0.004,
                _ => 1e-4,
            };
            assert!((got / twin - 1.0).abs() < same, "{line}: {got}");
            errors.push((mixed, (got / measured - 1.0).abs()));
        }
        assert_eq!(errors.len(), 37);
        let mean = |of: &dyn Fn(bool) -> bool| {
            let chosen: Vec<f64> =
                errors.iter().filter(|(mixed, _)| of(*mixed)).map(|(_, error)| *error).collect();
            chosen.iter().sum::<f64>() / chosen.len() as f64
        };
        let worst = errors.iter().map(|(_, error)| *error).fold(0.0, f64::max);
        let [all, mixed] = [mean(&|_| true), mean(&|mixed| mixed)];
        assert!(
            all < 0.08 && mixed < 0.06 && worst < 0.36,
            "mean {all:.3}, mixed {mixed:.3}, worst {worst:.3}"
        );
    }

    #[test]
    fn pure_16_bits_take_half_of_32() {
        let model = zoo::build("mobilenet-v2").unwrap();
        let [half, full] = [Precision::Bf16, Precision::Fp32]
            .map(|precision| model.peak_memory(64, precision, Optimiser::Sgd).get());
        assert!((2.0 * half / full - 1.0).abs() < 0.01, "{half} {full}");
    }
}
