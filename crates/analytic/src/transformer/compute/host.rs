//! The host: it issues kernels one after the other, and a step is no faster than that.

use super::{Compute, Parts, Work};
use stepcast_core::quantity::Seconds;

/// Share of the host's time that remains in a compiled step.
const COMPILED: f64 = 0.5;

impl Parts {
    fn each(&self) -> Seconds {
        let compiled = if self.software.compiled { COMPILED } else { 1.0 };
        self.constants.host * compiled * self.slowness
    }
}

impl Compute {
    /// Time of the host to issue the kernels of `work`; nothing at one rate.
    pub fn issuing(&self, work: Work) -> Seconds {
        match self {
            Self::OneRate { .. } => Seconds::ZERO,
            Self::Parts(parts) => parts.each() * work.kernels,
        }
    }

    /// Time of the host to compute a layer again, beside issuing its kernels: saved random states and a second graph.
    pub fn checkpoint(&self) -> Seconds {
        match self {
            Self::OneRate { .. } => Seconds::ZERO,
            Self::Parts(parts) => parts.constants.checkpoint * parts.slowness,
        }
    }

    /// Time of the host outside of all layers: update, zeroed gradients, the loop.
    pub fn outside(&self) -> Seconds {
        match self {
            Self::OneRate { .. } => Seconds::ZERO,
            Self::Parts(parts) => parts.each() * parts.constants.outside,
        }
    }
}
