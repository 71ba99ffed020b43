//! How workers sum their gradients among themselves.

use super::fusion::Fusion;
use crate::fitted::transfer::Curve;
use crate::quantity::{BytesPerSec, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How gradients are summed over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Around a ring.
    #[default]
    Ring,
    /// By recursive halving and doubling.
    HalvingDoubling,
    /// To one worker and back along a binary tree.
    Tree,
    /// Along two binary trees, half of the data each.
    DoubleTree,
    /// Within nodes first, then between them.
    Hierarchical,
}

/// How workers sum their gradients among themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Which gradients travel together.
    pub fusion: Fusion,
    /// How a message is summed.
    pub algorithm: Algorithm,
    /// Messages that may be under way at once.
    pub channels: u32,
    /// What every all-reduce costs whatever its size, if not what the algorithm's steps cost.
    pub overhead: Option<Seconds>,
    /// How long an all-reduce takes, where that was measured or fitted; otherwise from network and algorithm.
    pub curve: Option<Curve>,
    /// How much longer computing and all-reduces take while both are under way: 0.3 is 30 %.
    pub interference: f64,
    /// Rate at which a worker copies gradients into messages, and out of them; none: at no cost.
    pub copy_rate: Option<BytesPerSec>,
}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            fusion: Fusion::default(),
            algorithm: Algorithm::default(),
            channels: 1,
            overhead: None,
            curve: None,
            interference: 0.0,
            copy_rate: None,
        }
    }
}
