//! The operations of a step, layer by layer, derived from the model's graph alone.

use super::Launches;
use super::class::{Class, Feature, Nominal, Phase, WIDE};
use crate::fitted::gemm::{GemmModel, Shape, Transposition, Variant};
use crate::model::{Activation, Layer, Model, Norm, Op};
use crate::precision::Precision;
use crate::quantity::Seconds;

/// Largest number of channels of an input image: RGB plus one (a rule, not fitted).
const IMAGE_CHANNELS: u64 = 4;
/// Size of the tile of an output, and of a weight gradient, that one multiprocessor computes at a time: tuned by hand
/// on the H200 steps in `validation/steps`.
const TILE: f64 = 128.0 * 64.0;
const GRADIENT_TILE: f64 = 64.0 * 32.0;
/// Backward operations of attention per forward operation: the forward product is recomputed, followed by four more
/// (counted, not fitted: 5 products against 2).
const ATTENTION_BACKWARD: f64 = 2.5;
/// Bytes moved to cast a 32-bit weight, relative to its size: it is read once and written at half the size (counted,
/// not fitted).
const CAST_PASSES: f64 = 1.5;

#[derive(Debug, Clone, PartialEq)]
pub struct StepOp {
    pub name: String,
    pub class: Class,
    /// Index in the model; none for the loss.
    pub(super) layer: Option<usize>,
    /// Elements of all inputs and of the output, per sample.
    elements: f64,
    /// Forward operations per sample.
    flops: f64,
    /// Rows of the equivalent matrix product, per sample: pixels or tokens.
    rows: f64,
    /// Number of products summed for one element of the output.
    depth: f64,
    /// Columns of the equivalent matrix product: channels of the output.
    columns: f64,
    weights: f64,
    groups: u64,
    /// Whether the gradient of its input is needed.
    passes_on: bool,
    pub(super) bias: bool,
    pub(super) inputs: usize,
    pub(super) tensors: f64,
}

impl StepOp {
    /// The layers of `model` that take time, in forward order, followed by the loss.
    pub fn from_model(model: &Model) -> Vec<Self> {
        // The decoders measured so far come from a library that implements GELU as separate operations.
        let decoder =
            model.layers().iter().any(|layer| matches!(layer.op, Op::Attention { causal: true, .. }));
        let mut ops: Vec<Self> = Vec::with_capacity(model.layers().len() + 1);
        let mut first = true;
        for (place, layer) in model.layers().iter().enumerate() {
            let Some(mut class) = class(model, layer) else { continue };
            if decoder && layer.op == Op::Activate(Activation::Gelu) {
                class = Class::UnfusedGelu;
            }
            ops.push(Self::layer(model, layer, place, class, first));
            first &= !class.convolves();
        }
        if let Some(last) = model.layers().last() {
            ops.push(Self::loss(last.output.elements() as f64));
        }
        ops
    }

    fn layer(model: &Model, layer: &Layer, place: usize, class: Class, first: bool) -> Self {
        let input = |id: &u32| &model.layers()[*id as usize].output;
        let output = layer.output.elements() as f64;
        let read: f64 = layer.inputs.iter().map(|id| input(id).elements() as f64).sum();
        let dims = layer.output.dims();
        let (rows, depth, out) = match layer.op {
            Op::Conv2d(conv) => {
                let channels =
                    layer.inputs.first().and_then(|id| input(id).image()).map_or(1, |image| image.0);
                let depth = (channels / conv.groups.max(1)) as f64 * (conv.kernel.0 * conv.kernel.1) as f64;
                (output / conv.out as f64, depth, conv.out as f64)
            }
            Op::Linear { out, .. } => {
                let depth =
                    layer.inputs.first().and_then(|id| input(id).dims().last()).map_or(1.0, |d| *d as f64);
                (output / out as f64, depth, out as f64)
            }
            Op::Normalise(Norm::Batch { .. }) => (output / dims[0] as f64, 0.0, 0.0),
            _ => (0.0, 0.0, 0.0),
        };
        let flops = match layer.op {
            Op::Attention { causal, .. } => {
                let pairs = 4.0 * dims[0] as f64 * output;
                if causal { pairs / 2.0 } else { pairs }
            }
            Op::Counted(cost) => cost.multiply_add as f64,
            _ => 2.0 * rows * out * depth,
        };
        let bias = match layer.op {
            Op::Conv2d(conv) => conv.bias,
            Op::Linear { bias, .. } => bias,
            _ => false,
        };
        let tensors = match class {
            _ if class.multiplies() => 1.0 + f64::from(u8::from(bias)),
            Class::BatchNorm | Class::LayerNorm => 2.0,
            Class::Embedding => 1.0,
            _ => 0.0,
        };
        Self {
            name: layer.name.clone(),
            class,
            layer: Some(place),
            elements: if class == Class::UnfusedGelu { output } else { read + output },
            flops,
            rows,
            depth,
            columns: out,
            weights: if let Op::Counted(cost) = layer.op { cost.weights as f64 } else { out * depth },
            groups: if let Op::Conv2d(conv) = layer.op { conv.groups } else { 1 },
            passes_on: !first,
            bias,
            inputs: layer.inputs.len(),
            tensors,
        }
    }

