//! Where the time of all-reduces goes, as one worker sees it.

use stepcast_core::prediction::Communication;
use stepcast_core::quantity::Seconds;
use stepcast_sim::{Observer, Role, Steps};

/// Measures the exchanges of the first worker, step by step.
pub(super) struct Exchanges {
    pub(super) steps: Steps,
    roles: Vec<Role>,
    /// When the gradients of each layer were ready in the step under way.
    ready: Vec<f64>,
    /// Messages of the step under way: start, end, first layer.
    messages: Vec<(f64, f64, usize)>,
    negotiated: f64,
    sum: Communication,
    counted: u64,
    /// Steps that do not count.
    warm_up: u64,
}

impl Exchanges {
    pub(super) fn new(roles: Vec<Role>, warm_up: u64) -> Self {
        Self {
            steps: Steps::default(),
            ready: vec![0.0; roles.len()],
            roles,
            messages: Vec::new(),
            negotiated: 0.0,
            sum: Communication::default(),
            counted: 0,
            warm_up,
        }
    }

    /// The mean over all steps that exchanged something.
    pub(super) fn mean(&self) -> Communication {
        let share = |time: Seconds| time / self.counted.max(1) as f64;
        Communication {
            negotiate: share(self.sum.negotiate),
            wait: share(self.sum.wait),
            allreduce: share(self.sum.allreduce),
            misc: share(self.sum.misc),
            exposed: share(self.sum.exposed),
        }
    }

    /// Time from the first gradients to the end of the last message or of the backward pass, whichever is later.
    fn count(&mut self) {
        self.messages.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first_ready =
            self.messages.iter().map(|message| self.ready[message.2]).fold(f64::INFINITY, f64::min);
        let backward = self.ready.iter().copied().fold(0.0, f64::max);
        let mut free = first_ready;
        let (mut wait, mut misc, mut allreduce) = (0.0, 0.0, 0.0);
        for &(start, end, first) in &self.messages {
            let idle = (start - free).max(0.0);
            let waiting = idle.min((start - self.ready[first]).max(0.0));
            wait += waiting;
            misc += idle - waiting;
            allreduce += (end - start.max(free)).max(0.0);
            free = free.max(end);
        }
        misc += (backward - free).max(0.0);
        let negotiated = self.negotiated.min(wait);
        self.sum.negotiate += Seconds::new(negotiated);
        self.sum.wait += Seconds::new(wait - negotiated);
        self.sum.misc += Seconds::new(misc);
        self.sum.allreduce += Seconds::new(allreduce);
        self.sum.exposed += Seconds::new((free - backward).max(0.0));
        self.counted += 1;
    }
}

impl Observer for Exchanges {
    fn chunk(&mut self, worker: u32, op: u32, _lane: u32, since: f64, until: f64) {
        if worker > 0 {
            return;
        }
        match self.roles[op as usize] {
            Role::Backward(layer) => self.ready[layer] = until,
            Role::Message(first) => self.messages.push((since, until, first)),
            Role::Other => {}
        }
    }

    fn negotiated(&mut self, since: f64, until: f64) {
        self.negotiated += until - since;
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.steps.step(worker, since, until, stale);
        if worker > 0 {
            return;
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else if !self.messages.is_empty() {
            self.count();
        }
        self.messages.clear();
        self.negotiated = 0.0;
    }
}
