//! Flags of `plan`.

use super::numbers::Numbers;
use super::scenario::ScenarioFlags;
use clap::{Args, value_parser};
use stepcast_study::explore::plan::{Aim, Restriction};
use stepcast_study::request::launch::Framework;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast plan examples/plan-175b.toml                      every valid plan on its machines
  stepcast plan job.toml --nodes 64,128,256 --minimize cost --deadline '30 d'
  stepcast plan --model llama3-8b --offers dgx-a100,dgx-h100 --nodes 2,4,8 --global-batch 512 --tokens 100e9
  stepcast plan job.toml --global-batch 1536 --tokens 300e9 --emit megatron
  stepcast plan job.toml --set 'plan.sharding=[\"zero-1\"]' --set plan.tensor-across-nodes=true
  stepcast plan job.toml --json                              the front and all families, for programs

`[plan]` of a scenario restricts the search; docs/plan.md describes it.";

/// Flags of `plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// Objective: time or cost
    #[arg(long, value_name = "WHAT", default_value = "time")]
    pub(crate) minimize: Aim,

    /// Machines of the catalog to choose from, such as dgx-a100,dgx-h100 [default: those of the cluster]
    #[arg(long, value_name = "MACHINES", value_delimiter = ',')]
    pub(crate) offers: Option<Vec<String>>,

    /// Numbers of machines: 1..16 or 16,32,64 [default: that of the cluster]
    #[arg(long)]
    pub(crate) nodes: Option<Numbers>,

    /// Sequences of a step
    #[arg(long, value_name = "N")]
    pub(crate) global_batch: Option<u64>,

    /// Tokens to train on, such as 300e9
    #[arg(long, value_name = "N")]
    pub(crate) tokens: Option<f64>,

    /// Longest time of training, such as '30 d'
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    /// Highest cost of training
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<f64>,

    /// Admit plans that fit only if the allocator loses little
    #[arg(long)]
    pub(crate) may_fit: bool,

    /// Print the best plan for a framework: megatron, torchtitan, deepspeed or fsdp
    #[arg(long, value_name = "FRAMEWORK")]
    pub(crate) emit: Option<Framework>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

impl Plan {
    /// What the flags say about the search, as `--set` writes it.
    pub(crate) fn changes(&self) -> Vec<String> {
        let own = Restriction {
            offers: self.offers.clone(),
            nodes: self.nodes.as_ref().map(|nodes| nodes.0.clone()),
            global_batch: self.global_batch,
            tokens: self.tokens,
            deadline: self.deadline.clone(),
            budget: self.budget,
            may_fit: self.may_fit,
        };
        own.changes()
    }
}
