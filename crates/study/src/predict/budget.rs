//! Budgets of the parts of a forecast, fixed before they begin: shares of the budget of a simulation, and the number of
//! closed forms that the budget pays for. A closed form goes through every layer once for each group of workers, and a
//! forecast asks for hundreds. It also prices other studies. All in the unit of budgets: events of the engine, of which a core does about ten
//! million in a second.

use super::interval::Intervals;
use super::scaling;
use crate::simulate::{BUDGET, EXCESS, is_affordable};
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::Warning;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// Share of the budget for the main figure.
const HEADLINE: f64 = 0.5;

/// Share of the budget for the table of other numbers of workers.
const SCALING: f64 = 0.2;

/// Share of the budget for all changes that might help.
const WHAT_IF: f64 = 0.2;

/// Share of the budget for both ends of all uncertain inputs.
const INPUTS: f64 = 0.1;

/// Predictions of a comparison: the step, and five for its breakdown.
pub(super) const COMPARED: usize = 6;

const LEAST: f64 = 10_000.0;

/// Number of worker counts that are simulated with any budget.
const FEW: usize = 64;

/// Most changes that are tried if each costs a simulation.
pub(super) const MOST_SLOW: usize = 8;

/// The scenario with one of `count` equal parts of a share of its budget.
fn part(scenario: &Scenario, share: f64, count: usize) -> Scenario {
    let mut part = scenario.clone();
    let budget = scenario.methods.simulate.budget as f64;
    part.methods.simulate.budget = (budget * share / count.max(1) as f64).max(LEAST.min(budget)) as u64;
    part
}

pub(crate) fn headline(scenario: &Scenario) -> Scenario {
    part(scenario, HEADLINE, 1)
}

pub(super) fn compared(scenario: &Scenario) -> Scenario {
    part(scenario, 1.0, COMPARED)
}

/// Refuses more numbers of workers than the budget pays for.
pub(super) fn check_scaling(scenario: &Scenario, method: &dyn Method, points: usize) -> Result<(), Fault> {
    let least = points as f64 * LEAST;
    if method.is_quick() || points <= FEW || least <= scenario.methods.simulate.budget as f64 {
        return Ok(());
    }
    let reason = format!("{points} numbers of workers take a budget of {least} events to simulate");
    Err(Fault::in_key(
        BUDGET,
        reason,
        "use fewer of them, a closed form, or a larger `methods.simulate.budget`",
    ))
}

pub(super) fn scaling(scenario: &Scenario, points: usize) -> Scenario {
    part(scenario, SCALING, points)
}

pub(super) fn what_if(scenario: &Scenario) -> Scenario {
    part(scenario, WHAT_IF, MOST_SLOW)
}

pub(super) fn input(scenario: &Scenario, inputs: usize) -> Scenario {
    part(scenario, INPUTS, 2 * inputs)
}

/// Predictions of the bandwidth that balances a step.
pub(super) const BALANCE: u64 = 42;

/// Predictions of all changes that might help, about.
const CHANGES: u64 = 16;

/// The parts of a forecast beside its first figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Granted {
    pub(super) interval: bool,
    /// Changes that might help.
    pub(super) what_if: bool,
    pub(super) scaling: bool,
    pub(super) intervals: bool,
    pub(super) balance: bool,
    /// The number of workers beyond which more are not worth it.
    pub(super) saturation: bool,
    pub(super) slack: bool,
}

impl Granted {
    /// The parts that the budget of `scenario` pays for, the most useful first, where the table has this many `points`.
    pub(super) fn affordable(
        scenario: &Scenario,
        method: &dyn Method,
        intervals: &Intervals<'_>,
        points: usize,
    ) -> Self {
        let mut left = scenario.methods.simulate.budget / pass(scenario);
        let mut pays = |predictions: u64| {
            let enough = predictions <= left;
            left -= if enough { predictions } else { 0 };
            enough
        };
        let (quick, points) = (u64::from(method.is_quick()), points as u64);
        let constants: usize = scenario.priors.groups.iter().map(|group| group.constants.len()).sum();
        let interval = intervals.predictions(scenario) + constants as u64;
        let simulates = |part: Scenario| method.is_quick() || is_affordable(&part);
        let scaling = pays(points * quick) && simulates(scaling(scenario, points as usize));
        Self {
            // Worth as much as the first figure of a simulation.
            interval: interval * quick * pass(scenario)
                <= scenario.methods.simulate.budget.saturating_mul(EXCESS),
            scaling,
            what_if: pays(CHANGES * quick) && simulates(what_if(scenario)),
            intervals: scaling && pays(points.saturating_mul(intervals.predictions(scenario))),
            balance: pays(BALANCE * quick),
            saturation: scaling && pays(scaling::tried() * quick),
            slack: pays(scaling::slack_predictions(scenario) * quick),
        }
    }

    /// The omitted parts, in words.
    pub(super) fn warning(&self) -> Option<Warning> {
        let parts = [
            (self.interval, "the interval"),
            (self.scaling, "other numbers of workers"),
            (self.what_if, "changes that might help"),
            (self.intervals, "intervals of other numbers of workers"),
            (self.balance, "the bandwidth that balances a step"),
            (self.saturation, "the number of workers beyond which more are not worth it"),
            (self.slack, "the slack of workers"),
        ];
        let left_out: Vec<&str> =
            parts.iter().filter(|(granted, _)| !granted).map(|(_, part)| *part).collect();
        (!left_out.is_empty()).then(|| Warning {
            code: "left-out",
            message: format!(
                "too many layers and groups for the budget: {} left out; use a larger `methods.simulate.budget`",
                left_out.join(", ")
            ),
        })
    }
}

/// Cost of a closed form beside its layers.
const PREDICTION: u64 = 50;

/// Cost of reading a layer or a group of a scenario.
const RESOLUTION: u64 = 50;

/// Default limit of the cost of a study: about two minutes of a core.
pub(crate) const UNASKED: u64 = 1_000_000_000;

/// Layers that one closed form goes through: all of them for every group of workers.
pub(crate) fn pass(scenario: &Scenario) -> u64 {
    let workload = &scenario.workload;
    let layers = workload.layers.len().max(workload.tensors as usize) as u64;
    layers.saturating_mul(scenario.cluster.groups.len() as u64).max(1)
}

pub(crate) fn prediction(scenario: &Scenario, method: &dyn Method) -> u64 {
    if method.is_quick() { PREDICTION + pass(scenario) } else { scenario.methods.simulate.budget }
}

/// Approximate cost of making a scenario from its text.
pub(crate) fn resolution(scenario: &Scenario) -> u64 {
    RESOLUTION.saturating_mul(pass(scenario))
}

/// Time of a core.
pub(crate) fn duration(events: f64) -> Seconds {
    Seconds::new(events / 1e7)
}
