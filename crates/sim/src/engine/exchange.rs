//! What all workers take part in, and how it gets into the way of computing.

use super::state::Engine;
use crate::gather::Next;
use crate::heap::Due;
use crate::lane::{Chunk, Job};
use crate::observe::Observer;

impl<O: Observer> Engine<'_, O> {
    /// A worker offers an operation. In steps without communication it is over at once.
    pub(super) fn offer(&mut self, which: u32, job: Job) {
        if self.local[job.worker as usize] {
            self.ended.push((job.worker, job.op));
            return;
        }
        let gathering = &mut self.gatherings[which as usize];
        if gathering.offer(job.op, job.remaining) {
            let idle = |lane: &u32| {
                let lane = &self.lanes[*lane as usize];
                lane.active.is_none()
            };
            if let Some(lane) = gathering.lanes.iter().copied().find(idle) {
                self.go_on_gathering(lane, which);
            }
        }
    }

    /// Selects what an idle lane of a gathering serves next.
    pub(super) fn go_on_gathering(&mut self, lane: u32, which: u32) {
        let state = &mut self.lanes[lane as usize];
        match self.gatherings[which as usize].next(self.now, &mut state.group) {
            Next::Idle => self.heap.remove(lane),
            Next::At(time) => {
                self.sequence += 1;
                self.heap.set(lane, Due { time, sequence: self.sequence });
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

    /// Everybody's operations end together.
    pub(super) fn gathering_ended(&mut self, lane: u32, which: u32) {
        let Some(chunk) = self.lanes[lane as usize].complete(self.now) else { return };
        let state = &mut self.lanes[lane as usize];
        let since = chunk.since + state.before;
        if state.before > 0.0 {
            self.observer.agreed(chunk.since, since);
        }
        let group = std::mem::take(&mut state.group);
        for worker in 0..self.program.workers() as u32 {
            for &op in &group {
                self.observer.chunk(worker, op, lane, since, self.now);
                self.ended.push((worker, op));
            }
        }
        self.lanes[lane as usize].group = group;
        self.gatherings[which as usize].ended(self.now);
        self.tell_successors();
        self.lanes[lane as usize].active = None;
        self.go_on_gathering(lane, which);
    }

    /// Somebody has joined or left a pool: computing and exchange may have met, or parted.
    pub(super) fn couple(&mut self, pool: usize) {
        let Some(coupling) = &self.program.coupling else { return };
        let exchange = coupling.exchange as usize;
        let together = |busy: bool| if busy { 1.0 / (1.0 + coupling.slowdown) } else { 1.0 };
        let busy = self.pools[pool].is_busy();
        if std::mem::replace(&mut self.was_busy[pool], busy) == busy {
            return;
        }
        if pool == exchange {
            for &pool in &coupling.computing {
                self.pools[pool as usize].set_speed(self.now, together(busy));
                self.changed(pool as usize);
            }
        } else if coupling.computing.binary_search(&(pool as u32)).is_ok() {
            let before = self.computing;
            self.computing = if busy { before + 1 } else { before - 1 };
            if before.min(self.computing) == 0 {
                self.pools[exchange].set_speed(self.now, together(busy));
                self.changed(exchange);
            }
        }
    }
}
