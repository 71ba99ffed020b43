//! Runs of one program, continued until the throughput is known well enough or the budget is spent.
//!
//! Runs with different seeds go in parallel, in rounds. After each round the throughput is estimated
//! ([`estimate`](super::estimate)); the runs continue until the interval of the estimate is as narrow as requested and
//! shows no trend. Budgets are counted in work of the engine, so that the same input gives the same
//! figures on every machine.

use super::broken;
use super::estimate::{Estimate, Estimator};
use crate::predict::budget;
use rayon::prelude::*;
use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::method::{CancelCheck, Progress, Stopped, Watch};
use stepcast_core::prediction::{GroupReport, Prediction, Spread};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{End, Limits, Observer, Program, Run, StepRecord, Steps};
use stepcast_stats::{deviation, quantile};

pub(crate) const BUDGET: &str = "methods.simulate.budget";

/// Work between two checks for cancellation: about 20 ms.
const SLICE: u64 = 200_000;

/// Least steps of the slowest worker in a run; with a smaller budget, there are fewer runs.
const STEPS_PER_RUN: u64 = 50;

/// Steps of the slowest worker without which there is no estimate.
const FEWEST_STEPS: u64 = 3;

/// Factor by which the budget may be exceeded for the fewest steps.
pub(crate) const EXCESS: u64 = 4;

/// Whether the budget pays for a step at all: a step has at least an event for every layer of every group.
pub(crate) fn is_affordable(scenario: &Scenario) -> bool {
    budget::pass(scenario) <= scenario.methods.simulate.budget.saturating_mul(EXCESS)
}

/// Shares of the budget after which there is an estimate.
const ROUNDS: [f64; 5] = [FIRST_LOOK, 0.125, 0.25, 0.5, 1.0];

/// The first estimate is only reported: it is too early to stop runs.
const FIRST_LOOK: f64 = 0.05;

/// Observes a run and keeps its steps.
pub(super) trait Recorder: Observer + Send {
    fn records(&self) -> &[StepRecord];
}

impl Recorder for Steps {
    fn records(&self) -> &[StepRecord] {
        &self.records
    }
}

/// Runs of a program and their estimate.
pub(super) struct Measured<'p, O> {
    pub(super) runs: Vec<Measurement<'p, O>>,
    pub(super) estimate: Estimate,
}

impl<O> Measured<'_, O> {
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
    /// Reason for the last stop.
    pub(super) end: End,
    /// Simulated time from which on it may be typical.
    pub(super) since: f64,
}

/// Continues until one of the limits, or until cancelled; returns the reason for the stop.
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

/// Observes the first `steps` steps of every worker of one run, until cancelled; returns the simulated time.
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
    /// Continues until the run has cost `effort`, or its slowest worker has done this many steps.
    fn go_on(&mut self, effort: u64, steps: u64, wanted: &CancelCheck<'_>) -> Result<(), Stopped> {
        self.end = go_on(&mut self.run, Limits { effort, ..Limits::until_slowest(steps) }, wanted)?;
        Ok(())
    }

    fn steps(&self) -> u64 {
        self.run.steps().iter().copied().min().unwrap_or(0)
    }
}

/// The fault that no step of the slowest worker has ended.
pub(super) fn too_long(options: &scenario::Simulate) -> Fault {
    let reason = format!("a budget of {} events ends before the first step of every worker", options.budget);
    Fault::in_key(BUDGET, reason, "use a larger budget, fewer workers or a closed form")
}

