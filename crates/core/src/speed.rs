//! Speed of one worker: how long a layer takes it, forward and backward.

use crate::fitted::steps::LayerTimes;
use crate::quantity::Seconds;
use crate::workload::LayerWork;

/// Bytes that move per weight and step: it is read forward and backward, its gradient written; the update reads
/// weight, gradient and momentum and writes weight and momentum. Eight accesses of four bytes.
pub const BYTES_PER_WEIGHT: f64 = 32.0;

/// The share of [`BYTES_PER_WEIGHT`] that belongs to the forward pass.
const FORWARD_ACCESSES: f64 = 1.0 / 8.0;

/// Backward operations per forward operation: gradients of the inputs and of the weights.
const BACKWARD_PER_FORWARD: f64 = 2.0;

/// Operations of a whole step per forward operation.
pub const FLOPS_PER_FORWARD: f64 = 1.0 + BACKWARD_PER_FORWARD;

#[derive(Debug, Clone, PartialEq)]
pub enum Speed {
    /// Time of each unit of work.
    Rates {
        /// An operation on every sample of the batch.
        per_flop: Seconds,
        /// A weight, once a step.
        per_weight: Seconds,
        /// Samples whose rows of sparse tables it reads and updates.
        samples: f64,
    },
    /// Time of every layer with parameters, in the order of the workload.
    Layers(Vec<LayerTimes>),
}

impl Speed {
    pub fn forward(&self, layer: &LayerWork) -> Seconds {
        match self {
            Self::Rates { per_flop, per_weight, samples } => {
                *per_flop * layer.forward.get() + *per_weight * (layer.updated(*samples) * FORWARD_ACCESSES)
            }
            Self::Layers(layers) => layers.get(layer.place).map_or(Seconds::ZERO, |times| times.forward),
        }
    }

    pub fn backward(&self, layer: &LayerWork) -> Seconds {
        match self {
            Self::Rates { per_flop, per_weight, samples } => {
                *per_flop * (layer.forward.get() * BACKWARD_PER_FORWARD)
                    + *per_weight * (layer.updated(*samples) * (1.0 - FORWARD_ACCESSES))
            }
            Self::Layers(layers) => layers.get(layer.place).map_or(Seconds::ZERO, |times| times.backward),
        }
    }
}
