//! How far the passes of every stage have been added.

use super::{Phase, Task};
use crate::graph::OpId;

#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    /// Passes that have been added.
    pub(super) done: usize,
    /// What the next pass waits for.
    pub(super) free: Vec<OpId>,
    /// What ends the last pass.
    pub(super) last: Vec<OpId>,
    /// The same of kinds of replicas before.
    pub(super) ended: Vec<OpId>,
    /// What their last passes that compute gradients waited for.
    pub(super) begun: Vec<OpId>,
    /// Gradients that are under way, one after the other.
    pub(super) gradients: Vec<OpId>,
    /// Weights that are under way, one after the other.
    pub(super) weights: Vec<OpId>,
    /// The last pass that the host has issued.
    pub(super) issued: Option<OpId>,
    /// The same of kinds of replicas before.
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

/// What a pass of a virtual stage hands to its neighbour, by phase, place and micro-batch; none before it is added.
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

    /// What a pass waits for on other virtual stages; none if that has not been added.
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
