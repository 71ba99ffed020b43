//! A lane: a queue of operations of which one is served at a time.
//!
//! A lane is private to a worker (its computing unit, its connection to a server) or shared by all (a server that
//! serves requests one by one, a lock, a barrier). The lane's [`Station`] serves the head of the queue.

use super::stations::links::Route;
use crate::graph::OpId;
use std::collections::VecDeque;

/// Station that serves a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Station {
    /// The lane alone is served, with this many units of work a second.
    Own(f64),
    Pool(u32),
    /// Links, shared max-min fairly.
    Links(Route),
    Tcp {
        worker: u32,
        /// To the server, or from it.
        up: bool,
    },
}

/// When the rest of a preempted stream rejoins the queue (errata 3.2, ambiguity a).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requeue {
    /// When its first chunk is selected.
    #[default]
    OnSelection,
    /// When its first chunk has been sent.
    OnCompletion,
}

/// Which stream a lane serves next when several wait (errata 3.2, ambiguity b).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamOrder {
    #[default]
    Fifo,
    /// Streams that have not been served yet overtake those that wait for their second service.
    NewFirst,
}

/// HTTP/2 streams in one connection, as gRPC sends them (Li 2020, section 3.2.2): a stream is preempted once, after
/// `window` units, and then sent to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streams {
    /// Units after which a stream is preempted; infinite with flow control off.
    pub window: f64,
    /// When the rest rejoins the queue.
    pub requeue: Requeue,
    pub order: StreamOrder,
}

/// How a lane serves its queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Discipline {
    /// One after the other, in order of arrival.
    Fifo,
    /// One after the other; of those that wait, the one with the lowest rank in its step goes first.
    Ranked,
    /// All at once: each operation takes its own time, and none waits for another.
    Delay,
    /// One after the other, in order of arrival, long ones in two parts.
    Streams(Streams),
    /// An operation ends as soon as it holds the lock; the lock is free again when an operation that releases it ends.
    Lock,
    /// Operations end together once this many have arrived.
    Barrier(u32),
    /// One of the lanes that serve a rendezvous of the program.
    Rendezvous(u32),
}

/// A lane, as a builder describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSpec {
    pub discipline: Discipline,
    pub station: Station,
    /// Seconds that pass before every operation's first unit of work.
    pub startup: f64,
    /// The pool that the start-up occupies, where it is not just a delay.
    pub startup_pool: Option<u32>,
}

impl LaneSpec {
    /// A lane that serves one operation after the other at its own rate.
    pub fn own(rate: f64) -> Self {
        Self { discipline: Discipline::Fifo, station: Station::Own(rate), startup: 0.0, startup_pool: None }
    }
}

/// An operation of a worker, waiting in a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Job {
    pub(crate) worker: u32,
    pub(crate) op: OpId,
    pub(crate) remaining: f64,
    pub(crate) rank: u32,
    pub(crate) served_before: bool,
}

/// The part of a job that is being served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) job: Job,
    pub(crate) amount: f64,
    pub(crate) since: f64,
    /// Whether the start-up time still runs.
    pub(crate) starting: bool,
    pub(crate) more: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) spec: LaneSpec,
    queue: VecDeque<Job>,
    /// Streams waiting for their second service, where new ones overtake them.
    second: VecDeque<Job>,
    pub(crate) active: Option<Chunk>,
    /// The operations of a rendezvous that are served together.
    pub(crate) group: Vec<OpId>,
    /// Seconds of negotiation before they are served, beside the start-up.
    pub(crate) before: f64,
    /// Seconds during which something was served.
    pub(crate) busy: f64,
}

impl Lane {
    pub(crate) fn new(spec: LaneSpec) -> Self {
        Self {
            spec,
            queue: VecDeque::new(),
            second: VecDeque::new(),
            active: None,
            group: Vec::new(),
            before: 0.0,
            busy: 0.0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, job: Job) {
        let overtaken = matches!(
            self.spec.discipline,
            Discipline::Streams(Streams { order: StreamOrder::NewFirst, .. }) if job.served_before
        );
        if overtaken {
            self.second.push_back(job);
        } else if self.spec.discipline == Discipline::Ranked {
            let behind = self.queue.partition_point(|other| other.rank <= job.rank);
            self.queue.insert(behind, job);
        } else {
            self.queue.push_back(job);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.second.len()
    }

    /// All operations that wait or are being served.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        let active = self.active.as_ref().map(|chunk| &chunk.job);
        active.into_iter().chain(&self.queue).chain(&self.second)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Job> {
        self.queue.pop_front().or_else(|| self.second.pop_front())
    }

    /// Selects the next chunk and makes it the active one.
    #[inline]
    pub(crate) fn select(&mut self, now: f64) -> Option<Chunk> {
        let job = self.pop()?;
        let amount = match self.spec.discipline {
            Discipline::Streams(Streams { window, .. }) if !job.served_before => job.remaining.min(window),
            _ => job.remaining,
        };
        let more = amount < job.remaining;
        let chunk =
            Chunk { job, amount, since: now, starting: self.spec.startup > 0.0 && !job.served_before, more };
        if more && self.requeues(Requeue::OnSelection) {
            self.push(rest(&chunk));
        }
        self.active = Some(chunk);
        Some(chunk)
    }

    /// The active chunk is done. The lane stays occupied until the next one is selected.
    #[inline]
    pub(crate) fn complete(&mut self, now: f64) -> Option<Chunk> {
        let chunk = self.active?;
        self.busy += now - chunk.since;
        if chunk.more && self.requeues(Requeue::OnCompletion) {
            self.push(rest(&chunk));
        }
        Some(chunk)
    }

    #[inline]
    fn requeues(&self, when: Requeue) -> bool {
        matches!(self.spec.discipline, Discipline::Streams(streams) if streams.requeue == when)
    }
}

fn rest(chunk: &Chunk) -> Job {
    Job { remaining: chunk.job.remaining - chunk.amount, served_before: true, ..chunk.job }
}
