//! Flags of `report`.

use super::scenario::{ScenarioFlags, SimulationFlags};
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast report cluster.toml -o report.html
  stepcast report cluster.toml --set strategy.batch=64 -o batch64.html
  stepcast report async.toml --method simulate -o async.html

The file is self-contained: plots, tables, inputs and the command that reproduces it.";

/// Flags of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    #[command(flatten)]
    pub(crate) simulation: SimulationFlags,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Measured runs that correct assumed figures: a CSV table with a column throughput (samples/s) or step-time, and
    /// columns named after the keys of the scenario that differ between runs
    #[arg(long, value_name = "RUNS.csv")]
    pub(crate) calibrate: Option<PathBuf>,

    /// The HTML file to write
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}
