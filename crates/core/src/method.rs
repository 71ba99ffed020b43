//! One way to predict. Every method answers the same [`Scenario`] with the same [`Prediction`].

use crate::prediction::Prediction;
use crate::scenario::Scenario;

/// Why a method has no answer to a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Inapplicable {
    /// The key of the scenario that asks it: "strategy.architecture".
    pub key: &'static str,
    /// What the scenario asks that the method does not model.
    pub reason: String,
    /// What to change, or which method to take instead.
    pub remedy: String,
}

/// One way to predict.
pub trait Method: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// What it models, in one line.
    fn summary(&self) -> &'static str;

    /// Where it comes from.
    fn source(&self) -> &'static str;

    /// Whether an answer takes microseconds, so that others may ask many times to find something out.
    fn is_quick(&self) -> bool {
        true
    }

    /// Whether the method models what the scenario asks.
    fn applies(&self, scenario: &Scenario) -> Result<(), Inapplicable>;

    /// The answer; the same scenario always gives the same one.
    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Inapplicable>;
}
