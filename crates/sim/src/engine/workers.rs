//! Progress of every worker in its current step.
//!
//! Struct of arrays, by worker or by worker and operation: an event touches a few numbers of one worker.

use crate::graph::{LocalLane, OpId};
use crate::program::Program;

#[derive(Debug, Clone)]
pub(super) struct Workers {
    operations: usize,
    local_lanes: usize,
    /// By worker and local lane: the lane of the program.
    lane_of: Vec<u32>,
    steps: Steps,
    /// By worker: where the work of its current step begins in the table of steps.
    step: Vec<usize>,
    /// By worker and operation: prerequisites that have not ended yet.
    waiting: Vec<u32>,
    /// By worker: operations that have not ended yet.
    left: Vec<u32>,
    began: Vec<f64>,
    /// By worker: weight of its flows in its current step.
    share: Vec<f64>,
    /// By worker and local lane: how many times longer than usual its operations take; empty where no lane spreads.
    factor: Vec<f64>,
    /// By worker: the workers that it stands for in its current step, itself included; 0 if another stands for it.
    copies: Vec<u32>,
    /// By worker: whether its current step is without communication (local SGD).
    local: Vec<bool>,
    /// By worker: updates that all workers had made when its current step began.
    updates_before: Vec<u64>,
    updates: u64,
}

/// The work of all steps of all kinds of workers, one after the other.
#[derive(Debug, Clone)]
struct Steps {
    work: Vec<f64>,
    /// Empty where no lane is ranked.
    rank: Vec<u32>,
    /// By kind of worker: where its steps begin.
    first: Vec<usize>,
}

impl Steps {
    fn new(program: &Program) -> Self {
        let sizes = program.steps.iter().map(|steps| steps.len() * program.graph.len());
        Self {
            work: program.steps.iter().flatten().flat_map(|step| step.work.iter().copied()).collect(),
            rank: program.steps.iter().flatten().flat_map(|step| step.rank.iter().copied()).collect(),
            first: sizes.scan(0, |first, size| Some(std::mem::replace(first, *first + size))).collect(),
        }
    }
}

impl Workers {
    pub(super) fn new(program: &Program) -> Self {
        let (workers, operations) = (program.workers(), program.graph.len());
        Self {
            operations,
            local_lanes: usize::from(program.graph.local_lanes()),
            lane_of: program.lane_of.iter().flatten().copied().collect(),
            steps: Steps::new(program),
            step: vec![0; workers],
            waiting: vec![0; workers * operations],
            left: vec![0; workers],
            began: vec![0.0; workers],
            share: vec![1.0; workers],
            factor: match program.spread {
                Some(_) => vec![1.0; workers * usize::from(program.graph.local_lanes())],
                None => Vec::new(),
            },
            copies: vec![1; workers],
            local: vec![false; workers],
            updates_before: vec![0; workers],
            updates: 0,
        }
    }

    /// A worker begins the step at `index` of the steps of its `kind`.
    pub(super) fn begin(&mut self, worker: u32, program: &Program, index: usize, now: f64, local: bool) {
        let operations = self.operations;
        let worker = worker as usize;
        self.waiting[worker * operations..][..operations].copy_from_slice(program.graph.waiting());
        self.left[worker] = operations as u32;
        self.note_beginning(worker, now, local);
        self.share[worker] = program.steps[program.kind[worker]][index].share;
        self.step[worker] = self.steps.first[program.kind[worker]] + index * operations;
    }

    fn note_beginning(&mut self, worker: usize, now: f64, local: bool) {
        self.began[worker] = now;
        self.updates_before[worker] = self.updates;
        self.local[worker] = local;
    }

    /// A worker begins a step in which another one stands for it.
    pub(super) fn follow(&mut self, worker: u32, now: f64, local: bool) {
        self.note_beginning(worker as usize, now, local);
        self.copies[worker as usize] = 0;
    }

    /// A worker is about to begin a step for this many workers, itself included.
    pub(super) fn stand_for(&mut self, worker: u32, copies: u32) {
        self.copies[worker as usize] = copies;
    }

