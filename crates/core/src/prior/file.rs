//! The form of `catalog/priors.toml`.

use crate::fault::{Measurement, Remedies, Remedy};
use indexmap::IndexMap;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PriorsFile {
    pub(super) all_reduce: Section,
    pub(super) one_gpu: Section,
    pub(super) servers: Section,
    pub(super) transformer: Section,
    #[serde(rename = "extrapolation")]
    pub(super) range: Range,
}

#[derive(Debug, Deserialize)]
pub(super) struct Section {
    pub(super) residual: Residual,
    /// How a user replaces the assumptions of a group by measurements or facts.
    pub(super) remedies: IndexMap<String, Replacement>,
    #[serde(flatten)]
    pub(super) constants: IndexMap<String, Constant>,
}

/// How a user replaces an assumption by a measurement or a fact.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Replacement {
    Advice(String),
    /// A measurement, and an alternative without it.
    Measure {
        measure: Measurement,
        otherwise: Option<String>,
    },
}

impl Replacement {
    pub(super) fn to_remedies(&self) -> Remedies {
        match self {
            Self::Advice(text) => text.into(),
            Self::Measure { measure, otherwise } => Remedies::from(Remedy::Measure { what: *measure })
                .or(otherwise.as_deref().unwrap_or_default()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Constant {
    /// Its median.
    pub value: f64,
    pub unit: String,
    /// Standard deviation of the logarithm of the common value.
    pub fit_error: f64,
    /// Standard deviation of the logarithm between machines.
    pub spread: f64,
    /// The group of constants with which it varies; none if it is the same everywhere.
    pub group: Option<String>,
    /// Standard deviation of the logarithm of the group's factor.
    #[serde(default)]
    pub group_spread: f64,
    /// Whether it falls when the other constants of its group rise.
    #[serde(default)]
    pub reversed: bool,
    /// The figure before the fit.
    pub prior: Before,
    /// Where the figure before the fit comes from.
    pub prior_source: String,
    #[serde(default)]
    pub rows: u32,
    #[serde(default)]
    pub families: Vec<String>,
}

/// A figure before the fit.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// Its median.
    pub value: f64,
    /// Standard deviation of its logarithm.
    pub spread: f64,
}

/// Standard deviations of the logarithm of a step that no constant explains.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Residual {
    /// Between combinations of software, device and network; none if a constant has this spread.
    #[serde(default)]
    pub cell: f64,
    /// Between runs of one combination.
    pub row: f64,
    /// Of software as a whole.
    #[serde(default)]
    pub software: f64,
    /// Of the input of real data.
    #[serde(default)]
    pub input: f64,
    /// Number of families of runs behind all figures of the section.
    pub families: u32,
    pub rows: u32,
}

/// Ranges of the runs to which constants were fitted.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Range {
    pub all_reduce: SeveralWorkers,
    pub servers: SeveralWorkers,
    pub one_gpu: OneWorker,
}

/// Range of the runs of several workers.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SeveralWorkers {
    /// Standard deviation of the logarithm added by each doubling beyond the range.
    pub per_doubling: f64,
    /// Fewest and most workers.
    pub gpus: [f64; 2],
    /// Least and most gradients, MB.
    pub gradient_mb: [f64; 2],
    /// Slowest and fastest network, Gbit/s.
    pub gbps: [f64; 2],
}

/// Range of the runs of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OneWorker {
    /// Standard deviation of the logarithm added by each doubling beyond the range.
    pub per_doubling: f64,
    /// Least and most samples.
    pub batch: [f64; 2],
    /// Slowest and fastest device, TFLOP/s in fp32.
    pub fp32_tflops: [f64; 2],
}
