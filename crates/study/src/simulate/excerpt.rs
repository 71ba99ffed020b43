//! A short piece of a run: one or a few typical steps, with memory for no more than those.
//!
//! A step that a closed form predicts is simulated with its simplifications, mean times and equal shares: equal workers then
//! behave alike, and one of each kind is simulated.

use super::measure::go_on;
use super::{all_reduce, is_sprint, parameter_server, sprint, waits};
use std::borrow::Cow;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::profile::Operation;
use stepcast_core::scenario::{Scenario, SharingRule};
use stepcast_core::strategy::{Architecture, Synchronisation};
use stepcast_sim::{ChunkRecord, End, Limits, Observer, Program, Run, StepRecord};

/// Share of the effort for settling if workers do not meet.
const SETTLING: f64 = 0.7;

/// Number of recorded steps if they differ from each other.
const RECORDED: u64 = 8;

pub(super) struct NamedProgram {
    pub(super) program: Program,
    pub(super) lane_names: Vec<String>,
    /// Operations of a profile that can be made from a run: the first of the program's.
    pub(super) operations: Vec<Operation>,
}

impl NamedProgram {
    pub(super) fn from_scenario(scenario: &Scenario) -> Result<Self, Fault> {
        match scenario.strategy.architecture {
            _ if is_sprint(scenario) => sprint::named_program(scenario),
            Architecture::AllReduce => all_reduce::named_program(scenario),
            _ => parameter_server::named_program(scenario),
        }
    }
}

pub(crate) struct Excerpt {
    pub(crate) program: Program,
    pub(crate) lane_names: Vec<String>,
    /// Work of the simulated workers, in the order of its end.
    pub(crate) chunks: Vec<ChunkRecord>,
    /// Their steps, and those of workers they stand for.
    pub(crate) steps: Vec<StepRecord>,
}

/// Keeps records that end after a moment.
#[derive(Default)]
struct Recent {
    since: f64,
    chunks: Vec<ChunkRecord>,
    steps: Vec<StepRecord>,
}

impl Observer for Recent {
    fn chunk(&mut self, worker: u32, op: u32, lane: u32, since: f64, until: f64) {
        if until > self.since {
            self.chunks.push(ChunkRecord { worker, op, lane, since, until });
        }
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        if since >= self.since {
            self.steps.push(StepRecord { worker, since, until, stale });
        }
    }
}

/// The scenario with mean times and equal shares.
fn typical(scenario: &Scenario) -> Scenario {
    let mut typical = scenario.with_typical_step();
    typical.methods.simulate.jitter = Some(0.0);
    if typical.methods.simulate.transport == SharingRule::Uneven {
        typical.methods.simulate.transport = SharingRule::Fair;
    }
    typical
}

/// A piece of a run of `scenario`, with mean times and equal shares if it is to be `typical`, that costs the engine no more
/// than `effort`; none if that is too little, or if cancelled.
pub(crate) fn excerpt(
    scenario: &Scenario,
    is_typical: bool,
    effort: u64,
    wanted: &CancelCheck<'_>,
) -> Result<Option<Excerpt>, Stopped> {
    if is_sprint(scenario) || scenario.strategy.plan.is_some() {
        return Ok(None);
    }
    let meets = waits(scenario.strategy.synchronisation);
    let scenario = if is_typical { Cow::Owned(typical(scenario)) } else { Cow::Borrowed(scenario) };
    let NamedProgram { program, lane_names, .. } = NamedProgram::from_scenario(&scenario)?;
    let mut run =
        Run::new(&program, scenario.methods.simulate.seed, Recent::default()).map_err(super::broken)?;
    let steps = match scenario.strategy.synchronisation {
        Synchronisation::LocalSgd(steps) => u64::from(steps),
        _ => 1,
    };
    // The first step begins in an untypical state.
    let before = match meets {
        true => Limits { effort: effort / 2, ..Limits::until_slowest(steps) },
        false => Limits { effort: (SETTLING * effort as f64) as u64, ..Limits::steps(u64::MAX) },
    };
    run.observer_mut().since = f64::INFINITY;
    go_on(&mut run, before, wanted)?;
    run.observer_mut().since = run.time();
    let slowest = run.steps().iter().copied().min().unwrap_or(0);
    let recorded = if is_typical { steps + u64::from(!meets) } else { RECORDED };
    let end = go_on(&mut run, Limits { effort, ..Limits::until_slowest(slowest + recorded) }, wanted)?;
    let Recent { chunks, steps, .. } = std::mem::take(run.observer_mut());
    // Where steps differ, fewer of them will do.
    let is_whole = (end == End::Completed || !is_typical) && !steps.is_empty();
    Ok(is_whole.then_some(Excerpt { program, lane_names, chunks, steps }))
}
