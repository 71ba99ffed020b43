//! What one worker computes in a step, layer by layer.

use stepcast_core::compute::Speed;
use stepcast_core::quantity::{Bytes, FlopsPerSec, Seconds};
use stepcast_core::workload::{LayerWork, Workload};

/// Backward operations per forward operation (eq. 4).
const BACKWARD_PER_FORWARD: f64 = 2.0;

/// Backward pass of one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer {
    /// How long it takes (eq. 6).
    pub backward: Seconds,
    /// The gradients that it leaves, to be summed over the workers.
    pub gradients: Bytes,
}

/// Forward and backward pass of one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Forward pass of all layers.
    pub forward: Seconds,
    /// The layers in backward order: output first.
    pub layers: Vec<Layer>,
}

impl Pass {
    /// The paper's pass: forward takes half as long as backward (eq. 4).
    pub fn new(layers: Vec<Layer>) -> Self {
        let backward: Seconds = layers.iter().map(|layer| layer.backward).sum();
        Self { forward: backward / BACKWARD_PER_FORWARD, layers }
    }

    /// What `workload` takes a worker of this speed; every layer with parameters counts.
    pub fn of(workload: &Workload, speed: &Speed) -> Self {
        let layer = |work: &LayerWork| Layer { backward: speed.backward(work), gradients: work.bytes() };
        Self {
            forward: workload.layers.iter().map(|work| speed.forward(work)).sum(),
            layers: workload.layers.iter().rev().map(layer).collect(),
        }
    }

    /// What `samples` (M) take a worker that reaches `rate` (c·π), from operations alone:
    ///
    /// ```text
    /// t_backward(i) = 2 M C(i) / (c π)        (eq. 6)
    /// ```
    ///
    /// Layers without operations, such as normalisations that are not counted, have no time of their own; their
    /// gradients travel with those of the layer before them.
    pub fn of_operations(workload: &Workload, samples: f64, rate: FlopsPerSec) -> Self {
        let mut layers: Vec<Layer> = Vec::with_capacity(workload.layers.len());
        for work in &workload.layers {
            match layers.last_mut() {
                Some(before) if work.forward.get() <= 0.0 => before.gradients += work.bytes(),
                _ => layers.push(Layer {
                    backward: work.forward * (BACKWARD_PER_FORWARD * samples) / rate,
                    gradients: work.bytes(),
                }),
            }
        }
        layers.reverse();
        Self::new(layers)
    }

    /// The pass of workers who wait for each other before every all-reduce: a layer is ready when the slowest of them
    /// has come to its end. Each of `passes` begins after its delay, and all have the same layers. None if there are
    /// none.
    pub fn slowest(passes: &[(Seconds, Self)]) -> Option<Self> {
        let (_, first) = passes.first()?;
        if let [(delay, only)] = passes {
            return Some(Self { forward: *delay + only.forward, layers: only.layers.clone() });
        }
        let mut ready = vec![Seconds::ZERO; first.layers.len()];
        let mut forward = Seconds::ZERO;
        for (delay, pass) in passes {
            let mut now = *delay + pass.forward;
            forward = forward.max(now);
            for (latest, layer) in ready.iter_mut().zip(&pass.layers) {
                now += layer.backward;
                *latest = latest.max(now);
            }
        }
        let mut before = forward;
        let layers = ready.into_iter().zip(&first.layers).map(|(ready, layer)| {
            let backward = ready - before;
            before = ready;
            Layer { backward, gradients: layer.gradients }
        });
        Some(Self { forward, layers: layers.collect() })
    }

    /// T_comp: forward and backward pass (eqs. 4 and 5).
    pub fn computing(&self) -> Seconds {
        self.forward + self.layers.iter().map(|layer| layer.backward).sum()
    }

    /// T_overlap: the backward pass after its first layer, when there is something to send (eq. 10).
    pub fn overlap(&self) -> Seconds {
        self.layers.iter().skip(1).map(|layer| layer.backward).sum()
    }

    /// Bytes of all gradients.
    pub fn gradients(&self) -> Bytes {
        self.layers.iter().map(|layer| layer.gradients).sum()
    }
}