/// Runs a program within the budget of `options`; `predicted` makes the answer, and every estimate before it.
pub(super) fn measure<'p, O: Recorder>(
    program: &'p Program,
    batches: &[f64],
    options: &scenario::Simulate,
    observer: impl Fn() -> O + Sync,
    watch: &Watch<'_>,
    predicted: impl Fn(&Measured<'p, O>) -> Prediction,
) -> Result<Prediction, Stopped> {
    let begin = |number: u64| {
        let run = Run::new(program, options.seed.wrapping_add(number), observer()).map_err(broken)?;
        Ok::<_, Stopped>(Measurement { run, end: End::EffortLimit, since: 0.0 })
    };
    let wanted = || watch(Progress::Working);
    let steps = u64::from(options.steps);
    let mut first: Measurement<'p, O> = begin(0)?;
    // The cost of a step determines the number of runs.
    let most = options.budget.saturating_mul(EXCESS);
    let mut effort = (options.budget as f64 * ROUNDS[1]) as u64 / u64::from(options.runs);
    first.go_on(effort.max(1), steps, &wanted)?;
    let period = match program.coordination {
        Synchronisation::LocalSgd(steps) => u64::from(steps),
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
    let mut measured = Measured { estimate: estimator.estimate(&runs), runs };
    for share in ROUNDS {
        let effort = (options.budget as f64 * share / count as f64) as u64;
        measured.runs.par_iter_mut().try_for_each(|run| run.go_on(effort, steps, &wanted))?;
        let has_ended = measured.runs.iter().all(|run| run.end != End::EffortLimit);
        let decides = share > FIRST_LOOK;
        // Workers put ahead after half of the budget would have no time to settle.
        let has_moved = decides && share <= 0.5 && !has_ended && settle(program, &mut measured.runs);
        measured.estimate = estimator.estimate(&measured.runs);
        let is_enough = decides && measured.estimate.is_precise() && !has_moved;
        if share >= 1.0 || has_ended || is_enough {
            break;
        }
        if watch(Progress::Estimate(&predicted(&measured))).is_break() {
            return Err(Stopped::Cancelled);
        }
    }
    Ok(predicted(&measured))
}

// Bounded staleness: fast workers run ahead of the slowest until they are as far ahead as they may be.
//
// In the long run all workers do as many steps as the slowest, whatever the bound. The time until then grows
// with the bound and is of no interest, so workers that keep gaining on the slowest are put ahead at once.

/// Number of standard deviations up to which a lead counts as chance, not as a difference in speed.
const CHANCE: f64 = 4.0;

/// Puts workers ahead that keep gaining on the slowest, and returns whether there were any. Their runs count from now on.
fn settle<O: Recorder>(program: &Program, runs: &mut [Measurement<'_, O>]) -> bool {
    let Synchronisation::Ssp(bound @ 1..) = program.coordination else { return false };
    let mut any = false;
    for measurement in runs {
        let gaining = gaining(program, measurement.run.steps(), measurement.run.observer().records());
        let steps = measurement.run.steps().to_vec();
        let slowest = steps.iter().copied().min().unwrap_or(0);
        for (worker, &done) in (0..).zip(&steps) {
            let ahead = (slowest + u64::from(bound)).saturating_sub(done);
            if ahead > 0 && gaining[program.kind[worker as usize]] {
                measurement.run.put_ahead(worker, ahead);
                measurement.since = measurement.run.time();
                any = true;
            }
        }
    }
    any
}

/// By kind of worker: whether it is faster than the slowest kind by more than chance.
fn gaining(program: &Program, steps: &[u64], records: &[StepRecord]) -> Vec<bool> {
    let kinds = program.steps.len();
    let mut done = vec![(0.0, 0.0); kinds];
    for (&kind, &steps) in program.kind.iter().zip(steps) {
        done[kind].0 += steps as f64;
        done[kind].1 += 1.0;
    }
    let mean = |(steps, workers): &(f64, f64)| if *workers > 0.0 { steps / workers } else { f64::INFINITY };
    let slowest = done.iter().map(mean).fold(f64::INFINITY, f64::min);
    let noise = |kind: usize| {
        let own = records.iter().filter(|record| program.kind[record.worker as usize] == kind);
        let lengths: Vec<f64> = own.map(|record| record.until - record.since).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        deviation(&lengths).map_or(0.0, |spread| spread / mean)
            * (2.0 * slowest / done[kind].1.max(1.0)).sqrt()
    };
    (0..kinds).map(|kind| mean(&done[kind]) - slowest > 1.0 + CHANCE * noise(kind)).collect()
}

/// Longest histogram; larger values share its last bar.
const BARS: usize = 64;

/// Samples of a step, by worker.
pub(super) fn batches(scenario: &Scenario) -> Vec<f64> {
    let mut batches = Vec::with_capacity(scenario.cluster.workers() as usize);
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        batches.extend(std::iter::repeat_n(f64::from(scenario.samples(index)), group.count as usize));
    }
    batches
}

pub(super) fn groups(scenario: &Scenario, compute: &[Seconds]) -> Vec<GroupReport> {
    let report = |(index, group): (usize, &WorkerGroup)| GroupReport {
        group: index,
        count: group.count,
        batch: scenario.samples(index),
        compute: compute[index],
        ready: Seconds::ZERO,
        slack: None,
    };
    scenario.cluster.groups.iter().enumerate().map(report).collect()
}

pub(super) fn mean<F>(runs: &[F], of: impl Fn(&F) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

/// 5th, 50th and 95th percentile.
pub(super) fn spread(values: &mut [f64]) -> Spread {
    Spread { low: quantile(values, 0.05), median: quantile(values, 0.5), high: quantile(values, 0.95) }
}

/// Shares of the values 0, 1, 2 …
pub(super) fn histogram(values: &[f64]) -> Vec<f64> {
    let most = values.iter().copied().fold(0.0, f64::max).min((BARS - 1) as f64) as usize;
    let mut shares = vec![0.0; most + 1];
    for value in values {
        shares[(*value as usize).min(most)] += 1.0 / values.len() as f64;
    }
    shares
}

pub(super) fn describe(end: &End) -> String {
    match end {
        End::Completed => "all steps were done".to_owned(),
        End::TimeLimit => "the simulated time was up".to_owned(),
        End::EffortLimit => "the budget was spent".to_owned(),
        End::Deadlock(waiting) => {
            let names: Vec<String> =
                waiting.iter().map(|(worker, name)| format!("worker {worker} for \"{name}\"")).collect();
            format!("a deadlock: waiting are {}", names.join(", "))
        }
    }
}