    fn loss(elements: f64) -> Self {
        Self {
            name: "loss".to_owned(),
            class: Class::Loss,
            layer: None,
            elements,
            flops: 0.0,
            rows: 0.0,
            depth: 0.0,
            columns: 0.0,
            weights: 0.0,
            groups: 1,
            passes_on: true,
            bias: false,
            inputs: 1,
            tensors: 0.0,
        }
    }

    /// Index of its layer in the model; none for the loss.
    pub fn place(&self) -> Option<usize> {
        self.layer
    }

    pub fn flops(&self) -> f64 {
        self.flops
    }

    /// Whether it convolves groups of channels separately.
    pub fn is_grouped(&self) -> bool {
        self.groups > 1
    }

    /// Time of a feature; it never decreases as the batch grows.
    pub fn feature(&self, feature: Feature, at: &Setting<'_>) -> Seconds {
        let Setting { batch, precision, phase, nominal, .. } = *at;
        let batch = f64::from(batch);
        let backward = phase == Phase::Backward;
        let peak = nominal.peak(precision).get();
        let unit = peak / f64::from(nominal.multiprocessors);
        let memory = nominal.memory.get();
        Seconds::new(match feature {
            Feature::Product => self.products(at).get(),
            Feature::Compute => {
                let times = match (backward, self.class) {
                    (false, _) => 1.0,
                    (true, Class::Attention) => ATTENTION_BACKWARD,
                    (true, Class::Linear) => 2.0,
                    (true, _) => 1.0 + f64::from(u8::from(self.passes_on)),
                };
                batch * self.flops * times / peak
            }
            Feature::Memory => batch * self.elements * self.class.element(precision) / memory,
            Feature::Reduction => 2.0 * batch * self.rows * GRADIENT_TILE / unit,
            Feature::Wave => 2.0 * self.depth * TILE / unit,
            Feature::Weights => self.weights * WIDE / memory,
            Feature::Channel => batch * self.rows * 1e-9,
        })
    }

    /// The products of a layer as the framework calls them, with weights stored as columns × depth: output =
    /// input·weightsᵀ, gradient of the input = gradient·weights, gradient of the weights = gradientᵀ·input.
    fn products(&self, at: &Setting<'_>) -> Seconds {
        let size = |value: f64| value.clamp(1.0, f64::from(u32::MAX)) as u32;
        let rows = size(f64::from(at.batch) * self.rows);
        let (columns, depth) = (size(self.columns), size(self.depth));
        let time = |transposition, m, n, k| {
            let variant = Variant { precision: at.precision, transposition };
            let found = at.products.and_then(|model| model.predict(variant, Shape { m, n, k }));
            found.map_or(Seconds::ZERO, |found| found.device)
        };
        match at.phase {
            Phase::Forward => time(Transposition::Nt, rows, columns, depth),
            Phase::Backward if !self.passes_on && self.class != Class::Linear => {
                time(Transposition::Tn, columns, depth, rows)
            }
            Phase::Backward => {
                time(Transposition::Nn, rows, depth, columns) + time(Transposition::Tn, columns, depth, rows)
            }
        }
    }

