//! How the parts of a forecast share the budget of a simulation.

use crate::simulate::BUDGET;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::scenario::Scenario;

/// Part of the budget for the figure that is asked for.
const HEADLINE: f64 = 0.5;

/// For the table of other numbers of workers.
const SCALING: f64 = 0.2;

/// For all changes that might help.
const WHAT_IF: f64 = 0.2;

/// For both ends of all uncertain inputs.
const INPUTS: f64 = 0.1;

/// Predictions of a comparison: the step, and four for where its time goes.
pub(super) const COMPARED: usize = 5;

/// Least budget of one prediction.
const LEAST: f64 = 10_000.0;

/// Numbers of workers that are simulated whatever the budget.
const FEW: usize = 64;

/// Most changes that are tried if each costs a simulation.
pub(super) const MOST_SLOW: usize = 8;

/// The scenario with one of `count` equal parts of a share of its budget.
fn part(scenario: &Scenario, share: f64, count: usize) -> Scenario {
    let mut part = scenario.clone();
    let budget = scenario.simulate.budget as f64;
    part.simulate.budget = (budget * share / count.max(1) as f64).max(LEAST.min(budget)) as u64;
    part
}

pub(super) fn headline(scenario: &Scenario) -> Scenario {
    part(scenario, HEADLINE, 1)
}

pub(super) fn compared(scenario: &Scenario) -> Scenario {
    part(scenario, 1.0, COMPARED)
}

/// Refuses more numbers of workers than the budget has room to simulate.
pub(super) fn check_scaling(scenario: &Scenario, method: &dyn Method, points: usize) -> Result<(), Fault> {
    let least = points as f64 * LEAST;
    if method.is_quick() || points <= FEW || least <= scenario.simulate.budget as f64 {
        return Ok(());
    }
    let reason = format!("{points} numbers of workers take a budget of {least} events to simulate");
    Err(Fault::in_key(BUDGET, reason, "use fewer of them, a closed form, or a larger `--budget`"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::methods::find;
    use crate::request::Request;

    #[test]
    fn long_tables_of_simulations_ask_for_a_budget() {
        let mut scenario = Request::quick_start(Vec::new()).scenario().unwrap().as_ref().clone();
        let check = |scenario: &Scenario, method: &str, points| {
            check_scaling(scenario, find(method).unwrap(), points).map_err(|fault| fault.key)
        };
        assert_eq!(check(&scenario, "simulate", 1000), Ok(()));
        assert_eq!(check(&scenario, "simulate", 2000), Err(BUDGET.into()));
        assert_eq!(check(&scenario, "layerwise", 4000), Ok(()));
        scenario.simulate.budget = 20_000_000;
        assert_eq!(check(&scenario, "simulate", 2000), Ok(()));
        scenario.simulate.budget = 1000;
        assert_eq!(check(&scenario, "simulate", FEW), Ok(()));
    }
}
