//! What physics and logic demand of every forecast, as relations between random scenarios and their answers.
//!
//! A relation is a function of a scenario; comments say what it has caught. Every kind of training has a file with its random scenarios
//! and its table of relations; [`hold`] tries each of them on `PROPTEST_CASES` scenarios, 64 unless set.

mod layered;
mod transformers;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::interval;

/// What must hold of a scenario and of its answers. The factor is by how much something is changed.
type Check = fn(&Scenario, f64) -> Result<(), TestCaseError>;

type Relation = (&'static str, Check);

/// Tries all relations, each on its own scenarios, and says which do not hold.
fn hold(scenarios: &BoxedStrategy<Scenario>, relations: &[Relation]) {
    let config = ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let broken = relations.iter().filter_map(|(name, check)| {
        let case = |(scenario, factor): (Scenario, f64)| check(&scenario, factor);
        let tried = TestRunner::new(config.clone()).run(&(scenarios.clone(), 1.01..20.0_f64), case);
        tried.err().map(|error| format!("{name}: {error}"))
    });
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

fn holds(is_so: bool, why: impl FnOnce() -> String) -> Result<(), TestCaseError> {
    if is_so { Ok(()) } else { Err(TestCaseError::fail(why())) }
}

pub(crate) fn changed(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut changed = scenario.clone();
    change(&mut changed);
    changed
}

/// What is better in something takes no longer by the same method, but for a share of the step that may be lost.
pub(crate) fn none_slower(
    scenario: &Scenario,
    method: &dyn Method,
    changes: Vec<(&str, Scenario)>,
    lost: f64,
) -> Result<(), TestCaseError> {
    let now = predicted(method, scenario)?.iteration;
    for (what, changed) in changes.iter().filter(|(_, changed)| method.applies(changed).is_ok()) {
        let then = predicted(method, changed)?.iteration;
        holds(then <= now * (1.0 + lost), || {
            format!("{what} by {}: {} in place of {}", method.name(), then.human(), now.human())
        })?;
    }
    Ok(())
}

fn predicted(method: &dyn Method, scenario: &Scenario) -> Result<Prediction, TestCaseError> {
    method.predict(scenario).map_err(|fault| TestCaseError::fail(fault.to_string()))
}

fn parts_add_up(prediction: &Prediction) -> Result<(), TestCaseError> {
    let parts = &prediction.breakdown;
    let sum: f64 = parts.iter().map(|part| part.time.get()).sum();
    let step = prediction.iteration.get();
    let positive = parts.iter().all(|part| part.time >= Seconds::ZERO);
    holds(positive && (sum / step - 1.0).abs() < 1e-6, || {
        format!("{}: {sum} s of {step} s, {parts:?}", prediction.method)
    })
}

fn in_interval(
    scenario: &Scenario,
    method: &dyn Method,
    prediction: &Prediction,
) -> Result<(), TestCaseError> {
    let [low, high] = interval_of(scenario, method, prediction)?;
    let step = prediction.iteration.get();
    holds(0.0 <= low && low <= step && step <= high, || format!("{step} s in {low} to {high}"))
}

fn interval_of(
    scenario: &Scenario,
    method: &dyn Method,
    prediction: &Prediction,
) -> Result<[f64; 2], TestCaseError> {
    let found = interval::of(scenario, method, prediction);
    let found = found.map_err(|fault| TestCaseError::fail(fault.to_string()))?;
    Ok(found.map_or([0.0, f64::INFINITY], |interval| interval.iteration_s.map(Seconds::get)))
}
