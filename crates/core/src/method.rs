//! A prediction method. Every method maps the same [`Scenario`] to the same type of [`Prediction`].

use crate::fault::Fault;
use crate::prediction::Prediction;
use crate::scenario::Scenario;

/// A prediction method.
pub trait Method: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// One-line description.
    fn summary(&self) -> &'static str;

    /// Publication or origin.
    fn source(&self) -> &'static str;

    /// Whether a prediction takes microseconds, so that callers such as searches can make many of them.
    fn is_quick(&self) -> bool {
        true
    }

    /// Whether the method can model the scenario; the fault names the key that it cannot model.
    fn applies(&self, scenario: &Scenario) -> Result<(), Fault>;

    /// The prediction; it is deterministic for a given scenario.
    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault>;
}
