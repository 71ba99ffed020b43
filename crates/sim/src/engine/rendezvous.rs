//! A rendezvous: operations that all workers take part in, such as all-reduces.
//!
//! An operation is ready when every worker has arrived at it. Ready operations are served in the order in which they
//! became ready, by as many lanes as belong to the rendezvous, and end for all workers at once. Horovod's cycles fuse
//! several of them first.

use super::lane::Discipline;
use super::steps::of_run;
use crate::engine::Engine;
use crate::engine::lane::{Chunk, Job};
use crate::engine::observe::Observer;
use crate::engine::schedule::Slot;
use crate::graph::OpId;
use crate::program::Program;
use std::collections::VecDeque;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::Bytes;

/// When ready operations are served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Launch {
    /// Each separately, as soon as a lane is free.
    AtOnce,
    /// Operations that are ready when a cycle begins are fused up to a threshold and served on one lane. The next cycle begins
    /// when they have been served, but not before the length of a cycle has passed.
    Cycles {
        /// Seconds from one cycle to the next, at least.
        length: f64,
        /// Units of work that are served together; a larger operation is served alone.
        threshold: f64,
        /// Seconds that workers need at the beginning of every cycle to agree on what is ready.
        negotiation: f64,
        /// The beginning of the first cycle, as a share of the length; drawn for every run if none, since cycles are independent
        /// of steps.
        phase: Option<f64>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct RendezvousSpec {
    /// Number of workers, as all take part.
    pub parties: u32,
    /// When ready operations are served.
    pub launch: Launch,
    /// Seconds by amount of work, the lanes' start-up included.
    pub curve: Curve,
}

#[derive(Debug, Clone)]
pub(crate) struct Rendezvous {
    pub(crate) spec: RendezvousSpec,
    pub(crate) lanes: Vec<u32>,
    /// By operation: how many workers have arrived at it.
    arrived: Vec<u32>,
    ready: VecDeque<(OpId, f64)>,
    /// Ready operations that belong to the cycle under way.
    in_cycle: usize,
    /// Whether the negotiation of the cycle under way is still to come.
    negotiates: bool,
    next_cycle: f64,
    began: f64,
}

/// Next action of a lane of a rendezvous.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Next {
    Idle,
    /// It waits for the beginning of a cycle.
    At(f64),
    /// It serves operations for `time` seconds, after `before` seconds of negotiation.
    Serve {
        time: f64,
        before: f64,
    },
}

impl Rendezvous {
    pub(crate) fn all(program: &Program, seed: u64) -> Vec<Self> {
        let lanes = |which: u32| {
            let serves =
                |lane: &u32| program.lanes[*lane as usize].discipline == Discipline::Rendezvous(which);
            (0..program.lanes.len() as u32).filter(serves).collect()
        };
        let numbered = (0..).zip(&program.rendezvous);
        numbered
            .map(|(which, spec)| Self::new(spec.clone(), lanes(which), program.graph.len(), seed))
            .collect()
    }

    fn new(spec: RendezvousSpec, lanes: Vec<u32>, operations: usize, seed: u64) -> Self {
        let next_cycle = match spec.launch {
            Launch::Cycles { length, phase, .. } => phase.unwrap_or_else(|| of_run(seed)) * length,
            Launch::AtOnce => 0.0,
        };
        Self {
            spec,
            lanes,
            arrived: vec![0; operations],
            ready: VecDeque::new(),
            in_cycle: 0,
            negotiates: false,
            next_cycle,
            began: 0.0,
        }
    }

    /// Registers the arrival of this many workers at an operation, and returns whether they were the last ones.
    pub(crate) fn arrive(&mut self, op: OpId, amount: f64, workers: u32) -> bool {
        let arrived = &mut self.arrived[op as usize];
        *arrived += workers;
        if *arrived < self.spec.parties {
            return false;
        }
        *arrived = 0;
        self.ready.push_back((op, amount));
        true
    }

    /// Decides what is served next, and puts its operations into `group`.
    pub(crate) fn next(&mut self, now: f64, group: &mut Vec<OpId>) -> Next {
        group.clear();
        let Some(&(_, first)) = self.ready.front() else { return Next::Idle };
        let Launch::Cycles { length, threshold, negotiation, .. } = self.spec.launch else {
            group.extend(self.ready.pop_front().map(|(op, _)| op));
            return self.serve(first, 0.0);
        };
        if self.in_cycle == 0 {
            let late = (now - self.next_cycle) / length;
            if late > 0.0 {
                self.next_cycle += length * late.ceil();
            }
            if self.next_cycle > now {
                return Next::At(self.next_cycle);
            }
            self.begin_cycle(now);
        }
        let before = if self.negotiates { negotiation } else { 0.0 };
        self.negotiates = false;
        let mut amount = 0.0;
        while self.in_cycle > 0 {
            let Some(&(op, work)) = self.ready.front() else { break };
            if !group.is_empty() && amount + work > threshold {
                break;
            }
            amount += work;
            group.push(op);
            self.ready.pop_front();
            self.in_cycle -= 1;
        }
        self.serve(amount, before)
    }

    fn serve(&self, amount: f64, before: f64) -> Next {
        Next::Serve { time: self.spec.curve.time(Bytes::new(amount)).get(), before }
    }

    /// Begins a cycle with the operations that are ready now.
    fn begin_cycle(&mut self, now: f64) {
        self.in_cycle = self.ready.len();
        self.negotiates = true;
        self.began = now;
    }

    pub(crate) fn ended(&mut self, now: f64) {
        if let Launch::Cycles { length, .. } = self.spec.launch {
            self.next_cycle = now.max(self.began + length);
        }
    }

    /// Operations at which some workers have arrived and others have not.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = OpId> {
        let partly = self.arrived.iter().enumerate().filter(|(_, arrived)| **arrived > 0);
        partly.map(|(op, _)| op as OpId)
    }
}

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

    /// Ends the operations that a lane of a rendezvous has served, for all workers.
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
