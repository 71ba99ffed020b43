//! What validation must achieve: `validation/bounds.toml`.

use super::{Errors, ValidationError, hkbu, liu2022, zeng2023};
use serde::{Deserialize, Serialize};
use std::fmt;

const BOUNDS: &str = include_str!("../../../validation/bounds.toml");

/// The file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) coverage: CoverageBound,
    pub(super) zeng2023: zeng2023::Bounds,
    pub(super) liu2022: liu2022::Bounds,
    pub(super) hkbu: hkbu::Bounds,
    pub(super) tf_ps: ErrorBounds,
    pub(super) ddp_gloo: ErrorBounds,
    pub(super) steps: ErrorBounds,
    pub(super) tf_k80: ErrorBounds,
    pub(super) tf_saturation: ErrorBounds,
    pub(super) cakelab: ErrorBounds,
}

/// Between what the share of measured values within 90 % intervals must lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageBound {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Largest mean and largest worst error, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorBounds {
    /// Of the absolute errors' mean.
    pub mean: f64,
    /// Of the largest.
    pub worst: f64,
}

impl ErrorBounds {
    /// Whether errors are within.
    pub fn keeps(self, errors: &Errors) -> bool {
        errors.mean <= self.mean && errors.worst <= self.worst
    }
}

impl fmt::Display for ErrorBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean at most {} %, worst at most {} %", self.mean, self.worst)
    }
}

/// Reads the file.
pub(super) fn read() -> Result<Bounds, ValidationError> {
    toml::from_str(BOUNDS).map_err(|error| ValidationError::Data(format!("bounds.toml: {error}")))
}