    /// Costs that are counted rather than fitted: kernel starts, casts of weights, passes over memory.
    pub fn counted(&self, at: &Setting<'_>) -> Seconds {
        // Start times of a layer's kernels in seconds: guesses tuned by hand on the H200 steps in `validation/steps`.
        let starts = match (self.class, at.phase) {
            (Class::BatchNorm, _) => 7e-6,
            (Class::Attention, Phase::Forward) => 6e-6,
            (Class::Attention, Phase::Backward) => 14e-6,
            (class, Phase::Forward) if class.multiplies() => 6e-6,
            (class, Phase::Backward) if class.multiplies() => 14e-6,
            _ => 4e-6,
        };
        let mut time = Seconds::new(starts);
        if self.casts(at.precision) {
            time += self.feature(Feature::Weights, at) * CAST_PASSES;
        }
        if !Class::FITTED.contains(&self.class) {
            time += self.feature(Feature::Memory, at) * self.class.passes(at.phase);
        }
        time
    }

    /// Whether weights are stored in 32 bits and cast for every use.
    fn casts(&self, precision: Precision) -> bool {
        precision == Precision::Bf16 && self.class.multiplies()
    }

    /// Host operations of the layer: numbers tuned by hand on the H200 steps in `validation/steps`.
    pub fn launches(&self, precision: Precision, phase: Phase) -> Launches {
        let bias = f64::from(u8::from(self.bias));
        let linear = f64::from(u8::from(self.class == Class::Linear));
        let casts = if self.casts(precision) { 1.0 + bias + linear } else { 0.0 };
        match phase {
            Phase::Forward => {
                let launches = match self.class {
                    Class::BatchNorm => 2.0,
                    Class::Attention => 5.0,
                    Class::UnfusedGelu => 8.0,
                    Class::Loss => 4.0,
                    _ => 1.0,
                };
                Launches { forward: launches, forward_casts: casts, ..Launches::default() }
            }
            Phase::Backward => {
                let launches = match self.class {
                    Class::Linear => 2.0,
                    Class::Attention => 4.0,
                    Class::UnfusedGelu => 12.0,
                    Class::Loss => 3.0,
                    Class::Concat => 1.0 + 0.2 * (self.inputs.max(1) - 1) as f64,
                    _ => 1.0,
                };
                let gradients = self.tensors;
                Launches { backward: launches, gradients, backward_casts: casts, ..Launches::default() }
            }
        }
    }
}

/// The conditions under which a layer runs.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Samples.
    pub batch: u32,
    pub precision: Precision,
    /// Half of the step.
    pub phase: Phase,
    pub nominal: &'a Nominal,
    /// Matrix products, if they have their own fit.
    pub products: Option<&'a GemmModel>,
}

/// The class of a layer; none if it takes no time.
fn class(model: &Model, layer: &Layer) -> Option<Class> {
    let channels = || {
        let id = layer.inputs.first()?;
        model.layers()[*id as usize].output.image().map(|image| image.0)
    };
    Some(match layer.op {
        Op::Input | Op::Flatten | Op::ToSequence | Op::SelectToken { .. } => return None,
        Op::Counted(cost) if cost.is_free() => return None,
        Op::Counted(cost) if cost.multiply_add > 0 => Class::Linear,
        Op::Conv2d(conv) => match channels().unwrap_or(1) {
            channels if conv.groups > 1 && conv.groups == channels => Class::Depthwise,
            channels if channels <= IMAGE_CHANNELS => Class::Stem,
            _ if conv.kernel == (1, 1) => Class::Pointwise,
            _ if conv.kernel == (3, 3) && conv.stride == (1, 1) => Class::Square,
            _ => Class::Window,
        },
        Op::Linear { .. } => Class::Linear,
        Op::Normalise(Norm::Batch { .. }) => Class::BatchNorm,
        Op::Normalise(Norm::Layer { .. }) => Class::LayerNorm,
        Op::Pool { .. } => Class::Pool,
        Op::AdaptivePool { .. } => Class::GlobalPool,
        Op::Attention { .. } => Class::Attention,
        Op::Concat => Class::Concat,
        Op::Embedding { .. } | Op::PositionEmbedding { .. } => Class::Embedding,
        Op::Add => Class::Add,
        Op::Dropout => Class::Dropout,
        _ => Class::Elementwise,
    })
}
