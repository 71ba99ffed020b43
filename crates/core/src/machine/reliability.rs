//! What is assumed of long runs where a scenario does not say it: `catalog/reliability.toml`.

use super::catalog::{CatalogError, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// An assumed figure with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumed {
    /// The figure.
    pub value: f64,
    /// What its source leaves open.
    pub range: [f64; 2],
    /// Its unit.
    pub unit: String,
    /// Where it is from.
    pub source: String,
}

/// The figures of long runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// Interruptions of one device in an hour.
    pub interruptions: Assumed,
    /// Seconds until an interruption is noticed and understood.
    pub detection: Assumed,
    /// Seconds until training goes on.
    pub restart: Assumed,
    /// Bytes of a checkpoint that one machine writes in a second.
    pub storage: Assumed,
    /// Energy of the building against that of its machines.
    pub pue: Assumed,
}

static SHIPPED: LazyLock<Result<Reliability, CatalogError>> =
    LazyLock::new(|| read("reliability.toml", stepcast_catalog::RELIABILITY));

impl Reliability {
    /// The built-in figures.
    pub fn shipped() -> Result<&'static Self, CatalogError> {
        SHIPPED.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_lie_in_their_ranges_and_have_sources() {
        let it = Reliability::shipped().unwrap();
        for figure in [&it.interruptions, &it.detection, &it.restart, &it.storage, &it.pue] {
            assert!((figure.range[0]..=figure.range[1]).contains(&figure.value), "{figure:?}");
            assert!(figure.source.len() > 20, "{figure:?}");
        }
        let llama = 419.0 / (54.0 * 24.0 * 16384.0);
        assert!((it.interruptions.value / llama - 1.0).abs() < 1e-3);
    }
}
