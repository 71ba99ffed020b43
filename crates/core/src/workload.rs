//! Work and traffic of a model: the numbers on which every method is based.

use crate::model::{self, Counting, Model, Rows};
use crate::prior::work::StepWork;
use crate::profile::{Profile, Resource};
use crate::quantity::{Bytes, Flops};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// "conv1.weight"; in a profile, the name of the operation that sends it.
    pub name: String,
    pub size: Bytes,
}

/// Bytes of one parameter or gradient element on the wire.
const ELEMENT: f64 = 4.0;

/// Work of one layer, in forward order. Layers without parameters are merged into the next layer with parameters, so
/// that each entry ends with gradients to send.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerWork {
    /// Its place among these entries.
    pub place: usize,
    pub name: String,
    /// Forward operations of one sample.
    pub forward: Flops,
    /// Number of parameters, and therefore of gradient elements.
    pub parameters: u64,
    /// The gradients one by one, in the order of the backward pass.
    pub tensors: Vec<Tensor>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Name, such as "conv1.weight".
    pub name: String,
    pub elements: u64,
    /// The rows of its table, if it is sparse.
    pub rows: Option<Rows>,
}

impl Tensor {
    /// Its size in 32 bits, dense.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.elements as f64 * ELEMENT)
    }

    /// Bytes of it that one worker sends after a step with this many samples, `share` bytes for each byte of an element.
    pub fn sent(&self, samples: f64, share: f64) -> Bytes {
        self.rows.map_or(self.bytes() * share, |rows| rows.bytes(samples, ELEMENT * share))
    }
}

impl LayerWork {
    /// Size of its gradients in 32 bits, dense.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.parameters as f64 * ELEMENT)
    }

    /// Bytes of its gradients that one worker sends after a step with this many samples.
    pub fn sent(&self, samples: f64) -> Bytes {
        self.tensors.iter().map(|tensor| tensor.sent(samples, 1.0)).sum()
    }

    /// Parameters that a step with this many samples reads and updates.
    pub fn updated(&self, samples: f64) -> f64 {
        let updated =
            |tensor: &Tensor| tensor.rows.map_or(tensor.elements as f64, |rows| rows.elements(samples));
        self.tensors.iter().map(updated).sum()
    }
}

/// The work of one sample and the traffic of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Forward operations of one sample.
    pub forward: Flops,
    /// Weights without biases (as counted by Zeng 2023).
    pub weights: u64,
    /// All trainable parameters.
    pub parameters: u64,
    /// Number of gradient tensors, which is the number of messages in a push.
    pub tensors: u32,
    pub sample: Bytes,
    /// Bytes of one sample's activations that the backward pass needs.
    pub activations: Bytes,
    /// Layers with parameters, in forward order.
    pub layers: Vec<LayerWork>,
    /// All layers with their shapes; none for a profile.
    pub graph: Option<Arc<Model>>,
    /// Work of a step for each sample, counted once from the graph; none for a profile.
    pub step: Option<StepWork>,
}

impl Workload {
    pub fn from_model(model: &Model, counting: Counting) -> Self {
        let mut layers: Vec<LayerWork> = Vec::new();
        let mut gradients = model.gradients();
        let mut forward = Flops::ZERO;
        for (id, layer) in model.layers().iter().enumerate() {
            forward += Flops::new(layer.cost.forward(counting) as f64);
            let parameters = layer.cost.weights + layer.cost.biases;
            if parameters > 0 {
                // Gradients are in backward order, so the gradients of this layer are the last.
                let own = gradients
                    .iter()
                    .rposition(|gradient| gradient.layer as usize != id)
                    .map_or(0, |last| last + 1);
                let tensor = |model::Gradient { name, elements, rows, .. }| Tensor { name, elements, rows };
                let tensors = gradients.split_off(own).into_iter().map(tensor).collect();
                let place = layers.len();
                layers.push(LayerWork { place, name: layer.name.clone(), forward, parameters, tensors });
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
            graph: Some(Arc::new(model.clone())),
            step: Some(StepWork::from_model(model)),
        }
    }

    /// Shipped parameters relative to the layout's: more if a paper states it, such as for moving averages.
    pub fn shipped(&self) -> f64 {
        let stated = self.graph.as_ref().and_then(|model| model.published().shipped);
        stated.map_or(1.0, |stated| stated as f64 / self.parameters as f64)
    }

    /// The traffic of a profile. Operations are unknown, because a profile contains times instead.
    pub fn from_profile(profile: &Profile) -> Self {
        let downlinks =
            profile.operations.iter().filter(|op| op.resource == Resource::Downlink && op.bytes > 0);
        let layers = downlinks.enumerate().map(|(place, op)| {
            let elements = op.bytes.div_ceil(ELEMENT as u64);
            let tensors = vec![Tensor { name: op.name.clone(), elements, rows: None }];
            LayerWork { place, name: op.name.clone(), forward: Flops::ZERO, parameters: elements, tensors }
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
            graph: None,
            step: None,
        }
    }

    /// The gradients of a model in the order in which the backward pass makes them ready.
    pub fn gradients(&self) -> Vec<Gradient> {
        let tensors = self.layers.iter().rev().flat_map(|layer| &layer.tensors);
        tensors.map(|tensor| Gradient { name: tensor.name.clone(), size: tensor.bytes() }).collect()
    }

    /// Parameters in the rows of sparse tables that a step with this many samples neither reads nor updates.
    pub fn untouched(&self, samples: f64) -> u64 {
        let rest =
            |tensor: &Tensor| tensor.rows.map_or(0.0, |rows| tensor.elements as f64 - rows.elements(samples));
        self.layers.iter().flat_map(|layer| &layer.tensors).map(rest).sum::<f64>() as u64
    }

    /// Size of all gradients, and of all parameters, in 32 bits, dense.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.parameters as f64 * ELEMENT)
    }
}
