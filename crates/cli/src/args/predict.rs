//! Flags of `predict`.

use super::numbers::percent;
use super::scenario::{ScenarioFlags, SimulationFlags};
use clap::{Args, value_parser};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast predict                                      the built-in quick start
  stepcast predict --model resnet50 --device a100 --workers 8x8 --network 100gbe --batch 256
  stepcast predict --model llama3-8b --machine dgx-h100
  stepcast predict cluster.toml --method zeng2023       by the closed form of Zeng 2023
  stepcast predict cluster.toml --workers 1,2,4,8..12   for these numbers of workers
  stepcast predict --set batch=64 --set network=25gbe   try changes
  stepcast predict --set cluster.workers.0.count=8      only the first group of workers
  stepcast predict cluster.toml --worth 20              saturation below a gain of 20 %
  stepcast predict vgg16.json --workers 1..16           a profile of one worker
  stepcast predict model.onnx --device v100 --workers 8 a model from a file
  stepcast predict pretrain.sh --machine dgx-h100       a launch file of Megatron-LM (docs/import/launch.md)
  stepcast predict titan.toml --device h100 --workers 4x8   of torchtitan, DeepSpeed (.json) or Accelerate (.yaml)
  stepcast predict cluster.toml --plot scaling.svg      plot of throughput over workers
  stepcast predict async.toml --timeline steps.json     timeline for Perfetto
  stepcast predict async.toml --timeline steps.svg --timeline-steps 1   timeline as a plot
  stepcast predict cluster.toml --json                  everything, for programs
  cat cluster.toml | stepcast predict -                 from standard input

The keys of a scenario file are in docs/scenario.md.";

/// Flags of `predict`.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    #[command(flatten)]
    pub(crate) simulation: SimulationFlags,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Gain in throughput, in percent, below which scaling counts as saturated
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    pub(crate) worth: f64,

    /// Measured runs that correct assumed figures: a CSV table with a column throughput (samples/s) or step-time, and
    /// columns named after the keys of the scenario that differ between runs
    #[arg(long, value_name = "RUNS.csv")]
    pub(crate) calibrate: Option<PathBuf>,

    /// List every assumed figure with its source, its share of the uncertainty, and how to replace it
    #[arg(long)]
    pub(crate) explain: bool,

    /// Plot throughput over workers to this file
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Write the timeline of the simulated steps to this file, for Perfetto (.pftrace), chrome://tracing
    /// (.json) or as a plot (.svg); only with method simulate
    #[arg(long, value_name = "OUT")]
    pub(crate) timeline: Option<PathBuf>,

    /// Steps of every worker in the timeline
    #[arg(long, value_name = "N", default_value_t = 5, requires = "timeline", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) timeline_steps: u32,
}
