//! Stations that serve the chunks of several lanes: pools, links, TCP connections, and delays without any queue.

pub(crate) mod links;
pub(super) mod pools;
pub(crate) mod tcp;

use super::lane::Station;
use super::steps::Sampler;
use crate::engine::Engine;
use crate::engine::lane::Job;
use crate::engine::observe::Observer;
use crate::engine::schedule::Slot;
use crate::graph::OpId;
use crate::program::Program;
use links::Links;
use pools::Pools;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tcp::Tcp;

#[derive(Debug, Clone)]
pub(super) struct Stations {
    pub(super) pools: Pools,
    pub(super) links: Links,
    pub(super) tcp: Option<Tcp>,
    pub(super) tcp_lanes: Vec<u32>,
    pub(super) delays: Delays,
}

impl Stations {
    pub(super) fn new(program: &Program, sampler: &mut Sampler) -> Self {
        let is_tcp = |&lane: &u32| matches!(program.lanes[lane as usize].station, Station::Tcp { .. });
        Self {
            pools: Pools::new(program),
            links: Links::new(program),
            tcp: program.tcp.map(|spec| Tcp::new(spec, program.workers(), sampler)),
            tcp_lanes: (0..program.lanes.len() as u32).filter(is_tcp).collect(),
            delays: Delays::default(),
        }
    }
}

/// An operation under way.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Delayed {
    until: f64,
    sequence: u64,
    worker: u32,
    op: OpId,
    lane: u32,
    since: f64,
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    /// The operation that ends first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.until.total_cmp(&self.until).then(other.sequence.cmp(&self.sequence))
    }
}

/// All such operations under way.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct Delays {
    under_way: BinaryHeap<Delayed>,
}

impl Delays {
    fn next(&self) -> Option<(f64, u64)> {
        self.under_way.peek().map(|next| (next.until, next.sequence))
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Begins an operation, regardless of others under way on its lane.
    pub(in crate::engine) fn delay(&mut self, lane: u32, job: Job) {
        let sequence = self.schedule.next_sequence();
        let (since, until) = (self.now, self.now + job.remaining);
        let delays = &mut self.stations.delays;
        delays.under_way.push(Delayed { until, sequence, worker: job.worker, op: job.op, lane, since });
        self.schedule.set_or_remove(Slot::Delays, delays.next());
    }

    pub(in crate::engine) fn delay_ended(&mut self) {
        let delays = &mut self.stations.delays;
        let Some(ended) = delays.under_way.pop() else { return };
        self.schedule.set_or_remove(Slot::Delays, delays.next());
        self.observer.chunk(ended.worker, ended.op, ended.lane, ended.since, self.now);
        self.completions.push(ended.worker, ended.op);
        self.release_successors();
    }
}
