//! Whether a scenario lies within the validated range, and in which direction it lies outside.

use super::residuals::Pool;
use stepcast_core::prediction::Warning;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// Scenarios outside the validated range by less than this share cause no warning.
const NEAR: f64 = 0.1;

/// Warnings about inputs outside the validated range, with the direction.
pub(super) fn warnings(scenario: &Scenario, pool: &Pool<'_>, method: &str) -> Vec<Warning> {
    let mut outside = Vec::new();
    let alone = scenario.strategy.architecture == Architecture::StandAlone;
    if !alone {
        let workers = scenario.cluster.workers() as f64;
        outside.extend(
            side(workers, pool.workers(), "more", "fewer").map(|(more, end)| {
                format!("{workers} workers are {more} than the {end} it was measured with")
            }),
        );
        let rates = pool.bandwidth();
        let rate = scenario.cluster.network.bandwidth;
        let ends = rates.map(|(slow, fast)| (slow.get(), fast.get()));
        outside.extend(side(rate.get(), ends, "faster", "slower").map(|(faster, end)| {
            let end = stepcast_core::quantity::BitsPerSec::new(end);
            format!("links of {} are {faster} than the {} it was measured with", rate.human(), end.human())
        }));
    }
    if scenario.profile().is_none() {
        let millions = scenario.workload.parameters as f64 / 1e6;
        let ends = pool.parameters().map(|(few, many)| (few / 1e6, many / 1e6));
        outside.extend(side(millions, ends, "more", "fewer").map(|(more, end)| {
            format!(
                "{millions:.1} million parameters are {more} than the {end:.1} million it was measured with"
            )
        }));
    }
    let warn = |message| Warning {
        code: "out-of-range",
        message: format!("beyond what validates {method}: {message}; its error there is not known"),
    };
    outside.into_iter().map(warn).collect()
}

/// The side of the validated range on which a value lies, and the closest end.
fn side(
    value: f64,
    ends: Option<(f64, f64)>,
    above: &'static str,
    below: &'static str,
) -> Option<(&'static str, f64)> {
    let (low, high) = ends?;
    if value > high * (1.0 + NEAR) {
        Some((above, high))
    } else if value < low * (1.0 - NEAR) {
        Some((below, low))
    } else {
        None
    }
}
