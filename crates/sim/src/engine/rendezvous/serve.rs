//! A rendezvous in the engine: workers arrive, an idle lane serves what is ready, all workers go on together.

use super::Next;
use crate::engine::lane::{Chunk, Job};
use crate::engine::observe::Observer;
use crate::engine::schedule::Slot;
use crate::engine::state::Engine;

impl<O: Observer> Engine<'_, O> {
    /// A worker arrives at an operation. In steps without communication it ends at once.
    pub(in crate::engine) fn arrive(&mut self, which: u32, job: Job) {
        if self.workers.is_local(job.worker) {
            self.completions.push(job.worker, job.op);
            return;
        }
        let rendezvous = &mut self.rendezvous[which as usize];
        if rendezvous.arrive(job.op, job.remaining, self.workers.copies(job.worker)) {
            let idle = |lane: &u32| self.lanes[*lane as usize].active.is_none();
            if let Some(lane) = rendezvous.lanes.iter().copied().find(idle) {
                self.go_on_with_rendezvous(lane, which);
            }
        }
    }

    /// Selects what an idle lane of a rendezvous serves next.
    pub(in crate::engine) fn go_on_with_rendezvous(&mut self, lane: u32, which: u32) {
        let state = &mut self.lanes[lane as usize];
        match self.rendezvous[which as usize].next(self.now, &mut state.group) {
            Next::Idle => self.schedule.remove(Slot::Lane(lane)),
            Next::At(time) => {
                let sequence = self.schedule.next_sequence();
                self.schedule.set(Slot::Lane(lane), time, sequence);
            }
            Next::Serve { time, before } => {
                let first = state.group.first().copied().unwrap_or(0);
                let amount = (time - state.spec.startup).max(0.0);
                let job = Job { worker: 0, op: first, remaining: amount, rank: 0, served_before: false };
                let starting = state.spec.startup + before > 0.0;
                state.active = Some(Chunk { job, amount, since: self.now, starting, more: false });
                state.before = before;
                self.serve(lane);
            }
        }
    }

    /// What a lane of a rendezvous has served ends for all workers.
    pub(in crate::engine) fn rendezvous_ended(&mut self, lane: u32, which: u32) {
        let state = &mut self.lanes[lane as usize];
        let Some(chunk) = state.complete(self.now) else { return };
        let since = chunk.since + state.before;
        if state.before > 0.0 {
            self.observer.negotiated(chunk.since, since);
        }
        let workers = 0..self.program.workers() as u32;
        for worker in workers.filter(|&worker| self.workers.copies(worker) > 0) {
            for &op in &state.group {
                self.observer.chunk(worker, op, lane, since, self.now);
                self.completions.push(worker, op);
            }
        }
        self.rendezvous[which as usize].ended(self.now);
        self.release_successors();
        self.lanes[lane as usize].active = None;
        self.go_on_with_rendezvous(lane, which);
    }
}
