//! A gathering: an operation that all workers take part in, such as an all-reduce.
//!
//! Every worker offers its operation; when all have, it is ready. Ready operations are served in the order in which they
//! became ready, by as many lanes as belong to the gathering, and end for everybody at once. Horovod's cycles fuse
//! them first.

use crate::graph::OpId;
use std::collections::VecDeque;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::Bytes;

/// When ready operations are served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Launch {
    /// Each by itself, as soon as a lane is free.
    AtOnce,
    /// Those that are ready when a cycle begins, fused up to a threshold; the next cycle begins when they have been
    /// served, and not before its length is over. One lane.
    Cycles {
        /// Seconds from one cycle to the next, at least.
        length: f64,
        /// Units of work that are served together; a larger operation is served alone.
        threshold: f64,
        /// Seconds of agreement at the beginning of every cycle.
        negotiation: f64,
    },
}

/// A gathering, as a builder describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct GatheringSpec {
    /// How many workers take part: all of them.
    pub parties: u32,
    /// When ready operations are served.
    pub launch: Launch,
    /// Seconds by amount of work, the lanes' start-up included.
    pub curve: Curve,
}

/// A gathering at work.
#[derive(Debug, Clone)]
pub(crate) struct Gathering {
    pub(crate) spec: GatheringSpec,
    /// The lanes that serve it.
    pub(crate) lanes: Vec<u32>,
    /// By operation: how many workers have offered it.
    arrived: Vec<u32>,
    ready: VecDeque<(OpId, f64)>,
    /// Ready operations that belong to the cycle under way.
    in_cycle: usize,
    /// Whether the cycle under way still has to agree.
    agreeing: bool,
    /// The earliest beginning of the next cycle.
    next_cycle: f64,
    began: f64,
}

/// What a lane of a gathering does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Next {
    /// Nothing is ready.
    Idle,
    /// A cycle begins then.
    At(f64),
    /// So many seconds of work, after so many others.
    Serve { time: f64, before: f64 },
}

impl Gathering {
    pub(crate) fn new(spec: GatheringSpec, lanes: Vec<u32>, operations: usize) -> Self {
        // Gradients find Horovod's loop half-way on average.
        let next_cycle = if let Launch::Cycles { length, .. } = spec.launch { 0.5 * length } else { 0.0 };
        Self {
            spec,
            lanes,
            arrived: vec![0; operations],
            ready: VecDeque::new(),
            in_cycle: 0,
            agreeing: false,
            next_cycle,
            began: 0.0,
        }
    }

    /// A worker offers an operation; whether it was the last one.
    pub(crate) fn offer(&mut self, op: OpId, amount: f64) -> bool {
        let arrived = &mut self.arrived[op as usize];
        *arrived += 1;
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
        let Launch::Cycles { length, threshold, negotiation } = self.spec.launch else {
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
        let before = if self.agreeing { negotiation } else { 0.0 };
        self.agreeing = false;
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

    /// A cycle begins: what is ready now belongs to it.
    pub(crate) fn begin_cycle(&mut self, now: f64) {
        self.in_cycle = self.ready.len();
        self.agreeing = true;
        self.began = now;
    }

    /// What was served has ended.
    pub(crate) fn ended(&mut self, now: f64) {
        if let Launch::Cycles { length, .. } = self.spec.launch {
            self.next_cycle = now.max(self.began + length);
        }
    }

    /// Operations that some have offered and others have not.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = OpId> {
        let partly = self.arrived.iter().enumerate().filter(|(_, arrived)| **arrived > 0);
        partly.map(|(op, _)| op as OpId)
    }
}
