//! A scenario as a user writes it.

use super::sections::{
    ClusterSection, DataSection, MethodsSection, ModelSection, PriceSection, StrategySection,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A scenario file: TOML, every part but the model optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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

impl JsonSchema for ScenarioFile {
    fn schema_name() -> Cow<'static, str> {
        "Scenario".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "a scenario with the keys of docs/scenario.md" })
    }
}
