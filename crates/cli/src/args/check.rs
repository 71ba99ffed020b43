//! Flags of `check`.

use super::scenario::{ScenarioFlags, SimulationFlags};
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast check job.toml --measured train.log                a log of Megatron-LM, torchtitan, DeepSpeed or Lightning
  stepcast check job.toml --measured steps.csv                a table with a column step-time or throughput
  stepcast check job.toml --measured - --steps-left 12000     step times from standard input, such as 41 ms
  stepcast check job.toml --measured train.log --keep runs.csv
  stepcast predict job.toml --calibrate runs.csv              the next forecast, with what was kept";

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    #[command(flatten)]
    pub(crate) simulation: SimulationFlags,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Step times of the running job: a log, a table, or lines such as 41 ms; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) measured: PathBuf,

    /// Steps that are still to come; otherwise from the data set and epochs of the scenario
    #[arg(long, value_name = "N")]
    pub(crate) steps_left: Option<u64>,

    /// Write the measured step to this table, for --calibrate of the next forecast
    #[arg(long, value_name = "RUNS.csv")]
    pub(crate) keep: Option<PathBuf>,
}
