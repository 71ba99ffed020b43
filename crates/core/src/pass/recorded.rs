//! Converts the steps of a profile to passes.
//!
//! All passes have the gradients in the order of the mean step. Frameworks use one fixed order as well, because all
//! workers must send the same messages: PyTorch's `DistributedDataParallel` starts no bucket before the preceding
//! one. If a gradient was computed earlier in some step than one that precedes it in this order, it counts as ready
//! together with that one.

use super::{Layer, Pass};
use crate::fault::Fault;
use crate::profile::{Operation, Profile, Resource, Step};
use crate::quantity::Seconds;
use crate::workload::Gradient;

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
