//! Plans in the words of frameworks: flags, or a file.
//!
//! A plan that a framework cannot run is refused, with what to exclude from the search.

mod deepspeed;
mod fsdp;
mod megatron;
mod torchtitan;

use super::{Entry, PlanReport, applied};
use std::str::FromStr;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Plan;

/// A framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    /// Megatron-LM: flags of `pretrain_gpt.py`.
    Megatron,
    /// torchtitan: a TOML file.
    Torchtitan,
    /// DeepSpeed: a JSON file.
    Deepspeed,
    /// PyTorch's FSDP2 by Hugging Face Accelerate: a YAML file.
    Fsdp,
}

impl FromStr for Framework {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "megatron" => Ok(Self::Megatron),
            "torchtitan" => Ok(Self::Torchtitan),
            "deepspeed" => Ok(Self::Deepspeed),
            "fsdp" => Ok(Self::Fsdp),
            _ => Err(format!("\"{text}\" is no framework; use megatron, torchtitan, deepspeed or fsdp")),
        }
    }
}

/// The best plan of a search in the words of a framework: with stages of their own where these are better and the framework
/// has words for them.
pub fn emit(scenario: &Scenario, report: &PlanReport, framework: Framework) -> Result<String, Fault> {
    let Some(stages) = &report.stages else { return entry(scenario, &report.best, framework) };
    entry(scenario, &stages.entry, framework).or_else(|refused| {
        let text = entry(scenario, &report.best, framework)?;
        // JSON has no comments.
        let note = match framework {
            Framework::Deepspeed => String::new(),
            _ => format!(
                "# Stages of their own would save {:.1} %, but {}: {}.\n",
                100.0 * stages.gain,
                refused.reason,
                stages.entry.words
            ),
        };
        Ok(note + &text)
    })
}

fn entry(scenario: &Scenario, entry: &Entry, framework: Framework) -> Result<String, Fault> {
    let shape = scenario.transformer_of_plan()?;
    let launch = Launch {
        name: scenario.name(),
        shape: &shape,
        plan: &entry.plan.clone().resolve(&NoFiles)?,
        nodes: entry.nodes,
        workers_per_node: applied(scenario, entry)?.cluster.workers_per_node().into(),
        data: entry.data,
        micro_batches: entry.micro_batches,
    };
    launch.emit(framework)
}

/// A plan on machines, with what it leaves open.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The name of the model.
    pub name: &'a str,
    /// The transformer.
    pub shape: &'a Transformer,
    /// The plan.
    pub plan: &'a Plan,
    /// Machines.
    pub nodes: u64,
    /// Workers of each.
    pub workers_per_node: u64,
    /// Replicas.
    pub data: u64,
    /// Micro-batches of a replica.
    pub micro_batches: u64,
}

impl Launch<'_> {
    /// The text for a framework.
    pub fn emit(&self, framework: Framework) -> Result<String, Fault> {
        if self.plan.recompute_layers.is_some() && framework != Framework::Megatron {
            let set = "plan.recompute-some=false";
            return Err(cannot("its configuration", "recomputation of some layers", set));
        }
        if self.plan.stage_recompute.is_some() {
            let what = "a number of recomputed layers for each stage";
            return Err(cannot("its configuration", what, "plan.per-stage=false"));
        }
        let divides = matches!(framework, Framework::Megatron | Framework::Torchtitan);
        if self.plan.stage_layers.is_some() && !divides {
            let what = "stages with different numbers of layers";
            return Err(cannot("its configuration", what, "plan.per-stage=false"));
        }
        if !self.plan.offload.is_empty() && framework != Framework::Deepspeed {
            return Err(cannot("its configuration here", "offloading", "strategy.plan.offload=[]"));
        }
        if self.plan.float8 && matches!(framework, Framework::Deepspeed | Framework::Fsdp) {
            return Err(cannot("its configuration here", "products in float8", "strategy.plan.float8=false"));
        }
        match framework {
            Framework::Megatron => megatron::flags(self),
            Framework::Torchtitan => torchtitan::file(self),
            Framework::Deepspeed => deepspeed::file(self),
            Framework::Fsdp => fsdp::file(self),
        }
    }

    /// Layers of the first stage, of all between, and of the last, where those between are alike.
    fn ends(&self) -> Option<[u64; 3]> {
        let (first, rest) = self.plan.given_layers().split_first()?;
        let (last, between) = rest.split_last()?;
        let middle = between.first().copied().unwrap_or(*first.max(last));
        between.iter().all(|layers| *layers == middle).then_some([*first, middle, *last])
    }

    fn global_batch(&self) -> u64 {
        self.data * self.micro_batches * self.plan.micro_batch
    }
}

/// A plan that a framework cannot run; `set` excludes such plans.
fn cannot(framework: &str, what: &str, set: &str) -> Fault {
    let (key, value) = set.split_once('=').unwrap_or((set, "false"));
    Fault::new(format!("{framework} does not run {what}"), Remedy::set(key, value))
}

/// FSDP sends the gradients of a layer together.
fn refuse_buckets(framework: &str, plan: &Plan) -> Result<(), Fault> {
    match plan.bucket {
        None => Ok(()),
        Some(_) => {
            let reason = format!("{framework} has no buckets of a size: it sends layer by layer");
            Err(Fault::in_key("strategy.plan.bucket", reason, "remove `bucket`, also from `[plan]`"))
        }
    }
}
