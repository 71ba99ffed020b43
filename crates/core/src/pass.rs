//! Computation of one worker in a step, gradient by gradient, which is the input of the all-reduce models; and the passes
//! of the steps of a profile.
//!
//! All passes of a profile have the gradients in the order of the mean step. Frameworks use one fixed order as well, because
//! all workers must send the same messages: PyTorch's `DistributedDataParallel` starts no bucket before the preceding
//! one. If a gradient was computed earlier in some step than one that precedes it in this order, it counts as ready
//! together with that one.

use crate::fault::Fault;
use crate::profile::{Operation, Profile, Resource, Step};
use crate::quantity::{Bytes, FlopsPerSec, Seconds};
use crate::speed::Speed;
use crate::workload::{Gradient, Tensor, Workload};

/// Backward operations per forward operation (Liu 2022, eq. 4).
const BACKWARD_PER_FORWARD: f64 = 2.0;

/// Backward pass of one layer, or the interval between two gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer {
    /// Duration (eq. 6).
    pub backward: Seconds,
    /// Size of the gradients it produces, which are summed over the workers.
    pub gradients: Bytes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    pub forward: Seconds,
    /// The layers in backward order: output first.
    pub layers: Vec<Layer>,
    /// Time of the optimiser after the exchange of gradients. The paper has none.
    pub update: Seconds,
}

impl Pass {
    /// A pass as in the paper: the forward pass takes half as long as the backward pass (eq. 4).
    pub fn new(layers: Vec<Layer>) -> Self {
        let backward: Seconds = layers.iter().map(|layer| layer.backward).sum();
        Self { forward: backward / BACKWARD_PER_FORWARD, layers, update: Seconds::ZERO }
    }

    /// A measured pass: the times at which the gradients were ready, in order, relative to the start of the backward
    /// pass, which lasts until `backward`. Computing after the last gradient overlaps no communication.
    pub fn measured(
        forward: Seconds,
        backward: Seconds,
        ready: &[(Seconds, Bytes)],
        update: Seconds,
    ) -> Result<Self, Fault> {
        let wrong =
            |reason: String| Fault::new(reason, "give every gradient the time when it was ready, in order");
        if ready.is_empty() {
            return Err(wrong("no gradient has a time".to_owned()));
        }
        let mut before = Seconds::ZERO;
        let mut layers = Vec::with_capacity(ready.len());
        for (index, &(time, gradients)) in ready.iter().enumerate() {
            if !(time.get().is_finite() && gradients.get() >= 0.0 && gradients.get().is_finite()) {
                return Err(wrong(format!("gradient {index} has no time or no size")));
            }
            if time < before {
                return Err(wrong(format!(
                    "gradient {index} is ready at {time}, before the one that precedes it"
                )));
            }
            layers.push(Layer { backward: time - before, gradients });
            before = time;
        }
        if backward > before {
            layers.push(Layer { backward: backward - before, gradients: Bytes::ZERO });
        }
        Ok(Self { forward, layers, update })
    }

    /// A pass with one entry for every gradient of `workload`, of which `size` is sent; the gradients of a layer are ready
    /// together.
    pub fn by_tensor(workload: &Workload, speed: &Speed, size: impl Fn(&Tensor) -> Bytes) -> Self {
        let mut layers = Vec::new();
        for work in workload.layers.iter().rev() {
            let mut backward = speed.backward(work);
            for tensor in &work.tensors {
                layers.push(Layer { backward, gradients: size(tensor) });
                backward = Seconds::ZERO;
            }
        }
        let forward = workload.layers.iter().map(|work| speed.forward(work)).sum();
        Self { forward, layers, update: Seconds::ZERO }
    }

    /// The pass of a worker that adds up the gradients of `batches` batches and sends those of the last.
    #[must_use]
    pub fn accumulated(mut self, batches: u32) -> Self {
        self.forward += self.computing() * f64::from(batches.saturating_sub(1));
        self
    }

    /// The pass with each byte of gradients sent as `share` bytes.
    #[must_use]
    pub fn compressed(mut self, share: f64) -> Self {
        for layer in &mut self.layers {
            layer.gradients = layer.gradients * share;
        }
        self
    }

    /// The pass scaled in time by `factor`, after a `delay`.
    #[must_use]
    pub fn scaled(&self, factor: f64, delay: Seconds) -> Self {
        let layer = |layer: &Layer| Layer { backward: layer.backward * factor, ..*layer };
        Self {
            forward: delay + self.forward * factor,
            layers: self.layers.iter().map(layer).collect(),
            update: self.update * factor,
        }
    }

    /// The pass of `samples` (M) on a worker that reaches `rate` (c·π), from operation counts alone:
    ///
    /// ```text
    /// t_backward(i) = 2 M C(i) / (c π)        (Liu 2022, eq. 6)
    /// ```
    ///
    /// Layers without operations, such as normalisations that are not counted, take no time; their gradients are sent
    /// with those of the layer before them.
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

