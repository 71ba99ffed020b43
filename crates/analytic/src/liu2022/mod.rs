//! Liu et al. 2022 (doi 10.1145/3485447.3511981): scaling factor of all-reduce training when the exchange of
//! gradients overlaps the backward pass (OSF), with and without fusing gradients into larger messages.
//!
//! [`Pass`] describes the computation of one worker in a step, [`Curve`] the time of an all-reduce as a function of its
//! size, and [`Schedule`] the fusion of gradients into messages. [`osf`] computes the times of a step, and [`plan`]
//! also lists every message, [`mean`] takes the mean over all phases of Horovod's cycles. [`csf`] is the paper's baseline
//! without overlap; [`optimum`] finds the best fusion. [`Liu2022`] applies the model to a scenario, including unequal
//! workers.
//!
//! The paper numbers layers from the input (1) to the output (n). Here they are stored in the order of the backward
//! pass: index 0 is layer n.
//!
//! Departures from the printed equations follow section 4 of the errata and are marked where they occur.

mod method;
mod run;

pub use method::{Liu2022, assumptions, passes, schedule};
pub use run::{mean, optimum, optimum_while, osf, plan};
pub use stepcast_core::pass::{Layer, Pass};

use std::sync::Arc;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::prediction::Communication;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::BufferReading;

/// Eq. 2: scaling factor if all gradients are sent at once after the backward pass (one δ, errata 4.1); 1 if
/// communication takes no time.
pub fn csf(pass: &Pass, update: &Curve) -> f64 {
    let (computing, communicating) = (pass.computing() + pass.update, update.time(pass.gradients()));
    if communicating > Seconds::ZERO { computing / (computing + communicating) } else { 1.0 }
}

/// A buffer in which gradients are fused (eqs. 12-16).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffer {
    /// Q: capacity; a larger layer is sent alone. May be infinite.
    pub size: Bytes,
    /// Longest wait for the next layer: if its backward pass takes this long or longer, the buffer is sent after this
    /// time. `None` means that the buffer always waits.
    pub timeout: Option<Seconds>,
    /// Whether waiting and sending overlap.
    pub reading: BufferReading,
}

impl Buffer {
    pub fn new(size: Bytes) -> Self {
        Self { size, timeout: None, reading: BufferReading::default() }
    }

    #[must_use]
    pub fn timeout(self, timeout: Seconds) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Sets the reading of eq. 15.
    #[must_use]
    pub fn reading(self, reading: BufferReading) -> Self {
        Self { reading, ..self }
    }
}

/// Rule that decides which gradients are fused into one message.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Schedule {
    /// No fusion: the gradients of each layer are sent as soon as they are ready (eq. 8).
    #[default]
    PerLayer,
    /// All gradients in one message after the backward pass, as CSF assumes (eq. 2).
    AtEnd,
    /// Gradients that fit into a buffer (eqs. 12-16).
    Fused(Buffer),
    /// adaFusion: layers are fused if that saves more time than the wait costs (eq. 17). Layer i joins the buffer B
    /// if
    ///
    /// ```text
    /// t_update(B + D(i)) + t_backward(i) < t_update(B) + t_update(D(i))
    /// ```
    ///
    /// The paper prints t_wait(i), the wait of layer i for the layer after it, but the cost of fusing i is the wait
    /// of the buffer for i (errata 4.3). The decision is made ahead from the model, so a layer that is not fused
    /// causes no wait.
    Adaptive {
        /// Never wait for a layer whose backward pass takes this long or longer.
        timeout: Option<Seconds>,
    },
    /// MG-WFBP as described in section 4.2 of the paper: layer i waits for the next layer in the backward pass if
    /// that layer takes less time than t_update(D(i)) + `overhead`.
    MgWfbp {
        /// Fixed cost of one all-reduce.
        overhead: Seconds,
    },
    /// PyTorch's `DistributedDataParallel` after its first backward pass: a bucket is closed by the gradient with
    /// which it reaches or exceeds its size.
    Pytorch {
        first: Bytes,
        /// Size of the other buckets.
        cap: Bytes,
    },
    /// Horovod: at the start of every cycle, all ready gradients are sent in messages of at most `threshold`; a
    /// larger gradient is sent alone. The next cycle starts after these messages, but not before `cycle` has passed.
    Horovod {
        /// Largest size of a fused message.
        threshold: Bytes,
        /// Minimum time between the starts of two cycles.
        cycle: Seconds,
        /// Time per cycle for workers to agree on the gradients that are ready.
        negotiation: Seconds,
    },
    /// Given explicitly: number of gradients in each message, in backward order; remaining gradients are sent alone.
    Buckets(Arc<[u32]>),
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flush {
    /// Its first layer, in backward order.
    pub first: usize,
    pub last: usize,
    /// F: size of the gradients of all its layers.
    pub size: Bytes,
    /// When the gradients of the first layer were ready.
    pub since: Seconds,
    /// When the gradients of the last layer were ready.
    pub ready: Seconds,
    /// t_wait: how long it then waited for a layer that came too late or did not fit (eq. 14).
    pub wait: Seconds,
    /// Time for workers to agree on the message, before its all-reduce.
    pub negotiation: Seconds,
    pub start: Seconds,
    pub end: Seconds,
}

