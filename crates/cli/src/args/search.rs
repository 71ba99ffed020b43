//! Flags of `search`.

use super::scenario::ScenarioFlags;
use clap::{Args, value_parser};
use std::path::PathBuf;
use stepcast_study::explore::search::{Objective, SearchStrategy};

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast search job.toml --minimize cost --subject-to 'deadline<=2h' --vary workers.count=1..64
  stepcast search job.toml --minimize cost --vary workers.count=1..64 --plot front.svg
  stepcast search job.toml --minimize cost-time --vary workers.count=1..16 --vary batch=8..512:x2 \\
      --vary servers.count=1..4 --vary servers.placement=greedy,even
  stepcast search job.toml --minimize time --devices tesla-t4,tesla-v100-sxm2-16gb --count 0..16 \\
      --price tesla-t4=0.4 --price tesla-v100-sxm2-16gb=2.5 --subject-to 'budget<=500'
  stepcast search job.toml --minimize epoch --method simulate --vary synchronisation=bsp,async \\
      --vary batch=16,32,64 --subject-to 'staleness<=4' --subject-to 'minibatch<=1024'
  stepcast search job.toml --minimize time --vary all-reduce.algorithm=ring,tree,double-tree \\
      --vary fusion.rule=none,pytorch,horovod --subject-to 'nodes<=16' --json

Constraints: minibatch, staleness, nodes, workers, throughput, iteration, deadline and
budget with <= or >=. Configurations fit into memory, unless any-memory is given; kinds<=1 excludes mixtures of devices. The prices of the examples are made up. docs/search.md describes the search.";

/// Flags of `search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// Objective: iteration, epoch, time, cost or cost-time
    #[arg(long, value_name = "WHAT")]
    pub(crate) minimize: Objective,

    /// Constraint, such as 'minibatch<=1024' or any-memory; may be repeated
    #[arg(long, value_name = "CONSTRAINT")]
    pub(crate) subject_to: Vec<String>,

    /// A key and its values, as for sweep; may be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,

    /// Devices of the catalog: one group of workers for each replaces the groups of the scenario
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,

    /// Numbers of workers with each device
    #[arg(long, value_name = "RANGE", default_value = "0..8", requires = "devices")]
    pub(crate) count: String,

    /// Price of a worker with this device for one hour; may be repeated
    #[arg(long, value_name = "DEVICE=PRICE", requires = "devices")]
    pub(crate) price: Vec<String>,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,

    /// Search algorithm: exhaustive, bound or heuristic [default: chosen by the number of configurations]
    #[arg(long, value_name = "WAY")]
    pub(crate) how: Option<SearchStrategy>,

    /// Most predictions of a search by bound or heuristic
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,

    /// Seed of the heuristic's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Plot time against cost to this file: the best configurations, the front and the chosen one
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
