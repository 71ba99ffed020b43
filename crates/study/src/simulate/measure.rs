//! Runs of one program, continued until the throughput is known well enough or the budget is spent.
//!
//! Runs with different seeds go in parallel, in rounds. After each round the throughput is estimated
//! ([`estimate`](super::estimate)); the runs go on where they stopped until the interval of the estimate is as narrow
//! as asked for and shows no trend. Budgets are counted in work of the engine, so that the same input gives the same
//! figures on every machine.

use super::estimate::{Estimate, Estimator};
use super::summary::describe;
use super::{broken, leads};
use crate::cost;
use rayon::prelude::*;
use std::ops::ControlFlow;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, Progress, Stopped, Watch};
use stepcast_core::scenario::{self, Scenario};
use stepcast_sim::{Coordination, End, Limits, Observer, Program, Run, StepRecord, Steps};

/// The key of the budget.
pub(crate) const BUDGET: &str = "methods.simulate.budget";

/// Work between two looks at whether anybody still waits for the answer: about 20 ms.
const SLICE: u64 = 200_000;

/// Steps of the slowest worker that a run should have room for; where there are not, there are fewer runs.
const STEPS_PER_RUN: u64 = 50;

/// Steps of the slowest worker without which there is no estimate.
const FEWEST_STEPS: u64 = 3;

/// By how much the budget may be exceeded for the fewest steps.
pub(crate) const EXCESS: u64 = 4;

/// Whether the budget has room for a step at all: an event for every layer of every group is the least that one has.
pub(crate) fn is_affordable(scenario: &Scenario) -> bool {
    cost::pass(scenario) <= scenario.methods.simulate.budget.saturating_mul(EXCESS)
}

/// Shares of the budget after which there is an estimate.
const ROUNDS: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

/// Observes a run and keeps its steps.
pub(super) trait Recorder: Observer + Send {
    /// The steps that have ended, in order.
    fn records(&self) -> &[StepRecord];
}

impl Recorder for Steps {
    fn records(&self) -> &[StepRecord] {
        &self.records
    }
}

/// Runs of a program and what they tell.
pub(super) struct Measured<'p, O> {
    pub(super) runs: Vec<Measurement<'p, O>>,
    pub(super) estimate: Estimate,
    /// Whether the runs could go on.
    pub(super) is_last: bool,
}

impl<O> Measured<'_, O> {
    /// Why the runs ended.
    pub(super) fn end(&self) -> String {
        match self.runs.first().map(|run| &run.end) {
            Some(End::EffortLimit) | None => self.estimate.reason(),
            Some(end) => describe(end),
        }
    }
}

/// A run, and the part of it that counts.
pub(super) struct Measurement<'p, O> {
    pub(super) run: Run<'p, O>,
    /// Why it stopped the last time.
    pub(super) end: End,
    /// Simulated time from which on it may be typical.
    pub(super) since: f64,
}

/// Goes on until one of the limits, as long as the run is wanted: why it stopped.
pub(super) fn go_on<O: Observer>(
    run: &mut Run<'_, O>,
    limits: Limits,
    wanted: &CancelCheck<'_>,
) -> Result<End, Stopped> {
    loop {
        if wanted().is_break() {
            return Err(Stopped::Cancelled);
        }
        let effort = run.effort().saturating_add(SLICE).min(limits.effort);
        let end = run.go_on(Limits { effort, ..limits });
        if end != End::EffortLimit || run.effort() >= limits.effort {
            return Ok(end);
        }
    }
}

/// Observes the first `steps` steps of every worker of one run, as long as they are wanted; the simulated time.
pub(super) fn observe<O: Observer>(
    program: &Program,
    seed: u64,
    steps: u64,
    observer: &mut O,
    wanted: &CancelCheck<'_>,
) -> Result<f64, Stopped> {
    let mut run = Run::new(program, seed, observer).map_err(broken)?;
    go_on(&mut run, Limits::steps(steps), wanted)?;
    Ok(run.time())
}

impl<O: Recorder> Measurement<'_, O> {
    /// Goes on until the run has cost `effort`, or its slowest worker has done so many steps.
    fn go_on(&mut self, effort: u64, steps: u64, wanted: &CancelCheck<'_>) -> Result<(), Stopped> {
        self.end = go_on(&mut self.run, Limits { effort, ..Limits::until_slowest(steps) }, wanted)?;
        Ok(())
    }

    /// Steps of the slowest worker.
    fn steps(&self) -> u64 {
        self.run.steps().iter().copied().min().unwrap_or(0)
    }
}

/// No step of the slowest worker has ended.
pub(super) fn too_long(options: &scenario::Simulate) -> Fault {
    let reason = format!("a budget of {} events ends before the first step of every worker", options.budget);
    Fault::in_key(BUDGET, reason, "use a larger budget, fewer workers or a closed form")
}

/// Runs a program within the budget of `options`; `round` is shown every estimate.
pub(super) fn measure<'p, O: Recorder>(
    program: &'p Program,
    batches: &[f64],
    options: &scenario::Simulate,
    observer: impl Fn() -> O + Sync,
    watch: &Watch<'_>,
    mut round: impl FnMut(&Measured<'p, O>) -> ControlFlow<()>,
) -> Result<Measured<'p, O>, Stopped> {
    let begin = |number: u64| {
        let run = Run::new(program, options.seed.wrapping_add(number), observer()).map_err(broken)?;
        Ok::<_, Stopped>(Measurement { run, end: End::EffortLimit, since: 0.0 })
    };
    let wanted = || watch(Progress::Working);
    let steps = u64::from(options.steps);
    let mut first: Measurement<'p, O> = begin(0)?;
    // How much a step costs shows how many runs there can be.
    let most = options.budget.saturating_mul(EXCESS);
    let mut effort = (options.budget as f64 * ROUNDS[0]) as u64 / u64::from(options.runs);
    first.go_on(effort.max(1), steps, &wanted)?;
    let period = match program.coordination {
        Coordination::Local(steps) => u64::from(steps),
        _ => 1,
    };
    while first.steps() < FEWEST_STEPS.max(period).min(steps)
        && first.end == End::EffortLimit
        && effort < most
    {
        effort = effort.saturating_mul(2).clamp(1, most);
        first.go_on(effort, steps, &wanted)?;
    }
    if first.steps() == 0 {
        return Err(Stopped::Fault(too_long(options)));
    }
    let step = first.run.effort() / first.steps();
    let affordable = options.budget / (STEPS_PER_RUN.min(steps) * step).max(1);
    let count = affordable.clamp(1, u64::from(options.runs));
    let mut runs = vec![first];
    for number in 1..count {
        runs.push(begin(number)?);
    }
    let estimator = Estimator::new(program, batches, options);
    let mut measured = Measured { estimate: estimator.estimate(&runs), runs, is_last: false };
    for share in ROUNDS {
        let effort = (options.budget as f64 * share / count as f64) as u64;
        measured.runs.par_iter_mut().try_for_each(|run| run.go_on(effort, steps, &wanted))?;
        let has_ended = measured.runs.iter().all(|run| run.end != End::EffortLimit);
        // What moves on after half of the budget has no time to settle.
        let has_moved = share <= 0.5 && !has_ended && leads::settle(program, &mut measured.runs);
        measured.estimate = estimator.estimate(&measured.runs);
        measured.is_last = share >= 1.0 || has_ended || (measured.estimate.is_precise() && !has_moved);
        if round(&measured).is_break() {
            return Err(Stopped::Cancelled);
        }
        if measured.is_last {
            break;
        }
    }
    Ok(measured)
}
