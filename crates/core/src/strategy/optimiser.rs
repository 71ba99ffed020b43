//! Optimisers: what the update of the weights costs.

use crate::keys::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How weights are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Gradient descent with momentum.
    #[default]
    Sgd,
    /// Adam or AdamW.
    Adam,
    /// No state: plain gradient descent, or no update at all.
    None,
}

plain!(Optimiser, "`\"sgd\"`, `\"adam\"` or `\"none\"`");

impl Optimiser {
    /// Bytes that the update of a weight moves: weight, gradient and states are read, weight and states written.
    pub fn update_bytes(self) -> f64 {
        match self {
            Self::Sgd => 20.0,
            Self::Adam => 28.0,
            Self::None => 0.0,
        }
    }

    /// Bytes of the states of a weight, which stay in memory.
    pub fn state_bytes(self) -> f64 {
        match self {
            Self::Sgd => 4.0,
            Self::Adam => 8.0,
            Self::None => 0.0,
        }
    }
}
