//! Work of a training step for each sample, layer by layer, counted from the model's graph: operations by class of
//! layer and passes over memory (docs/priors.md, one GPU; slow twin: `features` in research/priors/onegpu.py).

use crate::fitted::steps::{Class, StepOp};
use crate::model::{Layer, Model, Op, Rows};
use std::iter::Sum;
use std::ops::Add;

/// Kernels of a layer: one forward, two backward.
const KERNELS: [f64; 2] = [1.0, 2.0];
/// Reads and writes of the matrix inside an attention that is not fused, forward and backward.
const SCORES: [f64; 2] = [4.0, 8.0];

macro_rules! work {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Work for each sample of a layer, of a pass, or of a whole step.
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct Work {
            $($(#[$doc])* pub $field: f64,)*
        }

        impl Add for Work {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field,)* }
            }
        }

        impl Work {
            /// `factor` times the work, in this number of kernels.
            fn times(self, factor: f64, kernels: f64) -> Self {
                Self { kernels, ..Self { $($field: self.$field * factor,)* } }
            }
        }
    };
}

work! {
    /// Operations of 3×3 convolutions of stride 1.
    square,
    /// Operations of other convolutions.
    conv,
    /// Operations of convolutions of at most four input channels.
    stem,
    /// Operations of matrix products and attention.
    linear,
    /// Operations of depth-wise convolutions.
    depthwise,
    /// Operations of grouped convolutions.
    grouped,
    /// Elements that products and convolutions read and write, in the number format.
    passes,
    /// Elements that other layers read and write, in the number format; compilers fuse these passes.
    elementwise,
    /// Elements that are read and written in 32 bits in every precision.
    wide,
    /// Kernels; they do not depend on the number of samples.
    kernels,
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// Work of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerWork {
    /// From the input to the loss.
    pub forward: Work,
    /// From the loss to the gradients.
    pub backward: Work,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepWork {
    /// In the order of the model's layers; zero for those that take no time.
    pub layers: Vec<LayerWork>,
    /// Layers that take time.
    pub operations: f64,
    /// Parameters, without those in tables of sparse gradients.
    pub weights: f64,
    /// Tables with sparse gradients.
    pub tables: Vec<Rows>,
    /// Gradient tensors.
    pub tensors: f64,
}

impl StepWork {
    pub fn from_model(model: &Model) -> Self {
        let mut layers = vec![LayerWork::default(); model.layers().len()];
        let mut operations = 0.0;
        for op in StepOp::from_model(model) {
            let Some(place) = op.place() else { continue };
            operations += 1.0;
            layers[place] = layer(model, &model.layers()[place], &op);
        }
        Self {
            layers,
            operations,
            weights: model.updated(0.0),
            tables: model.layers().iter().filter_map(Layer::rows).collect(),
            tensors: model.gradients().len() as f64,
        }
    }

    /// Parameters that a step with this many samples reads and updates.
    pub fn updated(&self, samples: f64) -> f64 {
        self.weights + self.tables.iter().map(|rows| rows.elements(samples)).sum::<f64>()
    }

    /// The sum over all layers and both passes.
    pub fn total(&self) -> Work {
        self.layers.iter().map(|layer| layer.forward + layer.backward).sum()
    }
}

fn layer(model: &Model, layer: &Layer, op: &StepOp) -> LayerWork {
    let output = layer.output.elements() as f64;
    let input: f64 =
        layer.inputs.iter().map(|id| model.layers()[*id as usize].output.elements() as f64).sum();
    let both = |work: Work, forward: f64, backward: f64| LayerWork {
        forward: work.times(forward, KERNELS[0]),
        backward: work.times(backward, KERNELS[1]),
    };
    let elementwise = |elements: f64| Work { elementwise: elements, ..Work::default() };
    let moved = Work { passes: input + output, ..Work::default() };
    // Backward passes compute the gradients of the input and of the weights.
    let product = |work: Work| both(work, 1.0, 2.0);
    match op.class {
        // Images have no gradient, but their convolution reads and writes like the others.
        Class::Stem => {
            let mut own = product(Work { stem: op.flops(), ..moved });
            own.backward.stem = own.forward.stem;
            own
        }
        Class::Depthwise => product(Work { depthwise: op.flops(), ..moved }),
        _ if op.is_grouped() => product(Work { grouped: op.flops(), ..moved }),
        Class::Square => product(Work { square: op.flops(), ..moved }),
        Class::Pointwise | Class::Window => product(Work { conv: op.flops(), ..moved }),
        Class::Linear => product(Work { linear: op.flops(), ..moved }),
        Class::Attention => {
            let mut own = product(Work { linear: op.flops(), ..moved });
            let scores = scores(layer);
            own.forward.passes += SCORES[0] * scores;
            own.backward.passes += SCORES[1] * scores;
            own
        }
        Class::BatchNorm => both(elementwise(output), 3.0, 5.0),
        Class::LayerNorm => both(Work { wide: output, ..Work::default() }, 3.0, 4.0),
        Class::UnfusedGelu => both(elementwise(output), 8.0, 12.0),
        Class::Add => both(elementwise(output), 3.0, 1.0),
        Class::Dropout => both(elementwise(output), 2.0, 2.0),
        Class::Pool | Class::GlobalPool | Class::Concat | Class::Embedding => {
            both(elementwise(input + output), 1.0, 1.0)
        }
        Class::Elementwise | Class::Loss => match layer.op {
            Op::Multiply => both(elementwise(output), 3.0, 3.0),
            Op::Activate(_) => both(elementwise(output), 2.0, 3.0),
            // Local response normalisation and layers counted by hand: as batch normalisation.
            Op::Normalise(_) | Op::Counted(_) => both(elementwise(output), 3.0, 5.0),
            _ => both(elementwise(input + output), 1.0, 1.0),
        },
    }
}

/// Elements of the matrix inside an attention: heads × tokens².
fn scores(layer: &Layer) -> f64 {
    let tokens = layer.output.dims().first().map_or(0.0, |tokens| *tokens as f64);
    match layer.op {
        Op::Attention { heads, .. } => heads as f64 * tokens * tokens,
        _ => 0.0,
    }
}
