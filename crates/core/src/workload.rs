//! What one sample of a model asks of a cluster: the numbers every method starts from.

use crate::model::{Counting, Model};
use crate::profile::{Profile, Resource};
use crate::quantity::{Bytes, Flops};

/// Bytes of one parameter or gradient element on the wire.
const ELEMENT: f64 = 4.0;

/// A step of one layer, in forward order; layers without parameters are merged into the next one that
/// has some, so that each entry ends with gradients to send.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerWork {
    /// The layer whose gradients these are.
    pub name: String,
    /// Forward operations of one sample.
    pub forward: Flops,
    /// Parameters, and therefore gradients.
    pub parameters: u64,
}

impl LayerWork {
    /// Size of its gradients on the wire.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.parameters as f64 * ELEMENT)
    }
}

/// The work of one sample and the traffic of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Forward operations of one sample.
    pub forward: Flops,
    /// Weights without biases (what Zeng 2023 counts).
    pub weights: u64,
    /// All trainable parameters.
    pub parameters: u64,
    /// Gradient tensors: how many messages a push is made of.
    pub tensors: u32,
    /// Bytes of one input sample.
    pub sample: Bytes,
    /// Bytes that one sample's activations occupy until the backward pass has used them.
    pub activations: Bytes,
    /// Layers with parameters, in forward order.
    pub layers: Vec<LayerWork>,
}

impl Workload {
    /// The workload of `model`, operations counted by `counting`.
    pub fn of(model: &Model, counting: Counting) -> Self {
        let mut layers: Vec<LayerWork> = Vec::new();
        let mut forward = Flops::ZERO;
        for layer in model.layers() {
            forward += Flops::new(layer.cost.forward(counting) as f64);
            let parameters = layer.cost.weights + layer.cost.biases;
            if parameters > 0 {
                layers.push(LayerWork { name: layer.name.clone(), forward, parameters });
                forward = Flops::ZERO;
            }
        }
        if let Some(last) = layers.last_mut() {
            last.forward += forward;
        }
        Self {
            forward: model.forward(counting),
            weights: model.weights(),
            parameters: model.parameters(),
            tensors: model.published().pushes.unwrap_or(model.gradients().len() as u32).max(1),
            sample: model.input_bytes(),
            activations: model.activation_bytes(),
            layers,
        }
    }

    /// The traffic of a profile. Operations are not known: times are.
    pub fn of_profile(profile: &Profile) -> Self {
        let downlinks =
            profile.operations.iter().filter(|op| op.resource == Resource::Downlink && op.bytes > 0);
        let layers = downlinks.map(|op| LayerWork {
            name: op.name.clone(),
            forward: Flops::ZERO,
            parameters: op.bytes.div_ceil(ELEMENT as u64),
        });
        let layers: Vec<LayerWork> = layers.collect();
        let parameters = layers.iter().map(|layer| layer.parameters).sum();
        let uplinks = profile.operations.iter().filter(|op| op.resource == Resource::Uplink && op.bytes > 0);
        Self {
            forward: Flops::ZERO,
            weights: parameters,
            parameters,
            tensors: (uplinks.count() as u32).max(1),
            sample: Bytes::ZERO,
            activations: Bytes::ZERO,
            layers,
        }
    }

    /// Size of all gradients, and of all parameters, on the wire.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.parameters as f64 * ELEMENT)
    }
}
