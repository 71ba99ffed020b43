//! The time of a pass, by what it is spent on.

use stepcast_core::quantity::Seconds;

/// Time by what it is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Computing.
    pub compute: Seconds,
    /// Computing again.
    pub recompute: Seconds,
    /// Waiting for tensor parallelism.
    pub tensor: Seconds,
    /// Waiting for context parallelism.
    pub context: Seconds,
    /// Waiting for expert parallelism.
    pub expert: Seconds,
    /// Waiting for sharded weights and for gradients that are reduced with every micro-batch.
    pub sharded: Seconds,
    /// Waiting for transfers to and from the host's memory.
    pub offload: Seconds,
    /// What the host needs to issue all of it, beside the rest.
    pub host: Seconds,
}

impl Spent {
    /// All that the device does.
    pub(super) fn on_device(&self) -> Seconds {
        let links = self.tensor + self.context + self.expert + self.sharded + self.offload;
        self.compute + self.recompute + links
    }

    /// The time that all of it takes: the larger of device and host.
    pub fn total(&self) -> Seconds {
        self.on_device().max(self.host)
    }

    /// What the device waits for the host.
    pub fn starved(&self) -> Seconds {
        (self.host - self.on_device()).max(Seconds::ZERO)
    }

    /// The sum with `count` times another.
    #[must_use]
    pub fn plus(&self, other: &Self, count: f64) -> Self {
        Self {
            compute: self.compute + other.compute * count,
            recompute: self.recompute + other.recompute * count,
            tensor: self.tensor + other.tensor * count,
            context: self.context + other.context * count,
            expert: self.expert + other.expert * count,
            sharded: self.sharded + other.sharded * count,
            offload: self.offload + other.offload * count,
            host: self.host + other.host * count,
        }
    }
}

/// A micro-batch on a layer or on a virtual stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pass {
    /// Forward.
    pub forward: Spent,
    /// Backward; with a split backward, the gradients of inputs.
    pub backward: Spent,
    /// With a split backward, the gradients of weights.
    pub weight: Spent,
}

impl Pass {
    /// The sum with `count` times another.
    #[must_use]
    pub fn plus(&self, other: &Self, count: f64) -> Self {
        Self {
            forward: self.forward.plus(&other.forward, count),
            backward: self.backward.plus(&other.backward, count),
            weight: self.weight.plus(&other.weight, count),
        }
    }

    /// The forward pass and both halves of the backward pass, as what is sent beside them sees them. A device whose host
    /// runs ahead never waits in one pass for what another has to spare; otherwise every pass is the larger of both.
    pub(super) fn beside(&self, ahead: bool) -> [Seconds; 2] {
        let time = |spent: &Spent| if ahead { spent.on_device() } else { spent.total() };
        [time(&self.forward), time(&self.backward) + time(&self.weight)]
    }

    /// The same where passes follow each other without waiting for other stages: the host issues them in order and is
    /// ahead in one as far as it falls behind in another, so that only sums count. Its time is spread over the passes as
    /// the device's is.
    #[must_use]
    pub fn running_ahead(&self) -> Self {
        let all = self.forward.plus(&self.backward, 1.0).plus(&self.weight, 1.0);
        let share = all.host / all.on_device().max(Seconds::new(f64::MIN_POSITIVE));
        let even = |spent: &Spent| Spent { host: spent.on_device() * share, ..*spent };
        Self { forward: even(&self.forward), backward: even(&self.backward), weight: even(&self.weight) }
    }
}

/// What of `sent` is left after `beside` has covered it.
pub(super) fn uncovered(sent: Seconds, beside: Seconds, overlapped: bool) -> Seconds {
    if overlapped { (sent - beside).max(Seconds::ZERO) } else { sent }
}
