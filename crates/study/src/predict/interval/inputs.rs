//! Sensitivity of a prediction to uncertain inputs: each input is set to both ends of its range in turn.
//!
//! Inputs are assumed to be independent, and throughput to be monotonic in each of them, so that the ends of an input
//! give the ends of its effect. Effects are added in quadrature.

use crate::predict::budget;
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::compute::{ASSUMED, ASSUMED_EFFICIENCY_FACTOR, SpeedSource};
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::{Profile, Resource, Step};
use stepcast_core::scenario::Scenario;
use stepcast_stats::{deviation, student_t_95};

/// The input that is uncertain because a share of the peak rate is assumed.
pub(super) const ASSUMED_SHARE: &str = "assumed efficiency";

/// The effect of one uncertain input on the logarithm of the throughput, over its 90 % range.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct InputEffect {
    /// The key of the input.
    pub key: String,
    /// Largest decrease of throughput.
    pub slower: f64,
    /// Largest increase of throughput.
    pub faster: f64,
}

/// An uncertain input and the scenario at both ends of its range.
pub(super) struct Varied {
    key: String,
    by: Variation,
    /// The warning that marks predictions that depend on this input; `None` if all of them do.
    told_by: Option<&'static str>,
}

enum Variation {
    /// The scenario with the input at its lower and at its upper end.
    Ends(Box<[Scenario; 2]>),
    /// Some groups compute slower or faster by a factor: the slower and the faster scenario, and the factor.
    Speed(Box<[Scenario; 2]>, f64),
}

/// All uncertain inputs of a scenario: those given as ranges, assumed efficiencies, and the steps of a profile.
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
            let assumed = |index: usize| SpeedSource::new(scenario, &groups[index]) == SpeedSource::Assumed;
            if (0..groups.len()).any(assumed) {
                let varied_speed = speed(scenario, ASSUMED_SHARE, ASSUMED_EFFICIENCY_FACTOR, assumed);
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

/// The effects of all of `varied` on `prediction`; `change` is applied to each scenario before it is predicted.
pub(super) fn effects(
    varied: &[Varied],
    method: &dyn Method,
    prediction: &Prediction,
    change: &dyn Fn(&Scenario) -> Scenario,
) -> Result<Vec<InputEffect>, Fault> {
    let moved = |scenario: &Scenario| -> Result<f64, Fault> {
        let moved = method.predict(&budget::input(&change(scenario), varied.len()))?;
        Ok((moved.throughput.get() / prediction.throughput.get()).ln())
    };
    let effect = |varied: &Varied| {
        let moves = match &varied.by {
            // For slow methods the effect is estimated from the share of computing in the step.
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
