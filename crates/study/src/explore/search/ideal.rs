//! A lower bound for any network: workers that compute all the time.
//!
//! It holds for `layerwise`, `liu2022` and `simulate`, whose computing times come from `core::compute`. The bound
//! assumes no waiting and no communication, and takes the fastest value of every axis that affects computing. Larger
//! batches spread the work on the weights over more samples, so the largest batch is the fastest per sample. A
//! simulation may fall below this bound by its noise.

use super::goal::Objective;
use crate::explore::sweep::{Setting, Variants};
use crate::predict::MethodChoice;
use stepcast_core::keys::Effect;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;

/// Methods that take their computing times from `core::compute`.
const METHODS: [&str; 3] = ["layerwise", "liu2022", "simulate"];

/// Most combinations of unordered values that are enumerated.
const MOST_COMBINATIONS: u128 = 4096;

enum FastestValue {
    Largest,
    /// All values compute equally fast.
    Any,
    Unknown,
}

fn best(setting: Option<&Setting>) -> (FastestValue, f64) {
    let Some(setting) = setting else { return (FastestValue::Unknown, 0.0) };
    match (setting.effect(), setting.number()) {
        (Effect::Load | Effect::Computing, Some(number)) => (FastestValue::Largest, number),
        (Effect::Choice | Effect::Resolved, _) => (FastestValue::Unknown, 0.0),
        _ => (FastestValue::Any, 0.0),
    }
}

/// A lower bound of the objective; `None` if no such bound is known.
pub(super) fn lowest(variants: &Variants<'_>, choice: MethodChoice, objective: Objective) -> Option<f64> {
    let MethodChoice::One(method) = choice else { return None };
    let fitted = variants.may_be_fitted();
    if !METHODS.contains(&method.name()) || variants.first().profile().is_some() || fitted {
        return None;
    }
    let lengths = variants.grid().lengths();
    let mut choices: Vec<Vec<u64>> = Vec::with_capacity(lengths.len());
    for (axis, &length) in lengths.iter().enumerate() {
        let sized = |place: u64| best(variants.setting(axis, place).as_ref()).1;
        choices.push(match best(variants.setting(axis, 0).as_ref()).0 {
            FastestValue::Any => vec![0],
            FastestValue::Unknown => (0..length.min(MOST_COMBINATIONS as u64 + 1)).collect(),
            FastestValue::Largest if variants.axes()[axis].values.number(0).is_some() => vec![length - 1],
            FastestValue::Largest => vec![(0..length).max_by(|&a, &b| sized(a).total_cmp(&sized(b)))?],
        });
    }
    let combinations = choices.iter().fold(1_u128, |all, some| all.saturating_mul(some.len() as u128));
    if combinations > MOST_COMBINATIONS {
        return None;
    }
    // The shortest step has the smallest batch, but the corner used here has the largest.
    if objective == Objective::Iteration {
        return None;
    }
    let mut walker = variants.walker();
    let mut lowest = f64::INFINITY;
    for combination in 0..combinations as u64 {
        let mut rest = combination;
        let digits: Vec<u64> = choices
            .iter()
            .map(|some| {
                let place = some[(rest % some.len() as u64) as usize];
                rest /= some.len() as u64;
                place
            })
            .collect();
        // Values that are inconsistent at this corner may be consistent elsewhere, so there is no bound.
        lowest = lowest.min(walker.look(&digits, |scenario| value(scenario, objective)).ok()??);
    }
    Some(lowest)
}

fn value(scenario: &Scenario, objective: Objective) -> Option<f64> {
    let (data, samples) = (scenario.data?, scenario.epoch_samples()? as f64);
    let (mut rate, mut cheapest) = (0.0, f64::INFINITY);
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        let speed = Speed::of_group(scenario, index);
        let layers = scenario.workload.layers.iter();
        let step: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
        let each = f64::from(scenario.samples(index)) / step.get();
        rate += each * f64::from(group.count);
        let price = group.price.or(scenario.price.as_ref().map(|price| price.worker_hour));
        cheapest = f64::min(cheapest, price.unwrap_or(0.0) / 3600.0 / each);
    }
    let epoch = samples / rate;
    let time = epoch * data.epochs as f64;
    let cost = cheapest * samples * data.epochs as f64;
    Some(match objective {
        Objective::Iteration => 0.0,
        Objective::Epoch => epoch,
        Objective::Time => time,
        Objective::Cost => cost,
        Objective::CostTime => cost * time,
    })
}
