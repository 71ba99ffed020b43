//! The time of a pass, by cause.
use stepcast_core::quantity::Seconds;

/// Time by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    pub compute: Seconds,
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
    /// Host time to issue all of it, in parallel with the rest.
    pub host: Seconds,
    /// How long its traffic keeps the links within nodes and those between nodes busy, hidden or not.
    pub busy: [Seconds; 2],
}

impl Spent {
    pub(super) fn on_device(&self) -> Seconds {
        let links = self.tensor + self.context + self.expert + self.sharded + self.offload;
        self.compute + self.recompute + links
    }

    /// The time that all of it takes: the larger of device and host.
    pub fn total(&self) -> Seconds {
        self.on_device().max(self.host)
    }

    /// Time that the device waits for the host.
    pub fn starved(&self) -> Seconds {
        (self.host - self.on_device()).max(Seconds::ZERO)
    }

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
            busy: [0, 1].map(|level| self.busy[level] + other.busy[level] * count),
        }
    }
}

/// A micro-batch on a layer or on a virtual stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pass {
    pub forward: Spent,
    /// Backward; with a split backward, the gradients of inputs.
    pub backward: Spent,
    /// With a split backward, the gradients of weights.
    pub weight: Spent,
}

impl Pass {
    #[must_use]
    pub fn plus(&self, other: &Self, count: f64) -> Self {
        Self {
            forward: self.forward.plus(&other.forward, count),
            backward: self.backward.plus(&other.backward, count),
            weight: self.weight.plus(&other.weight, count),
        }
    }

    pub(super) fn each<T>(&self, of: impl Fn(&Spent) -> T) -> [T; 3] {
        [of(&self.forward), of(&self.backward), of(&self.weight)]
    }

    pub(super) fn each_mut(&mut self) -> [&mut Spent; 3] {
        [&mut self.forward, &mut self.backward, &mut self.weight]
    }

    #[must_use]
    pub(super) fn without_host(&self) -> Self {
        let [forward, backward, weight] = self.each(|spent| Spent { host: Seconds::ZERO, ..*spent });
        Self { forward, backward, weight }
    }
}

/// Time that `computed` loses to the traffic beside it: a share of the traffic's time, for as long as computing lasts.
pub(super) fn lost_beside(traffic: Seconds, computed: Seconds, interference: f64) -> Seconds {
    let beside = match interference < 1.0 {
        true => traffic.min(computed / (1.0 - interference)),
        false => traffic,
    };
    beside * interference
}

/// The part of `sent` that `beside` does not cover.
pub(super) fn uncovered(sent: Seconds, beside: Seconds, overlapped: bool) -> Seconds {
    if overlapped { (sent - beside).max(Seconds::ZERO) } else { sent }
}
