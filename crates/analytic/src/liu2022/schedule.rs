//! Which gradients travel together, and what comes of it.

use std::sync::Arc;
use stepcast_core::prediction::Communication;
use stepcast_core::quantity::{Bytes, Seconds};

/// Whether gradients that wait for company keep the network idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// They wait while the network carries others: a message starts when the network is free and the wait over,
    /// whichever is later (errata 4.2, 5).
    #[default]
    Concurrent,
    /// They begin to wait when the network is free: eq. 15 with corrections 1-4 of errata 4.2. Then switching
    /// fusion off is not the limit of small buffers.
    Serial,
}

/// A buffer in which gradients are fused (eqs. 12-16).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffer {
    /// Q: most that it holds; a larger layer travels alone. May be infinite.
    pub size: Bytes,
    /// A layer whose backward pass takes this long or longer is not waited for beyond it. None: it always is.
    pub timeout: Option<Seconds>,
    /// How waiting and sending go together.
    pub reading: Reading,
}

impl Buffer {
    /// A buffer of this size without timeout.
    pub fn new(size: Bytes) -> Self {
        Self { size, timeout: None, reading: Reading::default() }
    }

    /// The same with a timeout.
    #[must_use]
    pub fn timeout(self, timeout: Seconds) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The same in another reading.
    #[must_use]
    pub fn reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }
}

/// Which gradients travel together.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Schedule {
    /// None: each layer's as soon as they are there (eq. 8).
    #[default]
    PerLayer,
    /// All, after the backward pass: what CSF assumes (eq. 2).
    AtEnd,
    /// Those that fit into a buffer (eqs. 12-16).
    Fused(Buffer),
    /// adaFusion: those whose fusion saves more than waiting for them costs (eq. 17). A layer i joins the buffer B if
    ///
    /// ```text
    /// t_update(B + D(i)) + t_backward(i) < t_update(B) + t_update(D(i))
    /// ```
    ///
    /// Print has t_wait(i), the wait of layer i for the layer after it; what fusing i costs is the wait of the
    /// buffer for i (errata 4.3). The decision is made ahead, from the model: what is not to be joined does not wait.
    Adaptive {
        /// A layer whose backward pass takes this long or longer is never waited for.
        timeout: Option<Seconds>,
    },
    /// MG-WFBP as section 4.2 of the paper describes it: layer i waits for the layer after it in the backward pass if
    /// that takes less time than t_update(D(i)) + `overhead`.
    MgWfbp {
        /// What one all-reduce costs whatever its size.
        overhead: Seconds,
    },
    /// As PyTorch's `DistributedDataParallel` does once it has seen one backward pass: a bucket is closed by the gradient
    /// that brings it to its size or beyond.
    Pytorch {
        /// Size of the first bucket.
        first: Bytes,
        /// Size of the others.
        cap: Bytes,
    },
    /// As Horovod does: whenever a cycle begins, all gradients that are ready are sent, in messages of at most
    /// `threshold`, a larger one alone; the next cycle begins when they have been, and not before `cycle` is over.
    Horovod {
        /// Most that travels together.
        threshold: Bytes,
        /// Shortest time from one cycle to the next.
        cycle: Seconds,
        /// Agreeing on what is ready, once a cycle.
        negotiation: Seconds,
    },
    /// As given: how many gradients each message has, in backward order; what is left over travels alone.
    Buckets(Arc<[u32]>),
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flush {
    /// The first of its layers, in backward order.
    pub first: usize,
    /// The last of its layers.
    pub last: usize,
    /// F: gradients of all of them.
    pub size: Bytes,
    /// When the first of them was ready.
    pub since: Seconds,
    /// When the last of them was ready.
    pub ready: Seconds,
    /// t_wait: how long it then waited for a layer that did not come in time or did not fit (eq. 14).
    pub wait: Seconds,
    /// Agreeing on it, before its all-reduce.
    pub negotiation: Seconds,
    /// When its all-reduce starts.
    pub start: Seconds,
    /// When it ends.
    pub end: Seconds,
}

impl Flush {
    /// When it leaves under `schedule`, if the network is free: so long after the backward pass of this layer.
    pub fn leaves(&self, schedule: &Schedule) -> (usize, Seconds) {
        let timeout = match schedule {
            Schedule::Fused(buffer) => buffer.timeout,
            _ => None,
        };
        match timeout.filter(|timeout| self.wait.get().total_cmp(&timeout.get()).is_eq()) {
            Some(timeout) => (self.last, timeout),
            // A buffer that waited, but not until the timeout, waited for the layer that did not fit.
            None => (self.last + usize::from(self.wait > Seconds::ZERO), Seconds::ZERO),
        }
    }
}

/// The times of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// T_comp: forward and backward pass (eqs. 4 and 5).
    pub computing: Seconds,
    /// T_update: from the first gradients to the end of the last all-reduce (eqs. 9 and 16).
    pub update: Seconds,
    /// T_overlap: the part of it during which the backward pass goes on (eq. 10).
    pub overlap: Seconds,
    /// What follows the exchange: the optimiser.
    pub after: Seconds,
}

impl Outcome {
    /// Communication that computing does not hide.
    pub fn exposed(&self) -> Seconds {
        self.update - self.overlap
    }

    /// The whole step: forward pass, backward pass of layer n, T_update, and what follows.
    pub fn iteration(&self) -> Seconds {
        self.computing + self.exposed() + self.after
    }

    /// OSF: computing against the whole step (eqs. 3 and 11); 1 where nothing is exposed, even if nothing is computed.
    pub fn factor(&self) -> f64 {
        if self.exposed() > Seconds::ZERO { (self.computing + self.after) / self.iteration() } else { 1.0 }
    }
}

/// The times of one step and all its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The messages in the order in which they are sent.
    pub flushes: Vec<Flush>,
    /// The times.
    pub outcome: Outcome,
}

impl Plan {
    /// Bytes of all messages: those of all gradients.
    pub fn sent(&self) -> Bytes {
        self.flushes.iter().map(|flush| flush.size).sum()
    }

    /// Where the time of communication goes (section 3.3 and Figures 5 and 7 of the paper), from the first gradients to
    /// the end of the last all-reduce.
    pub fn communication(&self) -> Communication {
        let mut parts = Communication { exposed: self.outcome.exposed(), ..Communication::default() };
        let mut free = Seconds::ZERO;
        for flush in &self.flushes {
            let idle = flush.start - flush.negotiation - free;
            let waiting = idle.min(flush.start - flush.negotiation - flush.since).max(Seconds::ZERO);
            parts.wait += waiting;
            parts.misc += idle - waiting;
            parts.negotiate += flush.negotiation;
            parts.allreduce += flush.end - flush.start;
            free = flush.end;
        }
        parts.misc += self.outcome.update - free;
        parts
    }
}
