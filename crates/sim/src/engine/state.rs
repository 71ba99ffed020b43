//! What an engine knows, and what it leaves behind.

use super::{End, Limits, Outcome};
use crate::coordinate::Coordinator;
use crate::gather::Gathering;
use crate::graph::OpId;
use crate::heap::Heap;
use crate::lane::{Discipline, Job, Lane, Station};
use crate::network::Network;
use crate::observe::Observer;
use crate::pool::Pool;
use crate::program::Program;
use crate::sample::Sampler;
use crate::tcp::Tcp;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// An operation on a lane where nobody waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Delayed {
    pub(super) until: f64,
    pub(super) sequence: u64,
    pub(super) worker: u32,
    pub(super) op: OpId,
    pub(super) lane: u32,
    pub(super) since: f64,
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    /// The one that ends first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.until.total_cmp(&self.until).then(other.sequence.cmp(&self.sequence))
    }
}

pub(super) struct Engine<'a, O> {
    pub(super) program: &'a Program,
    pub(super) limits: Limits,
    pub(super) observer: &'a mut O,
    pub(super) now: f64,
    pub(super) sequence: u64,
    pub(super) events: u64,
    pub(super) operations: u64,
    pub(super) updates: u64,
    pub(super) lanes: Vec<Lane>,
    pub(super) pools: Vec<Pool>,
    /// The pool whose event has still to be moved.
    pub(super) unsettled: Option<usize>,
    pub(super) gatherings: Vec<Gathering>,
    /// Pools of the coupling on which somebody computes.
    pub(super) computing: u32,
    /// By pool: whether it served anybody when it was last looked at.
    pub(super) was_busy: Vec<bool>,
    pub(super) network: Network,
    pub(super) heap: Heap,
    pub(super) coordinator: Coordinator,
    pub(super) sampler: Sampler,
    /// Work of all steps of all kinds, one after the other.
    pub(super) work: Vec<f64>,
    /// Ranks, likewise; empty where no lane is ranked.
    pub(super) rank: Vec<u32>,
    /// Where each kind's steps begin there.
    pub(super) kind_base: Vec<usize>,
    /// Lane of every worker's local lane.
    pub(super) lane_of: Vec<u32>,
    /// Per worker and operation: prerequisites still missing.
    pub(super) waiting: Vec<u32>,
    /// Per worker: where the work of the step drawn begins, its operations left, its beginning, and updates made
    /// before it.
    pub(super) step: Vec<usize>,
    pub(super) left: Vec<u32>,
    pub(super) began: Vec<f64>,
    pub(super) updates_before: Vec<u64>,
    pub(super) local: Vec<bool>,
    /// Jobs that have ended but whose successors have not been told; empty between events.
    pub(super) ended: Vec<(u32, OpId)>,
    pub(super) starting: Vec<u32>,
    pub(super) tcp: Option<Tcp>,
    /// Lanes that are TCP connections.
    pub(super) tcp_lanes: Vec<u32>,
    /// Operations on lanes where nobody waits.
    pub(super) delayed: BinaryHeap<Delayed>,
    pub(super) stopped: u32,
    /// Per lane: news so far; per worker and operation: news when it last looked. Empty where nothing reads news.
    pub(super) news: Vec<u64>,
    pub(super) seen: Vec<u64>,
}

