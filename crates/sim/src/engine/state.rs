//! What an engine keeps, the loop over its events, and what a run leaves behind.

use super::coordinate::Coordinator;
use super::fold::Folds;
use super::lane::{Job, Lane};
use super::observe::Observer;
use super::rendezvous::Rendezvous;
use super::schedule::{Schedule, Slot};
use super::stations::Stations;
use super::steps::Sampler;
use super::workers::Versions;
use super::workers::Workers;
use super::{End, Limits, Outcome};
use crate::graph::OpId;
use crate::program::Program;

pub(super) struct Engine<'a, O> {
    pub(super) program: &'a Program,
    pub(super) observer: O,
    pub(super) sampler: Sampler,
    pub(super) now: f64,
    pub(super) schedule: Schedule,
    pub(super) workers: Workers,
    pub(super) coordinator: Coordinator,
    pub(super) lanes: Vec<Lane>,
    pub(super) stations: Stations,
    pub(super) rendezvous: Vec<Rendezvous>,
    pub(super) versions: Versions,
    pub(super) completions: Completions,
    /// Which workers stand for others; none where workers that are together may part within a step.
    pub(super) folds: Option<Folds>,
    progress: Progress,
}

/// Operations that have ended and whose successors have not been released yet; none between events.
#[derive(Debug, Clone, Default)]
pub(super) struct Completions {
    ended: Vec<(u32, OpId)>,
    released: u64,
}

impl Completions {
    #[inline]
    pub(super) fn push(&mut self, worker: u32, op: OpId) {
        self.ended.push((worker, op));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u32, OpId)> {
        let ended = self.ended.pop()?;
        self.released += 1;
        Some(ended)
    }
}

/// How far a run has come, against what ends it.
struct Progress {
    limits: Limits,
    effort: u64,
    /// Workers that have done all their steps.
    stopped: u32,
}

impl<'a, O: Observer> Engine<'a, O> {
    pub(super) fn new(program: &'a Program, seed: u64, observer: O) -> Self {
        let mut sampler = Sampler::new(seed, program.workers());
        Self {
            program,
            observer,
            now: 0.0,
            schedule: Schedule::new(program.lanes.len(), program.pools.len()),
            workers: Workers::new(program),
            coordinator: Coordinator::new(program.coordination, program.workers()),
            lanes: program.lanes.iter().map(|spec| Lane::new(*spec)).collect(),
            stations: Stations::new(program, &mut sampler),
            rendezvous: Rendezvous::all(program, seed),
            versions: Versions::new(program),
            completions: Completions::default(),
            folds: (!O::EVERY_WORKER && program.is_foldable()).then(|| Folds::new(program)),
            progress: Progress { limits: Limits::steps(u64::MAX), effort: 0, stopped: 0 },
            sampler,
        }
    }

    /// Runs until a limit is reached; it can go on from there with others.
    pub(super) fn run(&mut self, limits: Limits) -> End {
        self.progress.limits = limits;
        let Limits { steps_of_slowest, time, effort, .. } = limits;
        let workers = self.program.workers() as u32;
        loop {
            if self.progress.stopped == workers || self.coordinator.slowest() >= steps_of_slowest {
                return End::Completed;
            }
            self.settle_pool();
            self.settle_links();
            let first = self.schedule.first();
            if self.folds.as_ref().is_some_and(Folds::any_ready)
                && first.as_ref().is_none_or(|(due, _)| due.time > self.now)
            {
                self.begin_together();
                continue;
            }
            let Some((due, slot)) = first else { return End::Deadlock(self.stuck()) };
            if due.time > time {
                self.now = time;
                return End::TimeLimit;
            }
            if self.progress.effort >= effort {
                return End::EffortLimit;
            }
            self.progress.effort += 1;
            self.now = due.time;
            self.dispatch(slot);
        }
    }

    fn dispatch(&mut self, slot: Slot) {
        match slot {
            Slot::Lane(lane) => self.lane_due(lane),
            Slot::Pool(pool) => self.pool_due(pool as usize),
            Slot::Links => self.links_due(),
            Slot::Tcp => self.tick(),
            Slot::Delays => self.delay_ended(),
        }
    }

    /// Begins the next step of a worker, or stops it after its last one.
    pub(super) fn go_on_or_stop(&mut self, worker: u32) {
        if self.coordinator.done(worker) >= self.progress.limits.steps_per_worker {
            self.progress.stopped += 1;
        } else if let Some(folds) = &mut self.folds {
            folds.ready(worker);
        } else {
            self.start_step(worker);
        }
    }

    /// What the run has cost so far (see [`Limits::effort`]).
    pub(super) fn effort(&self) -> u64 {
        self.progress.effort
    }

    /// Counts work of the engine beside the events themselves.
    pub(super) fn spend(&mut self, effort: u64) {
        self.progress.effort += effort;
    }

    fn stuck(&self) -> Vec<(u32, String)> {
        let jobs = self.lanes.iter().flat_map(Lane::jobs);
        let name = |job: &Job| (job.worker, self.program.graph.name(job.op).to_owned());
        let mut names: Vec<(u32, String)> = jobs.map(name).take(16).collect();
        let incomplete = self.rendezvous.iter().flat_map(Rendezvous::incomplete);
        names.extend(incomplete.take(16).map(|op| (0, self.program.graph.name(op).to_owned())));
        let blocked = self.coordinator.blocked().iter().map(|&worker| (worker, "the next step".to_owned()));
        names.extend(blocked.take(16));
        names
    }

    pub(super) fn outcome(&self, end: End) -> Outcome {
        let time = self.now;
        Outcome {
            end,
            time,
            operations: self.completions.released,
            steps: (0..self.program.workers() as u32).map(|worker| self.coordinator.done(worker)).sum(),
            lane_busy: self.lanes.iter().map(|lane| share(lane.busy, time)).collect(),
            pool_used: self.stations.pools.used(time),
            port_used: self.stations.links.used(time),
            tcp_used: self.stations.tcp.as_ref().map_or([0.0; 2], |tcp| tcp.used(time)),
        }
    }
}

/// A part of a whole, or nothing where there is no whole.
pub(super) fn share(amount: f64, whole: f64) -> f64 {
    if whole > 0.0 { amount / whole } else { 0.0 }
}
