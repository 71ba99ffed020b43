//! What-if changes, each predicted, and the fastest worker alone.
//!
//! A change is predicted by the method of the forecast or, if it does not model the change, by the first method that models
//! both scenarios. As methods differ, the gain is then the smaller of two: over that method's own figure for the scenario,
//! and over the forecast's. A simulation that is needed only for this is short.

use super::changes::{self, Change};
use crate::predict::budget::{self, MOST_SLOW};
use crate::predict::methods::MethodSet;
use crate::simulate::NOT_STEADY;
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::method::Method;
use stepcast_core::prediction::{GroupReport, Prediction};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// One change and its effect.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct WhatIf {
    /// "2× bandwidth".
    pub change: String,
    /// The method that predicts the scenario before and after the change.
    pub method: &'static str,
    /// Time of one step after the change.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// Throughput after the change.
    #[serde(rename = "throughput_samples_per_s", with = "InBaseUnits")]
    pub throughput: SamplesPerSec,
    /// Relative change of the throughput: 0.3 is 30 % more.
    pub gain: f64,
    /// Relative change of the step time: −0.3 is 30 % shorter.
    pub step_change: f64,
    /// The changed scenario; none of a worker alone.
    #[serde(skip)]
    pub scenario: Option<Box<Scenario>>,
}

impl WhatIf {
    fn of(change: Change, now: &Prediction, then: &Prediction) -> Self {
        Self {
            change: change.name,
            method: then.method,
            iteration: then.iteration,
            throughput: then.throughput,
            gain: then.throughput / now.throughput - 1.0,
            step_change: then.iteration / now.iteration - 1.0,
            scenario: Some(Box::new(change.scenario)),
        }
    }

    /// Limits the gain to the gain over the forecast `now`, with the corresponding figures.
    fn at_most(self, now: &Prediction) -> Self {
        let gain = self.gain.min(self.throughput / now.throughput - 1.0);
        let step_change = self.step_change.max(self.iteration / now.iteration - 1.0);
        let (throughput, iteration) = (now.throughput * (1.0 + gain), now.iteration * (1.0 + step_change));
        Self { iteration, throughput, gain, step_change, ..self }
    }
}

/// Smallest gain that counts.
const LEAST_GAIN: f64 = 0.0005;

/// The changes that help, the most helpful first; the fastest worker alone is among them if it is faster.
pub(super) fn tried(
    scenario: &Scenario,
    method: &dyn Method,
    now: &Prediction,
    alone: Option<&Alone>,
) -> Vec<WhatIf> {
    let most = if method.is_quick() { usize::MAX } else { MOST_SLOW };
    let mut elsewhere = Elsewhere { scenario, now: Vec::new() };
    let predicted =
        changes::all(scenario).into_iter().filter_map(|change| match method.applies(&change.scenario) {
            Ok(()) => {
                let then = predict(method, &change.scenario).filter(|then| !changes::overflows(then))?;
                Some(WhatIf::of(change, now, &then))
            }
            Err(_) => Some(elsewhere.compared(change)?.at_most(now)),
        });
    let mut what_if: Vec<WhatIf> = predicted.take(most).collect();
    let faster = alone.filter(|alone| now.workers > 1 && alone.throughput > now.throughput);
    what_if.extend(faster.map(|alone| WhatIf {
        change: "the fastest worker alone".to_owned(),
        method: now.method,
        iteration: alone.iteration,
        throughput: alone.throughput,
        gain: alone.throughput / now.throughput - 1.0,
        step_change: alone.iteration / now.iteration - 1.0,
        scenario: None,
    }));
    what_if.retain(|change| change.gain >= LEAST_GAIN);
    what_if.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    what_if
}

/// Predictions of the scenario by other methods.
struct Elsewhere<'a> {
    scenario: &'a Scenario,
    now: Vec<Prediction>,
}

impl Elsewhere<'_> {
    /// The effect of a change by a method that models both the scenario and the changed one.
    fn compared(&mut self, change: Change) -> Option<WhatIf> {
        let both = MethodSet::of(self.scenario).and(MethodSet::of(&change.scenario)).without_rough();
        let method = both.methods().next()?;
        let then = predict(method, &change.scenario)?;
        if self.now.iter().all(|now| now.method != method.name()) {
            self.now.push(predict(method, self.scenario)?);
        }
        let now = self.now.iter().find(|now| now.method == method.name())?;
        Some(WhatIf::of(change, now, &then))
    }
}

/// A prediction within its part of the budget; none if that is too little to estimate the throughput in steady state.
fn predict(method: &dyn Method, scenario: &Scenario) -> Option<Prediction> {
    let prediction = method.predict(&budget::what_if(scenario)).ok()?;
    prediction.warnings.iter().all(|warning| warning.code != NOT_STEADY).then_some(prediction)
}

/// One worker that trains without any communication.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Alone {
    /// Index of its group in the scenario.
    pub group: usize,
    /// Its device, or "worker as profiled".
    pub device: String,
    /// Samples per step.
    pub batch: u32,
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples per second.
    #[serde(rename = "throughput_samples_per_s", with = "InBaseUnits")]
    pub throughput: SamplesPerSec,
}

impl Alone {
    /// The fastest worker of a cluster; none if it is alone anyway, or if a plan splits the model.
    pub(super) fn fastest(scenario: &Scenario, prediction: &Prediction) -> Option<Self> {
        if scenario.strategy.architecture == Architecture::StandAlone || scenario.strategy.plan.is_some() {
            return None;
        }
        let rate = |report: &GroupReport| SamplesPerSec::from_time(f64::from(report.batch), report.compute);
        let fastest = prediction.groups.iter().max_by(|a, b| rate(a).get().total_cmp(&rate(b).get()))?;
        let group = scenario.cluster.groups.get(fastest.group)?;
        Some(Self {
            group: fastest.group,
            device: match scenario.profile() {
                Some(_) => "worker as profiled".to_owned(),
                None => group.device.name.clone(),
            },
            batch: fastest.batch,
            iteration: fastest.compute,
            throughput: rate(fastest),
        })
    }

    /// Sentence that this worker alone is faster than the whole cluster, if so.
    pub(super) fn faster_than(&self, prediction: &Prediction) -> Option<String> {
        let factor = self.throughput / prediction.throughput;
        (prediction.workers > 1 && factor > 1.0).then(|| {
            format!(
                "The cluster is slower than one of its workers: one {} alone trains {}, {factor:.1} times as much.",
                self.device,
                self.throughput.human()
            )
        })
    }
}
