//! What uncertain inputs do to a prediction: one after the other at both ends of its range.
//!
//! Inputs are taken to be independent, and throughput to move steadily with each of them, so that the ends of one input
//! are the ends of its effect; effects add up by their squares.

use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::compute::{ASSUMED, ASSUMED_EFFICIENCY_FACTOR};
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::{Profile, Resource, Step};
use stepcast_core::scenario::Scenario;
use stepcast_stats::{deviation, student_t_95};

/// What one uncertain input does to the logarithm of the throughput, within its range of 90 %.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct InputEffect {
    /// Which input.
    pub key: String,
    /// By how much throughput may be less.
    pub slower: f64,
    /// By how much it may be more.
    pub faster: f64,
}

/// An uncertain input and the scenario at both ends of its range.
pub(super) struct Varied {
    key: String,
    by: Variation,
    /// The warning by which a prediction says that it rests on this input; none: any does.
    told_by: Option<&'static str>,
}

enum Variation {
    /// The scenario with the input at its lower and at its upper end.
    Ends(Box<[Scenario; 2]>),
    /// Some groups compute faster or slower by a factor: the scenario slower and faster, and the factor.
    Speed(Box<[Scenario; 2]>, f64),
}

/// All uncertain inputs of a scenario: those given as ranges, efficiencies that are only assumed, and a profile's steps.
pub(super) fn varied(scenario: &Scenario) -> Vec<Varied> {
    let given = scenario.uncertain.iter().map(|input| Varied {
        key: input.key().to_string(),
        by: Variation::Ends(Box::new(scenario.at_ends(input))),
        told_by: None,
    });
    let mut varied: Vec<Varied> = given.collect();
    match scenario.profile() {
        Some(profile) => {
            let factor = uncertainty(profile).exp();
            if factor > 1.0 {
                varied.push(speed(scenario, "measured steps of the profile", factor, |_| true));
            }
        }
        None => {
            let groups = &scenario.cluster.groups;
            let assumed = |index: usize| {
                let group = &groups[index];
                let known = group.efficiency.or(group.device.efficiency);
                group.device.fitted.is_none() && known.is_none()
            };
            if (0..groups.len()).any(assumed) {
                let varied_speed = speed(scenario, "assumed efficiency", ASSUMED_EFFICIENCY_FACTOR, assumed);
                varied.push(Varied { told_by: Some(ASSUMED), ..varied_speed });
            }
        }
    }
    varied
}

fn speed(scenario: &Scenario, key: &str, factor: f64, which: impl Fn(usize) -> bool) -> Varied {
    let ends = [1.0 / factor, factor].map(|factor| {
        let mut changed = scenario.clone();
        for (index, group) in changed.cluster.groups.iter_mut().enumerate() {
            if which(index) {
                group.speed *= factor;
            }
        }
        changed
    });
    Varied { key: key.to_owned(), by: Variation::Speed(Box::new(ends), factor), told_by: None }
}

/// Half-width of the 90 % confidence interval of the mean computing time of measured steps, as a logarithm.
fn uncertainty(profile: &Profile) -> f64 {
    let computing = |step: &Step| -> f64 {
        let own = profile.operations.iter().enumerate().filter(|(_, op)| op.resource == Resource::Worker);
        own.map(|(index, _)| step.duration(index).get()).sum()
    };
    let times: Vec<f64> = profile.steps.iter().map(computing).collect();
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let error = deviation(&times).map(|spread| spread / count.sqrt() / mean);
    let error = error.filter(|error| error.is_finite()).unwrap_or(0.0);
    (student_t_95(times.len().saturating_sub(1)) * error).ln_1p()
}

/// What all of `varied` do to `prediction`; `change` makes the question of each scenario.
pub(super) fn effects(
    varied: &[Varied],
    method: &dyn Method,
    prediction: &Prediction,
    change: &dyn Fn(&Scenario) -> Scenario,
) -> Result<Vec<InputEffect>, Fault> {
    let moved = |scenario: &Scenario| -> Result<f64, Fault> {
        let moved = method.predict(&change(scenario))?;
        Ok((moved.throughput.get() / prediction.throughput.get()).ln())
    };
    let effect = |varied: &Varied| {
        let moves = match &varied.by {
            // Where an answer takes long, computing is taken to matter by its share of the step.
            Variation::Speed(_, factor) if !method.is_quick() => {
                let share = prediction.scaling_factor.clamp(0.0, 1.0);
                [-share * factor.ln(), share * factor.ln()]
            }
            Variation::Speed(ends, _) | Variation::Ends(ends) => [moved(&ends[0])?, moved(&ends[1])?],
        };
        Ok(InputEffect {
            key: varied.key.clone(),
            slower: moves.iter().fold(0.0, |most: f64, &by| most.max(-by)),
            faster: moves.iter().fold(0.0, |most: f64, &by| most.max(by)),
        })
    };
    let told = |varied: &&Varied| {
        let is_told = |code| prediction.warnings.iter().any(|warning| warning.code == code);
        varied.told_by.is_none_or(is_told)
    };
    varied.iter().filter(told).map(effect).collect()
}
