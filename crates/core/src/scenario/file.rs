//! A scenario as a user writes it.

use super::sections::{ClusterSection, MethodsSection, ModelSection};
use super::training::{DataSection, PriceSection};
use crate::strategy::StrategySection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scenario file: TOML, every part but the model optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScenarioFile {
    /// What is trained.
    #[serde(default)]
    pub model: ModelSection,
    /// On what.
    #[serde(default)]
    pub cluster: ClusterSection,
    /// How.
    #[serde(default)]
    pub strategy: StrategySection,
    /// Gives the epoch time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSection>,
    /// Gives the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceSection>,
    /// Inputs of single methods.
    #[serde(default)]
    pub methods: MethodsSection,
}
