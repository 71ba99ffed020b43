//! Operations, steps and locks: what becomes ready when something has ended.

use super::lane::{Chunk, Discipline, Job, Station};
use super::observe::Observer;
use super::state::Engine;
use crate::graph::{LocalLane, OpId};

impl<O: Observer> Engine<'_, O> {
    pub(super) fn start_step(&mut self, worker: u32) {
        let (index, local) = self.draw(worker);
        self.begin_step(worker, index, local);
    }

    /// Draws the next step of a worker: its index, and whether it is without communication.
    pub(super) fn draw(&mut self, worker: u32) -> (usize, bool) {
        let program = self.program;
        let choices = program.steps[program.kind[worker as usize]].len() as u32;
        let local = program.coordination.is_local(self.coordinator.done(worker));
        (self.sampler.below(worker, choices) as usize, local)
    }

    /// Begins the step at `index` of the steps of a worker's kind.
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
        // All are in their queues before the first is served: what is sent first must find the others waiting.
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

    /// Releases the successors of all operations that have ended, and of those that end at once because of it.
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
            // Connections carry bytes: what has none is there at once.
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