    /// The pass of workers that wait for each other before every all-reduce: a layer is ready once the slowest worker
    /// has finished it. Each of `passes` begins after its delay, and all have the same layers. None if `passes` is
    /// empty.
    pub fn slowest(passes: &[(Seconds, Self)]) -> Option<Self> {
        let (_, first) = passes.first()?;
        if let [(delay, only)] = passes {
            return Some(Self { forward: *delay + only.forward, ..only.clone() });
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
        let update = passes.iter().map(|(_, pass)| pass.update).fold(Seconds::ZERO, Seconds::max);
        Some(Self { forward, layers: layers.collect(), update })
    }

    /// T_comp: forward and backward pass (Liu 2022, eqs. 4 and 5).
    pub fn computing(&self) -> Seconds {
        self.forward + self.layers.iter().map(|layer| layer.backward).sum()
    }

    /// T_overlap: the backward pass after its first layer, when there are gradients to send (eq. 10).
    pub fn overlap(&self) -> Seconds {
        self.layers.iter().skip(1).map(|layer| layer.backward).sum()
    }

    pub fn tensors(&self) -> usize {
        self.layers.iter().filter(|layer| layer.gradients > Bytes::ZERO).count()
    }

    pub fn gradients(&self) -> Bytes {
        self.layers.iter().map(|layer| layer.gradients).sum()
    }
}

/// A profile with its gradients in a fixed order.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded<'a> {
    profile: &'a Profile,
    mean: Step,
    /// The operations that send gradients, in the order of their ready times in the mean step; ties keep the order of
    /// the profile.
    order: Vec<usize>,
}

impl<'a> Recorded<'a> {
    /// Sorts the gradients of a profile (its uplink operations).
    pub fn new(profile: &'a Profile) -> Result<Self, Fault> {
        let wrong = |reason: String, remedy: &str| Err(Fault::in_key("model.profile", reason, remedy));
        let operations = &profile.operations;
        let on_worker = |&before: &u32| operations[before as usize].resource == Resource::Worker;
        let mut order: Vec<usize> = (0..operations.len()).filter(|&op| sends(&operations[op])).collect();
        if order.is_empty() {
            let remedy = "record transfers from the worker (`uplink`)";
            return wrong("the profile sends no gradients".to_owned(), remedy);
        }
        if let Some(&op) = order.iter().find(|&&op| !operations[op].after.iter().any(on_worker)) {
            let reason =
                format!("the gradient \"{}\" waits for nothing that is computed", operations[op].name);
            return wrong(reason, "record which operation of the worker makes it: its `after`");
        }
        let mean = profile.mean();
        let (ended, _) = computed(profile, &mean, 1.0);
        order.sort_by(|&a, &b| {
            ready(&operations[a], &ended).get().total_cmp(&ready(&operations[b], &ended).get())
        });
        Ok(Self { profile, mean, order })
    }

    pub fn gradients(&self) -> Vec<Gradient> {
        let gradient = |&op: &usize| {
            let operation = &self.profile.operations[op];
            Gradient { name: operation.name.clone(), size: operation.size() }
        };
        self.order.iter().map(gradient).collect()
    }

    /// The mean step, with all times multiplied by `slowness`.
    pub fn mean(&self, slowness: f64) -> Pass {
        self.pass(&self.mean, slowness)
    }

    /// Every step, with all times multiplied by `slowness`.
    pub fn steps(&self, slowness: f64) -> impl Iterator<Item = Pass> {
        self.profile.steps.iter().map(move |step| self.pass(step, slowness))
    }

    /// The pass of a step: the worker's operations run back to back, without the waits for transfers between them. A
    /// gradient is ready once all operations on which it depends have finished.
    fn pass(&self, step: &Step, slowness: f64) -> Pass {
        let (ended, end) = computed(self.profile, step, slowness);
        let mut before = None;
        let mut forward = Seconds::ZERO;
        let mut layers = Vec::with_capacity(self.order.len());
        for &op in &self.order {
            let operation = &self.profile.operations[op];
            let time = ready(operation, &ended);
            let since = before.unwrap_or(time);
            if before.is_none() {
                forward = time;
            }
            let time = time.max(since);
            layers.push(Layer { backward: time - since, gradients: operation.size() });
            before = Some(time);
        }
        Pass { forward, layers, update: end - before.unwrap_or(end) }
    }
}

fn sends(operation: &Operation) -> bool {
    operation.resource == Resource::Uplink && operation.bytes > 0
}

/// When each operation of the worker ends, and when the last one does.
fn computed(profile: &Profile, step: &Step, slowness: f64) -> (Vec<Seconds>, Seconds) {
    let on_worker = |op: &usize| profile.operations[*op].resource == Resource::Worker;
    let mut order: Vec<usize> = (0..profile.operations.len()).filter(on_worker).collect();
    order.sort_by(|&a, &b| step.start[a].total_cmp(&step.start[b]));
    let mut now = Seconds::ZERO;
    let mut ended = vec![Seconds::ZERO; profile.operations.len()];
    for op in order {
        now += step.duration(op) * slowness;
        ended[op] = now;
    }
    (ended, now)
}

/// When all operations on which a gradient depends have finished.
fn ready(operation: &Operation, ended: &[Seconds]) -> Seconds {
    operation.after.iter().map(|&before| ended[before as usize]).fold(Seconds::ZERO, Seconds::max)
}
