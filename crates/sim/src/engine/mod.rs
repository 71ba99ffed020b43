//! The event loop.
//!
//! One pending event per busy lane with a station of its own, one per pool, one for all links. An event is the end of
//! a chunk (or of a lane's start-up time). When the last chunk of an operation ends, its successors may become ready;
//! only then does its lane go on to the next chunk (Algorithm 3.1 of Li 2020, lines 18-31). Cost of an event:
//! O(log resources). Nothing is allocated per event once queues have grown to their largest.
//!
//! [`state`] holds the engine and its loop, [`schedule`] the pending events, [`workers`] the current step of every worker.
//! [`steps`] says what becomes ready when something has ended; [`service`] gives ready work of a [`lane`] to its station
//! and goes on when it has been served; [`stations`] are what lanes share; [`rendezvous`] is about operations that all
//! workers take part in.

pub(crate) mod coordinate;
mod fold;
pub(crate) mod lane;
pub(crate) mod observe;
pub(crate) mod rendezvous;
mod schedule;
mod service;
mod state;
pub(crate) mod stations;
pub(crate) mod steps;
mod workers;

use crate::program::{Program, ProgramError};
use observe::{Observer, Steps};
use state::Engine;

/// When a simulation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    pub steps_per_worker: u64,
    /// Steps of the slowest worker after which all workers stop.
    pub steps_of_slowest: u64,
    /// Simulated seconds.
    pub time: f64,
    /// Work of the engine itself, against runaway programs: events, and what finding the rates of many flows takes.
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
    /// The engine has done as much work as it may.
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

    /// What the run has cost so far, as [`Limits::effort`] counts it.
    pub fn effort(&self) -> u64 {
        self.engine.effort()
    }

    pub fn steps(&self) -> &[u64] {
        self.engine.coordinator.steps()
    }

    /// Lets a worker count as many steps more than it has done, as if it had done them before the beginning.
    pub fn put_ahead(&mut self, worker: u32, steps: u64) {
        self.engine.coordinator.put_ahead(worker, steps);
    }

    pub fn observer(&self) -> &O {
        &self.engine.observer
    }

    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.engine.observer
    }

    /// What the run leaves behind if it ends here.
    pub fn outcome(&self, end: End) -> Outcome {
        self.engine.outcome(end)
    }
}