impl Flush {
    /// When the message is sent under `schedule` if the network is free: a layer, and the delay after its backward
    /// pass.
    pub fn leaves(&self, schedule: &Schedule) -> (usize, Seconds) {
        let timeout = match schedule {
            Schedule::Fused(buffer) => buffer.timeout,
            _ => None,
        };
        match timeout.filter(|timeout| self.wait.get().total_cmp(&timeout.get()).is_eq()) {
            Some(timeout) => (self.last, timeout),
            // A buffer that waited, but not until the timeout, waited for a layer that did not fit.
            None => (self.last + usize::from(self.wait > Seconds::ZERO), Seconds::ZERO),
        }
    }
}

/// The times of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// T_comp: forward and backward pass (eqs. 4 and 5).
    pub computing: Seconds,
    /// T_update: time from the first gradients to the end of the last all-reduce (eqs. 9 and 16).
    pub update: Seconds,
    /// T_overlap: the part of T_update during which the backward pass is still running (eq. 10).
    pub overlap: Seconds,
    /// Time of the optimiser, which follows the exchange.
    pub after: Seconds,
}

impl Outcome {
    /// Communication that computing does not hide.
    pub fn exposed(&self) -> Seconds {
        self.update - self.overlap
    }

    /// Duration of the whole step: forward pass, backward pass of layer n, T_update, and the optimiser.
    pub fn iteration(&self) -> Seconds {
        self.computing + self.exposed() + self.after
    }

    /// OSF: computing time divided by the duration of the step (eqs. 3 and 11); 1 if no communication is exposed,
    /// even if nothing is computed.
    pub fn factor(&self) -> f64 {
        if self.exposed() > Seconds::ZERO { (self.computing + self.after) / self.iteration() } else { 1.0 }
    }
}

/// The times of one step and all its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The messages in the order in which they are sent.
    pub flushes: Vec<Flush>,
    pub outcome: Outcome,
}

impl Plan {
    /// Total size of all messages, which equals the size of all gradients.
    pub fn sent(&self) -> Bytes {
        self.flushes.iter().map(|flush| flush.size).sum()
    }

    /// Breakdown of the communication time (section 3.3 and Figures 5 and 7 of the paper), from the first gradients
    /// to the end of the last all-reduce.
    pub fn communication(&self) -> Communication {
        let mut parts = Communication { exposed: self.outcome.exposed(), ..Communication::default() };
        let mut free = Seconds::ZERO;
        for flush in &self.flushes {
            let idle = flush.start - flush.negotiation - free;
            let waiting = idle.min(flush.start - flush.negotiation - flush.since).max(Seconds::ZERO);
            parts.wait += waiting;
            // Rounding can make differences of equal times negative.
            parts.misc += (idle - waiting).max(Seconds::ZERO);
            parts.negotiate += flush.negotiation;
            parts.allreduce += flush.end - flush.start;
            free = flush.end;
        }
        parts.misc += (self.outcome.update - free).max(Seconds::ZERO);
        parts
    }
}

/// The times of a mean step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    pub outcome: Outcome,
    pub communication: Communication,
}

impl Mean {
    fn from_plan(plan: &Plan) -> Self {
        Self { outcome: plan.outcome, communication: plan.communication() }
    }

    fn plus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    fn times(&self, factor: f64) -> Self {
        self.with(self, |a, _| a * factor)
    }

    fn with(&self, other: &Self, both: impl Fn(Seconds, Seconds) -> Seconds) -> Self {
        let (a, b) = (&self.outcome, &other.outcome);
        let (c, d) = (&self.communication, &other.communication);
        Self {
            outcome: Outcome {
                computing: both(a.computing, b.computing),
                update: both(a.update, b.update),
                overlap: both(a.overlap, b.overlap),
                after: both(a.after, b.after),
            },
            communication: Communication {
                negotiate: both(c.negotiate, d.negotiate),
                wait: both(c.wait, d.wait),
                allreduce: both(c.allreduce, d.allreduce),
                misc: both(c.misc, d.misc),
                exposed: both(c.exposed, d.exposed),
            },
        }
    }
}
