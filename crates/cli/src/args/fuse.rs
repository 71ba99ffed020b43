//! Flags of `fuse`.

use super::scenario::ScenarioFlags;
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast fuse cluster.toml                            all rules, the best plan, its settings
  stepcast fuse cluster.toml --plan                     with every message of the best plan
  stepcast fuse cluster.toml --plot fusion.svg          plot of step times by kind of rule
  stepcast fuse one-worker.json --set cluster.workers.0.count=8
  stepcast fuse cluster.toml --set strategy.all-reduce.channels=2
  stepcast fuse cluster.toml --json                     with the names of all gradients

The keys of fusion and all-reduce are in docs/scenario.md.";

/// Flags of `fuse`.
#[derive(Debug, Args)]
pub(crate) struct Fuse {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// Show every message of the best plan
    #[arg(long)]
    pub(crate) plan: bool,

    /// Plot the step times of the fastest rule of every kind to this file
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,
}
