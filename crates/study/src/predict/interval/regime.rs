//! What kind of training a prediction is about: methods are right and wrong in different ways in each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Whether workers wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// In every step or every round: BSP, local SGD.
    Synchronous,
    /// Not at all, or not until one is far ahead.
    Asynchronous,
}

/// What takes most of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Workers compute for half of it or more.
    Computing,
    /// They wait for longer than they compute.
    Communication,
}

/// Where workers stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machines {
    /// All in one.
    One,
    /// In several.
    Several,
}

/// A kind of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Regime {
    /// Who combines the gradients.
    pub architecture: Architecture,
    /// Whether workers wait for each other.
    pub pace: Pace,
    /// What takes most of a step.
    pub limit: Limit,
    /// Where workers stand.
    pub machines: Machines,
}

impl Limit {
    /// By the share of a step in which workers compute.
    pub fn of(scaling_factor: f64) -> Self {
        if scaling_factor < 0.5 { Self::Communication } else { Self::Computing }
    }
}

impl Regime {
    /// The regime of a scenario in which workers compute for a share of the step.
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

/// The architecture in words.
pub(super) fn architecture(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::ParameterServer => "parameter server",
        Architecture::AllReduce => "all-reduce",
        Architecture::StandAlone => "stand-alone",
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Synchronous => "synchronous",
            Self::Asynchronous => "asynchronous",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Computing => "mostly computing",
            Self::Communication => "mostly waiting",
        })
    }
}

impl fmt::Display for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one machine",
            Self::Several => "several machines",
        })
    }
}
