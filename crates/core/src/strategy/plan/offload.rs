//! What leaves the device for its host.

use super::{Offload, Plan};

/// What is kept in the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloaded {
    /// Optimiser states, and gradients as soon as they are reduced.
    pub optimiser: bool,
    /// What layers keep for the backward pass.
    pub activations: bool,
}

impl Plan {
    /// What is kept in the host's memory.
    pub fn offloaded(&self) -> Offloaded {
        Offloaded {
            optimiser: self.offload.contains(&Offload::Optimiser),
            activations: self.offload.contains(&Offload::Activations),
        }
    }
}
