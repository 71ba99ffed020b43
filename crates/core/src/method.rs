//! A prediction method. Every method maps the same [`Scenario`] to the same type of [`Prediction`].

use crate::fault::{Fault, Remedies, Remedy};
use crate::prediction::Prediction;
use crate::quantity::Seconds;
use crate::scenario::Scenario;
use std::ops::ControlFlow;

/// Progress of a long prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// Heartbeat, at least every 50 ms.
    Working,
    /// An estimate that will be refined.
    Estimate(&'a Prediction),
    /// A prediction that is part of an answer.
    Predicted(&'a Prediction),
}

pub type Watch<'a> = dyn Fn(Progress<'_>) -> ControlFlow<()> + Sync + 'a;

/// Whether to go on; long work asks at least every 50 ms.
pub type CancelCheck<'a> = dyn Fn() -> ControlFlow<()> + Sync + 'a;

pub fn never_cancelled() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub fn unwatched(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Stopped {
    /// The scenario is invalid, or the method refuses it.
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("it was cancelled before it was done")]
    Cancelled,
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Fault(fault) => fault,
            Stopped::Cancelled => Self::new(stopped.to_string(), "run it again"),
        }
    }
}

/// Refuses a scenario whose plan splits a transformer, for methods in which every worker has the whole model.
pub fn without_plan(who: &str, scenario: &Scenario) -> Result<(), Fault> {
    let reason = "gives every worker the whole model";
    refuse_if(scenario.strategy.plan.is_some(), who, "strategy.plan", reason, || {
        [Remedy::method("transformer"), Remedy::advice("remove the plan")]
    })
}

/// Refuses a scenario with a property, set by `key`, that a method called `who` does not model.
pub fn refuse_if<R: Into<Remedies>>(
    refused: bool,
    who: &str,
    key: &str,
    reason: &str,
    remedy: impl FnOnce() -> R,
) -> Result<(), Fault> {
    if refused { Err(Fault::in_key(key, format!("{who} {reason}"), remedy())) } else { Ok(()) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodAbout {
    /// Name on the command line.
    pub name: &'static str,
    pub summary: &'static str,
    /// Publication or origin.
    pub source: &'static str,
}

pub trait Method: Sync {
    fn about(&self) -> MethodAbout;

    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Whether a prediction takes microseconds, so that callers such as searches can make many of them.
    fn is_quick(&self) -> bool {
        true
    }

    /// Whether it is rougher than the others and kept for comparison: no answer is chosen from it where another exists.
    fn is_rough(&self) -> bool {
        false
    }

    /// Effects in the answer for a scenario beyond the formula of the method's paper; none for a method without a paper.
    fn beyond_paper(&self, _scenario: &Scenario) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether the method can model the scenario; the fault names the key that it cannot model.
    fn applies(&self, scenario: &Scenario) -> Result<(), Fault>;

    /// The prediction; it is deterministic for a given scenario.
    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault>;

    /// The step time of the prediction alone, for methods that find it faster than the whole prediction.
    fn step(&self, scenario: &Scenario) -> Result<Seconds, Fault> {
        Ok(self.predict(scenario)?.iteration)
    }

    fn predict_watched(&self, scenario: &Scenario, _watch: &Watch<'_>) -> Result<Prediction, Stopped> {
        Ok(self.predict(scenario)?)
    }
}
