//! Flags of `map`.

use super::numbers::Numbers;
use super::scenario::ScenarioFlags;
use clap::Args;
use std::path::PathBuf;
use stepcast_study::explore::map::MinibatchRange;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast map sprint.toml                              up to the whole cluster and its memory
  stepcast map sprint.toml --minibatch 104..172         only conditions with these minibatches
  stepcast map sprint.toml --nodes 1..64 --batches 1..16 --minibatch 104..172 --plot map.svg
  stepcast map sprint.toml --json                       every cell, for programs";

/// Flags of `map`.
#[derive(Debug, Args)]
pub(crate) struct Map {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Numbers of nodes: 1..16 or 1,2,4 [default: up to those of the cluster]
    #[arg(long)]
    pub(crate) nodes: Option<Numbers>,

    /// Batch sizes of a worker: 1..11 or 1,4,8 [default: up to what fits into the device]
    #[arg(long)]
    pub(crate) batches: Option<Numbers>,

    /// Admissible minibatches, such as 104..172 [default: all]
    #[arg(long, value_name = "LOW..HIGH")]
    pub(crate) minibatch: Option<MinibatchRange>,

    /// Plot the map to this file
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,
}