impl<'a, O: Observer> Engine<'a, O> {
    pub(super) fn new(program: &'a Program, seed: u64, limits: Limits, observer: &'a mut O) -> Self {
        let workers = program.workers();
        let operations = program.graph.len();
        let sizes = program.steps.iter().map(|steps| steps.len() * operations);
        let mut sampler = Sampler::new(seed, workers);
        let kind_base = sizes.scan(0, |base, size| Some(std::mem::replace(base, *base + size))).collect();
        let slots = program.lanes.len() + program.pools.len() + 3;
        Self {
            program,
            limits,
            observer,
            now: 0.0,
            sequence: 0,
            events: 0,
            operations: 0,
            updates: 0,
            lanes: program.lanes.iter().map(|spec| Lane::new(*spec)).collect(),
            pools: program.pools.iter().map(|spec| Pool::new(spec.capacity, spec.cap)).collect(),
            unsettled: None,
            gatherings: gatherings(program),
            computing: 0,
            was_busy: vec![false; program.pools.len()],
            network: Network::new(program.ports.clone()),
            heap: Heap::new(slots),
            coordinator: Coordinator::new(program.coordination, workers),
            work: program.steps.iter().flatten().flat_map(|step| step.work.iter().copied()).collect(),
            rank: program.steps.iter().flatten().flat_map(|step| step.rank.iter().copied()).collect(),
            kind_base,
            lane_of: program.lane_of.iter().flatten().copied().collect(),
            waiting: vec![0; workers * operations],
            step: vec![0; workers],
            left: vec![0; workers],
            began: vec![0.0; workers],
            updates_before: vec![0; workers],
            local: vec![false; workers],
            ended: Vec::new(),
            starting: Vec::new(),
            tcp: program.tcp.map(|spec| Tcp::new(spec, workers, &mut sampler)),
            tcp_lanes: (0..program.lanes.len() as u32)
                .filter(|&lane| matches!(program.lanes[lane as usize].station, Station::Tcp { .. }))
                .collect(),
            delayed: BinaryHeap::new(),
            sampler,
            stopped: 0,
            news: vec![0; if program.graph.has_news() { program.lanes.len() } else { 0 }],
            seen: vec![0; if program.graph.has_news() { workers * operations } else { 0 }],
        }
    }

    pub(super) fn run(&mut self) -> End {
        loop {
            let workers = self.program.workers() as u32;
            if self.stopped == workers || self.coordinator.slowest() >= self.limits.steps_of_slowest {
                return End::Completed;
            }
            self.settle();
            let Some((due, slot)) = self.heap.first() else { return End::Deadlock(self.stuck()) };
            if due.time > self.limits.time {
                self.now = self.limits.time;
                return End::TimeLimit;
            }
            if self.events >= self.limits.events {
                return End::EventBudget;
            }
            self.events += 1;
            self.now = due.time;
            self.dispatch(slot);
        }
    }

    pub(super) fn stuck(&self) -> Vec<(u32, String)> {
        let jobs = self.lanes.iter().flat_map(Lane::jobs);
        let name = |job: &Job| (job.worker, self.program.graph.name(job.op).to_owned());
        let mut names: Vec<(u32, String)> = jobs.map(name).take(16).collect();
        let gathering = self.gatherings.iter().flat_map(Gathering::incomplete);
        names.extend(gathering.take(16).map(|op| (0, self.program.graph.name(op).to_owned())));
        let blocked = self.coordinator.blocked().iter().map(|&worker| (worker, "the next step".to_owned()));
        names.extend(blocked.take(16));
        names
    }

    pub(super) fn outcome(self, end: End) -> Outcome {
        let time = self.now;
        let share = |amount: f64, whole: f64| if whole > 0.0 { amount / whole } else { 0.0 };
        let ports = self.network.used.iter().zip(self.network.capacities());
        Outcome {
            end,
            time,
            operations: self.operations,
            steps: (0..self.program.workers() as u32).map(|worker| self.coordinator.done(worker)).sum(),
            lane_busy: self.lanes.iter().map(|lane| share(lane.busy, time)).collect(),
            pool_used: self.pools.iter().map(|pool| share(pool.used, pool.capacity() * time)).collect(),
            tcp_used: self
                .tcp
                .as_ref()
                .map_or([0.0; 2], |tcp| tcp.carried.map(|bytes| share(bytes, tcp.rate() * time))),
            port_used: ports.map(|(used, capacity)| share(*used, capacity * time)).collect(),
        }
    }
}

fn gatherings(program: &Program) -> Vec<Gathering> {
    let lanes = |which: u32| {
        let serves = |lane: &u32| program.lanes[*lane as usize].discipline == Discipline::Gathering(which);
        (0..program.lanes.len() as u32).filter(serves).collect()
    };
    let numbered = (0..).zip(&program.gatherings);
    numbered.map(|(which, spec)| Gathering::new(spec.clone(), lanes(which), program.graph.len())).collect()
}
