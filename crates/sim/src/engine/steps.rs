//! Operations, steps and locks: what becomes ready when something has ended.

use super::state::{Delayed, Engine};
use crate::graph::{LocalLane, OpId};
use crate::lane::{Chunk, Discipline, Job, Station};
use crate::observe::Observer;

impl<O: Observer> Engine<'_, O> {
    pub(super) fn start_step(&mut self, worker: u32) {
        let program = self.program;
        let index = worker as usize;
        let operations = program.graph.len();
        self.waiting[index * operations..][..operations].copy_from_slice(program.graph.waiting());
        self.left[index] = operations as u32;
        self.began[index] = self.now;
        self.updates_before[index] = self.updates;
        self.local[index] = program.coordination.is_local(self.coordinator.done(worker));
        let choices = &program.steps[program.kind[index]];
        let step = self.sampler.below(worker, choices.len() as u32) as usize;
        self.step[index] = self.kind_base[program.kind[index]] + step * operations;
        // All are in their queues before the first is served: what is sent first must find the others waiting.
        let sources = &choices[step].sources;
        for &source in sources {
            self.queue_up(worker, source);
        }
        for &source in sources {
            let lane = self.lane(worker, program.graph.lane(source));
            if self.lanes[lane as usize].active.is_none() {
                self.go_on(lane);
            }
        }
    }

    pub(super) fn step_ended(&mut self, worker: u32) {
        let index = worker as usize;
        let stale = self.updates - self.updates_before[index];
        if !self.local[index] {
            self.updates += 1;
        }
        self.observer.step(worker, self.began[index], self.now, stale);
        self.coordinator.ended(worker, &mut self.starting);
        let mut starting = std::mem::take(&mut self.starting);
        for next in starting.drain(..) {
            if self.coordinator.done(next) >= self.limits.steps_per_worker {
                self.stopped += 1;
            } else {
                self.start_step(next);
            }
        }
        self.starting = starting;
    }

    /// Works off all operations that have ended, and those that end at once because of it.
    pub(super) fn tell_successors(&mut self) {
        let graph = &self.program.graph;
        while let Some((worker, op)) = self.ended.pop() {
            self.operations += 1;
            if let Some(local) = graph.announces(op) {
                let lane = self.lane(worker, local);
                self.news[lane as usize] += 1;
            }
            if let Some(local) = graph.releases(op) {
                self.release(self.lane(worker, local));
            }
            let row = worker as usize * graph.len();
            for &next in graph.successors(op) {
                let waiting = &mut self.waiting[row + next as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    self.enqueue(worker, next);
                }
            }
            self.left[worker as usize] -= 1;
            if self.left[worker as usize] == 0 {
                self.step_ended(worker);
            }
        }
    }

    /// An operation is ready: it is served at once if its lane is idle.
    pub(super) fn enqueue(&mut self, worker: u32, op: OpId) {
        let lane = self.queue_up(worker, op);
        if self.lanes[lane as usize].active.is_none() {
            self.go_on(lane);
        }
    }

    /// Puts an operation into its lane's queue; those of locks and barriers may end at once.
    pub(super) fn queue_up(&mut self, worker: u32, op: OpId) -> u32 {
        let local = self.program.graph.lane(op);
        let lane = self.lane(worker, local);
        let remaining = if self.is_old(worker, op) { 0.0 } else { self.work(worker, op, local) };
        let rank = self.rank.get(self.step[worker as usize] + op as usize).copied().unwrap_or(0);
        let job = Job { worker, op, remaining, rank, served_before: false };
        let state = &mut self.lanes[lane as usize];
        match state.spec.discipline {
            Discipline::Lock if state.active.is_none() => self.acquire(lane, job),
            Discipline::Barrier(parties) => {
                state.push(job);
                if state.waiting() >= parties as usize {
                    while let Some(job) = self.lanes[lane as usize].pop() {
                        self.ended.push((job.worker, job.op));
                    }
                }
            }
            Discipline::Gathering(which) => self.offer(which, job),
            Discipline::Delay => {
                self.sequence += 1;
                let (since, until) = (self.now, self.now + job.remaining);
                let sequence = self.sequence;
                self.delayed.push(Delayed { until, sequence, worker, op, lane, since });
                self.retime_delayed();
            }
            _ => {
                state.push(job);
                if let (Station::Tcp { worker, up }, Some(tcp)) = (state.spec.station, &mut self.tcp) {
                    tcp.offer(self.now, worker, up, job.remaining, &mut self.sampler);
                    self.schedule_tick();
                }
                self.tell_waiting(lane);
            }
        }
        lane
    }

    /// Whether the operation reads news and there are none since the worker's last step.
    fn is_old(&mut self, worker: u32, op: OpId) -> bool {
        let Some(local) = self.program.graph.reads(op) else { return false };
        let news = self.news[self.lane(worker, local) as usize];
        let seen = &mut self.seen[worker as usize * self.program.graph.len() + op as usize];
        std::mem::replace(seen, news) == news
    }

    pub(super) fn acquire(&mut self, lane: u32, job: Job) {
        let held = Chunk { job, amount: 0.0, since: self.now, starting: false, more: false };
        self.lanes[lane as usize].active = Some(held);
        self.ended.push((job.worker, job.op));
    }

    pub(super) fn release(&mut self, lane: u32) {
        self.lanes[lane as usize].complete(self.now);
        self.lanes[lane as usize].active = None;
        if let Some(job) = self.lanes[lane as usize].pop() {
            self.acquire(lane, job);
        }
    }

    pub(super) fn lane(&self, worker: u32, local: LocalLane) -> u32 {
        self.lane_of[worker as usize * usize::from(self.program.graph.local_lanes()) + usize::from(local)]
    }

    pub(super) fn work(&self, worker: u32, op: OpId, local: LocalLane) -> f64 {
        if self.local[worker as usize] && self.program.silent_when_local[usize::from(local)] {
            return 0.0;
        }
        self.work[self.step[worker as usize] + op as usize]
    }
}
