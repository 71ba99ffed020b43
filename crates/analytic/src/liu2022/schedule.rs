//! Which gradients travel together and when: the recursions of eqs. 8 and 12-17.
//!
//! Time 0 is the end of the backward pass of layer n, the first that has gradients. One all-reduce runs at a time, in
//! the order of the backward pass.

use super::pass::{Layer, Pass};
use crate::collectives::Curve;
use stepcast_core::quantity::{Bytes, Seconds};

/// Size of the buckets in which PyTorch's `DistributedDataParallel` fuses gradients by default: `bucket_cap_mb=25`, in
/// MiB (its first bucket is smaller, 1 MiB).
pub const PYTORCH_BUCKET: Bytes = Bytes::new(25.0 * 1024.0 * 1024.0);

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
pub struct Fusion {
    /// Q: most that it holds; a larger layer travels alone. May be infinite.
    pub buffer: Bytes,
    /// A layer whose backward pass takes this long or longer is not waited for beyond it. None: it always is.
    pub timeout: Option<Seconds>,
    /// How waiting and sending go together.
    pub reading: Reading,
}

impl Fusion {
    /// A buffer of this size without timeout.
    pub fn new(buffer: Bytes) -> Self {
        Self { buffer, timeout: None, reading: Reading::default() }
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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Schedule {
    /// None: each layer's as soon as they are there (eq. 8).
    #[default]
    PerLayer,
    /// All, after the backward pass: what CSF assumes (eq. 2).
    AtEnd,
    /// Those that fit into a buffer (eqs. 12-16).
    Fused(Fusion),
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
    /// When the last of them was ready.
    pub ready: Seconds,
    /// t_wait: how long it then waited for a layer that did not come in time or did not fit (eq. 14).
    pub wait: Seconds,
    /// When its all-reduce starts.
    pub start: Seconds,
    /// When it ends.
    pub end: Seconds,
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
}

impl Outcome {
    /// Communication that computing does not hide.
    pub fn exposed(&self) -> Seconds {
        self.update - self.overlap
    }

    /// The whole step: forward pass, backward pass of layer n, T_update.
    pub fn iteration(&self) -> Seconds {
        self.computing + self.exposed()
    }

    /// OSF: computing against the whole step (eqs. 3 and 11); 1 where nothing is exposed, even if nothing is computed.
    pub fn factor(&self) -> f64 {
        if self.exposed() > Seconds::ZERO { self.computing / self.iteration() } else { 1.0 }
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
}

/// The times of one step; nothing is allocated.
pub fn osf(pass: &Pass, update: &Curve, schedule: Schedule) -> Outcome {
    run(pass, update, schedule, |_| ())
}

/// The times of one step, and every message.
pub fn plan(pass: &Pass, update: &Curve, schedule: Schedule) -> Plan {
    let mut flushes = Vec::new();
    let outcome = run(pass, update, schedule, |flush| flushes.push(flush));
    Plan { flushes, outcome }
}

/// Goes through the backward pass once and hands every message to `sink`.
fn run(pass: &Pass, update: &Curve, schedule: Schedule, mut sink: impl FnMut(Flush)) -> Outcome {
    let mut ready = Seconds::ZERO;
    let mut free = Seconds::ZERO;
    let mut backward = Seconds::ZERO;
    let mut buffer = Bytes::ZERO;
    let mut first = 0;
    for (index, layer) in pass.layers.iter().enumerate() {
        backward += layer.backward;
        if index > 0 {
            ready += layer.backward;
        }
        buffer += layer.gradients;
        let next = pass.layers.get(index + 1);
        let wait = match next {
            Some(next) => match schedule.wait(update, buffer, layer, next) {
                Some(wait) => wait,
                None => continue,
            },
            None => Seconds::ZERO,
        };
        if buffer > Bytes::ZERO {
            let start = match schedule {
                Schedule::Fused(Fusion { reading: Reading::Serial, .. }) => free.max(ready) + wait,
                _ => free.max(ready + wait),
            };
            free = start + update.time(buffer);
            sink(Flush { first, last: index, size: buffer, ready, wait, start, end: free });
        }
        buffer = Bytes::ZERO;
        first = index + 1;
    }
    // Layers without gradients at the end still have to be computed: T_update is never below T_overlap.
    Outcome { computing: pass.forward + backward, update: free.max(ready), overlap: ready }
}

impl Schedule {
    /// What happens to a buffer that has just got the gradients of `layer`, before `next`: none if it stays for those
    /// of `next`; otherwise how long it waits before it is sent.
    fn wait(&self, update: &Curve, buffer: Bytes, layer: &Layer, next: &Layer) -> Option<Seconds> {
        match *self {
            Self::PerLayer => Some(Seconds::ZERO),
            Self::AtEnd => None,
            Self::Fused(fusion) => match fusion.timeout {
                // The timeout is compared with the layer that is waited for, and equality is a timeout in eqs. 12, 13
                // and 14 alike (errata 4.2, 1 and 2; print loses bytes otherwise).
                Some(timeout) if next.backward >= timeout => Some(timeout),
                // Only when it is there does the scheduler learn that it does not fit (errata 4.2, 6).
                _ if buffer + next.gradients > fusion.buffer => Some(next.backward),
                _ => None,
            },
            Self::Adaptive { timeout } => {
                let in_time = timeout.is_none_or(|timeout| next.backward < timeout);
                let together = update.time(buffer + next.gradients) + next.backward;
                let fuses = in_time && together < update.time(buffer) + update.time(next.gradients);
                (!fuses).then_some(Seconds::ZERO)
            }
            Self::MgWfbp { overhead } => {
                let fuses = next.backward < update.time(layer.gradients) + overhead;
                (!fuses).then_some(Seconds::ZERO)
            }
        }
    }
}
