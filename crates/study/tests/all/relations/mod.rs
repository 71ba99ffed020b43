//! What physics and logic demand of every forecast, as relations between random scenarios and their answers.
//!
//! A relation is a function of a scenario, with what it has caught. Every kind of training has a file with its random scenarios
//! and its table of relations; [`hold`] tries each of them on `PROPTEST_CASES` scenarios, 64 unless set.

mod transformers;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use stepcast_core::scenario::Scenario;

/// What must hold of a scenario and of its answers. The factor is by how much something is changed.
type Check = fn(&Scenario, f64) -> Result<(), TestCaseError>;

/// A relation.
struct Relation {
    /// What holds.
    name: &'static str,
    /// What it has caught.
    caught: &'static str,
    check: Check,
}

/// Tries all relations, each on its own scenarios, and says which do not hold.
fn hold(scenarios: &BoxedStrategy<Scenario>, relations: &[Relation]) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let broken = relations.iter().filter_map(|relation| {
        let case = |(scenario, factor): (Scenario, f64)| (relation.check)(&scenario, factor);
        let tried = TestRunner::new(config.clone()).run(&(scenarios.clone(), 1.01..20.0_f64), case);
        tried.err().map(|error| format!("{} (it has caught: {}): {error}", relation.name, relation.caught))
    });
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// The relation holds, or this is why not.
fn holds(is_so: bool, why: impl FnOnce() -> String) -> Result<(), TestCaseError> {
    if is_so { Ok(()) } else { Err(TestCaseError::fail(why())) }
}
