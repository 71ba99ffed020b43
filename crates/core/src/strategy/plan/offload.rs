//! What leaves the device for its host.

use super::{Offload, Plan};
use serde::{Deserialize, Serialize};

/// What is kept in the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Offloaded {
    /// Optimiser states, and gradients as soon as they are reduced.
    pub optimiser: bool,
    /// What layers keep for the backward pass.
    pub activations: bool,
}

impl Offloaded {
    /// What a list names.
    pub fn of(list: &[Offload]) -> Self {
        Self {
            optimiser: list.contains(&Offload::Optimiser),
            activations: list.contains(&Offload::Activations),
        }
    }

    /// The list that names it.
    pub fn list(self) -> Vec<Offload> {
        let all = [(self.optimiser, Offload::Optimiser), (self.activations, Offload::Activations)];
        all.into_iter().filter_map(|(on, what)| on.then_some(what)).collect()
    }
}

impl Plan {
    /// What is kept in the host's memory.
    pub fn offloaded(&self) -> Offloaded {
        Offloaded::of(&self.offload)
    }
}
