//! Regimes of training, in which methods have different errors, and whether a scenario lies within the validated range.

use super::residuals::Pool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepcast_core::prediction::Warning;
use stepcast_core::quantity::BitsPerSec;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Whether workers wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// They wait in every step or every round: BSP, local SGD.
    Synchronous,
    /// They never wait, or only when one is far ahead.
    Asynchronous,
}

/// The larger part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Workers compute for at least half of the step.
    Computing,
    /// Workers wait for longer than they compute.
    Communication,
}

/// Number of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machines {
    /// All workers are in one machine.
    One,
    /// Workers are in several machines.
    Several,
}

/// A regime of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Regime {
    /// The architecture that combines the gradients.
    pub architecture: Architecture,
    /// Whether workers wait for each other.
    pub pace: Pace,
    /// The larger part of a step.
    pub limit: Limit,
    /// Number of machines.
    pub machines: Machines,
}

impl Limit {
    /// The limit from the share of a step in which workers compute.
    pub fn of(scaling_factor: f64) -> Self {
        if scaling_factor < 0.5 { Self::Communication } else { Self::Computing }
    }
}

impl Regime {
    /// The regime of a scenario; `scaling_factor` is the share of the step in which workers compute.
    pub fn of(scenario: &Scenario, scaling_factor: f64) -> Self {
        let cluster = &scenario.cluster;
        let one = cluster.nodes.as_ref().is_some_and(|nodes| cluster.workers() <= u64::from(nodes.workers));
        let alone = scenario.strategy.architecture == Architecture::StandAlone;
        Self {
            architecture: scenario.strategy.architecture,
            pace: match scenario.strategy.synchronisation {
                Synchronisation::Bsp | Synchronisation::LocalSgd(_) => Pace::Synchronous,
                Synchronisation::Async | Synchronisation::Ssp(_) => Pace::Asynchronous,
            },
            limit: Limit::of(scaling_factor),
            machines: if one || alone { Machines::One } else { Machines::Several },
        }
    }
}

pub(super) fn architecture(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::ParameterServer => "parameter server",
        Architecture::AllReduce => "all-reduce",
        Architecture::StandAlone => "stand-alone",
    }
}

stepcast_core::variant_names!(Pace { Synchronous = "synchronous", Asynchronous = "asynchronous", });
stepcast_core::variant_names!(Limit { Computing = "mostly computing", Communication = "mostly waiting", });
stepcast_core::variant_names!(Machines { One = "one machine", Several = "several machines", });

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
            let end = BitsPerSec::new(end);
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
