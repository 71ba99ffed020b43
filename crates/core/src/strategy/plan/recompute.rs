//! What is computed again, and where.

use super::{Plan, Recompute};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What is computed again in the backward pass, and in how many layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recomputation {
    /// What is computed again.
    pub what: Recompute,
    /// Layers of every virtual stage, from its first, in which it is; all of them if none. The first layers go backward
    /// last, when the others are free (the block method of Megatron-LM).
    pub layers: Option<u64>,
}

impl From<Recompute> for Recomputation {
    fn from(what: Recompute) -> Self {
        Self { what, layers: None }
    }
}

impl Recomputation {
    /// Of so many layers of a virtual stage, those to which it applies.
    pub fn among(self, layers: u64) -> u64 {
        self.layers.map_or(layers, |first| first.min(layers))
    }

    /// The same for the virtual stage at `place`, of those to which it applies if these are given for each.
    pub fn among_at(self, place: u64, layers: u64, given: &[u64]) -> u64 {
        let own = usize::try_from(place).ok().and_then(|place| given.get(place));
        own.map_or(self.among(layers), |&own| own.min(layers))
    }

    /// What applies to the first layers of a virtual stage, and to the others.
    pub const fn halves(self) -> [Recompute; 2] {
        [self.what, Recompute::None]
    }
}

impl Plan {
    /// Layers from the first to the one behind the last of every virtual stage, of a model with so many.
    pub fn stage_ranges(&self, layers: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let places = self.pipeline * self.virtual_stages;
        let given = self.given_layers();
        let mut from = 0;
        (0..places).map(move |place| {
            let given = usize::try_from(place).ok().and_then(|place| given.get(place));
            let to = from + given.copied().unwrap_or(layers / places);
            std::mem::replace(&mut from, to)..to
        })
    }

    /// Of a model with so many layers, those to which `recompute` applies.
    pub fn recomputed_ranges(&self, layers: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let recompute = self.recomputation();
        (0..).zip(self.stage_ranges(layers)).map(move |(place, own)| {
            own.start..own.start + recompute.among_at(place, own.end - own.start, self.given_recompute())
        })
    }
}