    /// The workers that a worker stands for in its current step, itself included; 0 if another stands for it.
    #[inline]
    pub(super) fn copies(&self, worker: u32) -> u32 {
        self.copies[worker as usize]
    }

    /// Weight of a worker's flows in its current step.
    #[inline]
    pub(super) fn share(&self, worker: u32) -> f64 {
        self.share[worker as usize]
    }

    /// Ends the step of a worker; returns when it began, and the number of updates by other workers since then.
    pub(super) fn end(&mut self, worker: u32) -> (f64, u64) {
        let worker = worker as usize;
        let stale = self.updates - self.updates_before[worker];
        if !self.local[worker] {
            self.updates += 1;
        }
        (self.began[worker], stale)
    }

    /// Registers the end of a prerequisite of an operation; returns whether it was the last.
    #[inline]
    pub(super) fn prerequisite_ended(&mut self, worker: u32, op: OpId) -> bool {
        let waiting = &mut self.waiting[worker as usize * self.operations + op as usize];
        *waiting -= 1;
        *waiting == 0
    }

    /// Registers the end of an operation of a step; returns whether it was the last.
    #[inline]
    pub(super) fn operation_ended(&mut self, worker: u32) -> bool {
        let left = &mut self.left[worker as usize];
        *left -= 1;
        *left == 0
    }

    /// Whether a worker's current step is without communication.
    #[inline]
    pub(super) fn is_local(&self, worker: u32) -> bool {
        self.local[worker as usize]
    }

    #[inline]
    pub(super) fn lane(&self, worker: u32, local: LocalLane) -> u32 {
        self.lane_of[worker as usize * self.local_lanes + usize::from(local)]
    }

    /// Units of work of an operation on a local lane in the worker's current step.
    #[inline]
    pub(super) fn work(&self, worker: u32, op: OpId, local: LocalLane) -> f64 {
        let work = self.steps.work[self.step[worker as usize] + op as usize];
        let factor = self.factor.get(worker as usize * self.local_lanes + usize::from(local));
        work * factor.copied().unwrap_or(1.0)
    }

    /// How many times longer than usual the operations of each local lane of a worker take; empty where no lane spreads.
    pub(super) fn factors_mut(&mut self, worker: u32) -> &mut [f64] {
        let lanes = if self.factor.is_empty() { 0 } else { self.local_lanes };
        &mut self.factor[worker as usize * lanes..][..lanes]
    }

    /// Rank of an operation in the worker's current step, 0 where steps have none.
    #[inline]
    pub(super) fn rank(&self, worker: u32, op: OpId) -> u32 {
        self.steps.rank.get(self.step[worker as usize] + op as usize).copied().unwrap_or(0)
    }
}

// Versions of data that workers share through a lane, such as weights behind a lock.
//
// An operation that publishes makes a new version when it ends. One that subscribes has work to do only if there is a
// version that its worker has not seen.

/// Versions by lane; both tables are empty where no operation subscribes.
#[derive(Debug, Clone)]
pub(super) struct Versions {
    operations: usize,
    /// By lane: the latest version.
    latest: Vec<u64>,
    /// By worker and operation: the version that it has seen.
    seen: Vec<u64>,
}

impl Versions {
    pub(super) fn new(program: &Program) -> Self {
        let operations = program.graph.len();
        let (lanes, seen) = match program.graph.has_subscribers() {
            true => (program.lanes.len(), program.workers() * operations),
            false => (0, 0),
        };
        Self { operations, latest: vec![0; lanes], seen: vec![0; seen] }
    }

    pub(super) fn publish(&mut self, lane: u32) {
        self.latest[lane as usize] += 1;
    }

    /// Lets a worker's operation see the latest version of a lane; returns whether it is new.
    pub(super) fn catch_up(&mut self, worker: u32, op: OpId, lane: u32) -> bool {
        let latest = self.latest[lane as usize];
        let seen = &mut self.seen[worker as usize * self.operations + op as usize];
        std::mem::replace(seen, latest) != latest
    }
}
