//! Progress in adding the passes of every stage.

use super::{Phase, Task};
use crate::graph::OpId;

#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    /// Passes that have been added.
    pub(super) done: usize,
    /// Operations that the next pass waits for.
    pub(super) free: Vec<OpId>,
    /// Operations that end the last pass.
    pub(super) last: Vec<OpId>,
    /// Operations that end the last passes of earlier kinds of replicas.
    pub(super) ended: Vec<OpId>,
    /// Operations that the last gradient passes of these kinds waited for.
    pub(super) begun: Vec<OpId>,
    /// Gradients that are under way, one after the other.
    pub(super) gradients: Vec<OpId>,
    /// Weights that are under way, one after the other.
    pub(super) weights: Vec<OpId>,
    /// The last pass that the host has issued.
    pub(super) issued: Option<OpId>,
    /// The last passes issued by hosts of earlier kinds of replicas.
    pub(super) hosts: Vec<OpId>,
}

impl Stage {
    /// Begins the passes of another kind of replicas.
    pub(super) fn begin(&mut self) {
        self.done = 0;
        self.free.clear();
        self.ended.append(&mut self.last);
        self.hosts.extend(self.issued.take());
    }
}

/// Results of a pass for the neighbouring virtual stage, by phase, place and micro-batch; none before it is added.
pub(super) struct Arrivals {
    micro_batches: usize,
    places: usize,
    pub(super) after: Vec<Option<Vec<OpId>>>,
}

impl Arrivals {
    pub(super) fn new(places: usize, micro_batches: usize) -> Self {
        Self { micro_batches, places, after: vec![None; 2 * places * micro_batches] }
    }

    pub(super) fn slot(&self, phase: Phase, place: usize, micro_batch: u32) -> usize {
        (phase as usize * self.places + place) * self.micro_batches + micro_batch as usize
    }

    /// Operations on other virtual stages that a pass waits for; none if they have not been added.
    pub(super) fn before(&self, task: &Task) -> Option<&[OpId]> {
        let place = task.place as usize;
        let neighbour = match task.phase {
            Phase::Forward => place.checked_sub(1),
            Phase::Backward => Some(place + 1).filter(|&next| next < self.places),
            Phase::Weight => None,
        };
        match neighbour {
            Some(place) => self.after[self.slot(task.phase, place, task.micro_batch)].as_deref(),
            None => Some(&[]),
        }
    }
}
