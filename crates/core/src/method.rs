//! One way to predict. Every method answers the same [`Scenario`] with the same [`Prediction`].

use crate::fault::Fault;
use crate::prediction::Prediction;
use crate::scenario::Scenario;

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

    /// Whether the method models what the scenario asks; the key of a fault is that of what it does not model.
    fn applies(&self, scenario: &Scenario) -> Result<(), Fault>;

    /// The answer; the same scenario always gives the same one.
    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault>;
}
