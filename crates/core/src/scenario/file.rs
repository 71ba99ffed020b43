//! The format of a scenario file.

use super::methods::MethodsSection;
use super::planning::{EnergySection, FailuresSection, PlanningSection};
use super::sections::{ClusterSection, ModelSection};
use super::training::{DataSection, InputSection, PriceSection};
use crate::strategy::StrategySection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scenario file: TOML, in which everything except the model is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScenarioFile {
    /// The model to train.
    #[serde(default)]
    pub model: ModelSection,
    /// The machines.
    #[serde(default)]
    pub cluster: ClusterSection,
    /// The way of training.
    #[serde(default)]
    pub strategy: StrategySection,
    /// How samples get to the workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<InputSection>,
    /// The data set, for the epoch time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSection>,
    /// The prices, for the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceSection>,
    /// What a search over plans may choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanningSection>,
    /// What interrupts a long run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailuresSection>,
    /// What turns time into energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergySection>,
    /// Inputs of individual methods.
    #[serde(default)]
    pub methods: MethodsSection,
}
