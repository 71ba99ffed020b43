//! The figures of `validation/hkbu/`, embedded.

use crate::ValidationError;
use crate::embedded::rows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use stepcast_validation_data::hkbu::THROUGHPUT;

/// How gradients are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Scheme {
    /// One all-reduce of everything after the backward pass.
    #[serde(rename = "BSP-A2A")]
    BspAllReduce,
    /// One all-reduce for each gradient, while the backward pass goes on.
    #[serde(rename = "WFBP-A2A")]
    WfbpAllReduce,
    /// As `WfbpAllReduce`, with gradients merged by MG-WFBP's rule.
    #[serde(rename = "MG-WFBP")]
    MgWfbp,
    /// Everything to parameter servers after the backward pass.
    #[serde(rename = "BSP-PS")]
    BspServers,
    /// Each gradient to parameter servers while the backward pass goes on.
    #[serde(rename = "WFBP-PS")]
    WfbpServers,
}

impl Scheme {
    /// All of them.
    pub(super) const ALL: [Self; 5] =
        [Self::BspAllReduce, Self::WfbpAllReduce, Self::MgWfbp, Self::BspServers, Self::WfbpServers];
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BspAllReduce => "BSP-A2A",
            Self::WfbpAllReduce => "WFBP-A2A",
            Self::MgWfbp => "MG-WFBP",
            Self::BspServers => "BSP-PS",
            Self::WfbpServers => "WFBP-PS",
        })
    }
}

/// One published throughput.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PublishedThroughput {
    pub(super) model: String,
    pub(super) batch: u32,
    pub(super) tokens: Option<u64>,
    pub(super) method: Scheme,
    pub(super) gpus: u32,
    pub(super) servers: Option<u32>,
    pub(super) throughput: f64,
}

/// `[hkbu]` of `validation/bounds.toml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) mean: f64,
    pub(super) worst: f64,
    /// Largest mean error in percent, on one node and on several, by scheme.
    pub(super) mean_error: BTreeMap<Scheme, [f64; 2]>,
    pub(super) ranking: RankingBound,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RankingBound {
    /// Smallest share of pairs of schemes in the right order.
    pub(super) pairs: f64,
    /// Measurements closer than this share have no order.
    pub(super) tie: f64,
}

pub(super) fn published() -> Result<Vec<PublishedThroughput>, ValidationError> {
    rows(THROUGHPUT)
}
