//! Operations, steps and locks: releases operations when others have ended.

use super::Engine;
use super::coordinate::is_local;
use super::lane::{Chunk, Discipline, Job, Station};
use super::observe::Observer;
use crate::graph::{LocalLane, OpId};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

impl<O: Observer> Engine<'_, O> {
    pub(super) fn start_step(&mut self, worker: u32) {
        let (index, local) = self.draw(worker);
        self.begin_step(worker, index, local);
    }

    /// Draws the next step of a worker; returns its index, and whether it is without communication.
    pub(super) fn draw(&mut self, worker: u32) -> (usize, bool) {
        let program = self.program;
        let choices = program.steps[program.kind[worker as usize]].len() as u32;
        let local = is_local(program.coordination, self.coordinator.done(worker));
        (self.sampler.below(worker, choices) as usize, local)
    }

    pub(super) fn begin_step(&mut self, worker: u32, index: usize, local: bool) {
        let program = self.program;
        let choices = &program.steps[program.kind[worker as usize]];
        self.workers.begin(worker, program, index, self.now, local);
        if let Some(spread) = &program.spread {
            for (factor, _) in self
                .workers
                .factors_mut(worker)
                .iter_mut()
                .zip(&spread.lanes)
                .filter(|(_, spreads)| **spreads)
            {
                *factor = self.sampler.slowest(worker, spread.jitter, spread.devices);
            }
        }
        // All sources join their queues before the first is served, so that it finds the others waiting.
        for &source in &choices[index].sources {
            self.queue_up(worker, source);
        }
        for &source in &choices[index].sources {
            let lane = self.workers.lane(worker, program.graph.lane(source));
            self.go_on_if_idle(lane);
        }
    }

    fn step_ended(&mut self, worker: u32) {
        let mut next = Some(worker);
        while let Some(worker) = next {
            let (began, stale) = self.workers.end(worker);
            self.observer.step(worker, began, self.now, stale);
            self.coordinator.ended(worker);
            next = self.unfold(worker);
        }
        while let Some(next) = self.coordinator.next_released() {
            self.go_on_or_stop(next);
        }
    }

    /// Releases the successors of all operations that have ended, and of operations that end at once as a result.
    pub(super) fn release_successors(&mut self) {
        let graph = &self.program.graph;
        while let Some((worker, op)) = self.completions.pop() {
            if let Some(local) = graph.publishes(op) {
                self.versions.publish(self.workers.lane(worker, local));
            }
            if let Some(local) = graph.releases(op) {
                self.release_lock(self.workers.lane(worker, local));
            }
            for &next in graph.successors(op) {
                if self.workers.prerequisite_ended(worker, next) {
                    self.enqueue(worker, next);
                }
            }
            if self.workers.operation_ended(worker) {
                self.step_ended(worker);
            }
        }
    }

    /// An operation is ready: it is served at once if its lane is idle.
    fn enqueue(&mut self, worker: u32, op: OpId) {
        let lane = self.queue_up(worker, op);
        self.go_on_if_idle(lane);
    }

    /// Puts an operation into its lane's queue; those of locks and barriers may end at once.
    fn queue_up(&mut self, worker: u32, op: OpId) -> u32 {
        let local = self.program.graph.lane(op);
        let lane = self.workers.lane(worker, local);
        let remaining = self.work(worker, op, local);
        let rank = self.workers.rank(worker, op);
        let job = Job { worker, op, remaining, rank, served_before: false };
        let state = &mut self.lanes[lane as usize];
        match state.spec.discipline {
            Discipline::Lock if state.active.is_none() => self.acquire_lock(lane, job),
            Discipline::Barrier(parties) => {
                state.push(job);
                if state.waiting() >= parties as usize {
                    while let Some(job) = state.pop() {
                        self.completions.push(job.worker, job.op);
                    }
                }
            }
            Discipline::Rendezvous(which) => self.arrive(which, job),
            Discipline::Delay => self.delay(lane, job),
            // Connections carry bytes: an operation without bytes arrives at once.
            _ if matches!(state.spec.station, Station::Tcp { .. }) && job.remaining <= 0.0 => {
                self.completions.push(job.worker, job.op);
            }
            _ => {
                state.push(job);
                if let Station::Tcp { worker, up } = state.spec.station {
                    self.send_by_tcp(worker, up, job.remaining);
                }
                self.observe_queue(lane);
            }
        }
        lane
    }

    /// Units of work of an operation: none for a subscriber without a new version, nor where lanes are silent because the
    /// worker's step is local.
    fn work(&mut self, worker: u32, op: OpId, local: LocalLane) -> f64 {
        if let Some(subscribed) = self.program.graph.subscribes(op) {
            let lane = self.workers.lane(worker, subscribed);
            if !self.versions.catch_up(worker, op, lane) {
                return 0.0;
            }
        }
        if self.workers.is_local(worker) && self.program.silent_when_local[usize::from(local)] {
            return 0.0;
        }
        self.workers.work(worker, op, local)
    }

    fn acquire_lock(&mut self, lane: u32, job: Job) {
        let held = Chunk { job, amount: 0.0, since: self.now, starting: false, more: false };
        self.lanes[lane as usize].active = Some(held);
        self.completions.push(job.worker, job.op);
    }

    fn release_lock(&mut self, lane: u32) {
        let state = &mut self.lanes[lane as usize];
        state.complete(self.now);
        state.active = None;
        if let Some(job) = state.pop() {
            self.acquire_lock(lane, job);
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    workers: Vec<Pcg64Mcg>,
}

impl Sampler {
    pub(crate) fn new(seed: u64, workers: usize) -> Self {
        // Two rounds of SplitMix64 spread seed and worker over the 128 bits of state.
        let state = |worker: usize| {
            let first = split_mix(seed ^ split_mix(worker as u64));
            u128::from(first) << 64 | u128::from(split_mix(first ^ seed))
        };
        Self { workers: (0..workers).map(|worker| Pcg64Mcg::new(state(worker))).collect() }
    }

    /// A number below `count`, all equally likely up to one part in 2^32.
    pub(crate) fn below(&mut self, worker: u32, count: u32) -> u32 {
        if count == 1 {
            return 0;
        }
        let random = self.workers[worker as usize].next_u64() >> 32;
        ((random * u64::from(count)) >> 32) as u32
    }

    /// A number between 0 and 1.
    pub(crate) fn uniform(&mut self, worker: u32) -> f64 {
        ((self.workers[worker as usize].next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// The time of the slowest of this many devices relative to the mean: `jitter` is the standard deviation of each.
    pub(crate) fn slowest(&mut self, worker: u32, jitter: f64, devices: u32) -> f64 {
        let slowest = (0..devices.max(1)).map(|_| self.normal(worker)).fold(f64::NEG_INFINITY, f64::max);
        (log_spread(jitter) * slowest).exp()
    }

    /// A number from the standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self, worker: u32) -> f64 {
        let radius = (-2.0 * self.uniform(worker).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform(worker)).cos()
    }
}

/// A number between 0 and 1 that belongs to a whole run: no worker's stream is touched.
pub(crate) fn of_run(seed: u64) -> f64 {
    ((split_mix(split_mix(seed)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard deviation of the logarithm of times whose standard deviation against the mean is `jitter`.
pub(crate) fn log_spread(jitter: f64) -> f64 {
    (1.0 + jitter.powi(2)).ln().sqrt()
}

fn split_mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
