//! The event loop.
//!
//! One pending event per busy lane with a station of its own, one per pool, one for all links. An event is the end of
//! a chunk (or of a lane's start-up time). When the last chunk of an operation ends, its successors may become ready;
//! only then does its lane go on to the next chunk (Algorithm 3.1 of Li 2020, lines 18-31). Cost of an event:
//! O(log resources). Nothing is allocated per event once queues have grown to their largest.
//!
//! [`Engine`] has the state and the loop; [`schedule`] has the pending events, [`workers`] the current step of every worker.
//! [`steps`] releases operations when others have ended; [`service`] gives ready work of a [`lane`] to its station and continues
//! when it has been served; [`stations`] are shared by lanes; [`rendezvous`] handles operations that all workers take part in.

pub(crate) mod coordinate;
mod fold;
pub(crate) mod lane;
pub(crate) mod observe;
pub(crate) mod rendezvous;
mod schedule;
mod service;
pub(crate) mod stations;
pub(crate) mod steps;
mod workers;

use crate::graph::OpId;
use crate::program::{Program, ProgramError};
use coordinate::Coordinator;
use fold::Folds;
use lane::{Job, Lane};
use observe::{Observer, Steps};
use rendezvous::Rendezvous;
use schedule::{Schedule, Slot};
use stations::Stations;
use steps::Sampler;
use workers::{Versions, Workers};

/// When a simulation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    pub steps_per_worker: u64,
    /// Steps of the slowest worker after which all workers stop.
    pub steps_of_slowest: u64,
    /// Simulated seconds.
    pub time: f64,
    /// Work of the engine itself, against runaway programs: events, and the search for the rates of many flows.
    pub effort: u64,
}

impl Limits {
    /// Every worker does this many steps, then stops.
    pub fn steps(steps: u64) -> Self {
        Self { steps_per_worker: steps, steps_of_slowest: u64::MAX, time: f64::INFINITY, effort: u64::MAX }
    }

    /// All workers go on until the slowest has done this many steps.
    pub fn until_slowest(steps: u64) -> Self {
        Self { steps_of_slowest: steps, ..Self::steps(u64::MAX) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// All workers did their steps, or the slowest did.
    Completed,
    TimeLimit,
    /// The engine has reached its limit of work.
    EffortLimit,
    /// Operations wait for each other for ever: their workers and names.
    Deadlock(Vec<(u32, String)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub end: End,
    /// Simulated seconds.
    pub time: f64,
    pub operations: u64,
    pub steps: u64,
    /// Share of the time during which each lane was busy.
    pub lane_busy: Vec<f64>,
    pub pool_used: Vec<f64>,
    pub port_used: Vec<f64>,
    /// Share of the server's port that TCP used, down and up.
    pub tcp_used: [f64; 2],
}

/// Runs a program from the beginning to a limit, workers starting together.
pub fn run<O: Observer>(
    program: &Program,
    seed: u64,
    limits: Limits,
    observer: &mut O,
) -> Result<Outcome, ProgramError> {
    let mut run = Run::new(program, seed, observer)?;
    let end = run.go_on(limits);
    Ok(run.outcome(end))
}

/// The steps of a run, as [`run`] finds them. Not generic, so that the engine is optimised as this crate is, whoever calls it.
pub fn run_steps(program: &Program, seed: u64, limits: Limits) -> Result<(Outcome, Steps), ProgramError> {
    let mut steps = Steps::default();
    let outcome = run(program, seed, limits, &mut steps)?;
    Ok((outcome, steps))
}

pub struct Run<'a, O> {
    engine: Engine<'a, O>,
}

impl<'a, O: Observer> Run<'a, O> {
    /// A program at its beginning, workers starting together.
    pub fn new(program: &'a Program, seed: u64, observer: O) -> Result<Self, ProgramError> {
        program.check()?;
        let mut engine = Engine::new(program, seed, observer);
        for worker in 0..program.workers() as u32 {
            engine.go_on_or_stop(worker);
        }
        engine.release_successors();
        Ok(Self { engine })
    }

    /// Goes on until one of the limits, which count from the beginning, is reached. Workers that have stopped after
    /// `steps_per_worker` do not start again.
    pub fn go_on(&mut self, limits: Limits) -> End {
        self.engine.run(limits)
    }

    /// Simulated seconds so far.
    pub fn time(&self) -> f64 {
        self.engine.now
    }

    /// The cost of the run so far, in the units of [`Limits::effort`].
    pub fn effort(&self) -> u64 {
        self.engine.effort()
    }

    pub fn steps(&self) -> &[u64] {
        self.engine.coordinator.steps()
    }

    /// Credits a worker with further steps, as if it had done them before the beginning.
    pub fn put_ahead(&mut self, worker: u32, steps: u64) {
        self.engine.coordinator.put_ahead(worker, steps);
    }

    pub fn observer(&self) -> &O {
        &self.engine.observer
    }

    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.engine.observer
    }

    /// The outcome of the run if it ends here.
    pub fn outcome(&self, end: End) -> Outcome {
        self.engine.outcome(end)
    }
}

struct Engine<'a, O> {
    program: &'a Program,
    observer: O,
    sampler: Sampler,
    now: f64,
    schedule: Schedule,
    workers: Workers,
    coordinator: Coordinator,
    lanes: Vec<Lane>,
    stations: Stations,
    rendezvous: Vec<Rendezvous>,
    versions: Versions,
    completions: Completions,
    /// Which workers stand for others; `None` if grouped workers may diverge within a step.
    folds: Option<Folds>,
    progress: Progress,
}

/// Operations that have ended and whose successors have not been released yet; none between events.
#[derive(Debug, Clone, Default)]
struct Completions {
    ended: Vec<(u32, OpId)>,
    released: u64,
}

impl Completions {
    #[inline]
    fn push(&mut self, worker: u32, op: OpId) {
        self.ended.push((worker, op));
    }

    #[inline]
    fn pop(&mut self) -> Option<(u32, OpId)> {
        let ended = self.ended.pop()?;
        self.released += 1;
        Some(ended)
    }
}

/// Progress of a run, and its limits.
struct Progress {
    limits: Limits,
    effort: u64,
    /// Workers that have done all their steps.
    stopped: u32,
}

impl<'a, O: Observer> Engine<'a, O> {
    fn new(program: &'a Program, seed: u64, observer: O) -> Self {
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
    fn run(&mut self, limits: Limits) -> End {
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
    fn go_on_or_stop(&mut self, worker: u32) {
        if self.coordinator.done(worker) >= self.progress.limits.steps_per_worker {
            self.progress.stopped += 1;
        } else if let Some(folds) = &mut self.folds {
            folds.ready(worker);
        } else {
            self.start_step(worker);
        }
    }

    /// The cost of the run so far (see [`Limits::effort`]).
    fn effort(&self) -> u64 {
        self.progress.effort
    }

    /// Counts work of the engine beside the events themselves.
    fn spend(&mut self, effort: u64) {
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

    fn outcome(&self, end: End) -> Outcome {
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

/// A part of a whole; 0 if the whole is 0.
fn share(amount: f64, whole: f64) -> f64 {
    if whole > 0.0 { amount / whole } else { 0.0 }
}
