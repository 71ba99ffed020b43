//! `stepcast plan`: the best way to split a transformer.

use crate::answer::{Answer, End, Output};
use crate::numbers::Numbers;
use crate::render::answers;
use crate::request::ScenarioFlags;
use crate::signal;
use clap::{Args, value_parser};
use indicatif::ProgressBar;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::scenario::Edit;
use stepcast_report::format::count;
use stepcast_study::explore::plan::{Aim, OPEN, Restriction, plan};
use stepcast_study::explore::sweep::on_threads;
use stepcast_study::request::launch::{Framework, emit};

/// Said if Ctrl-C comes before there is anything to report.
const STOPPED: &str = "Stopped before anything was found.";

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
    about: ScenarioFlags,

    /// Objective: time or cost
    #[arg(long, value_name = "WHAT", default_value = "time")]
    minimize: Aim,

    /// Machines of the catalog to choose from, such as dgx-a100,dgx-h100 [default: those of the cluster]
    #[arg(long, value_name = "MACHINES", value_delimiter = ',')]
    offers: Option<Vec<String>>,

    /// Numbers of machines: 1..16 or 16,32,64 [default: that of the cluster]
    #[arg(long)]
    nodes: Option<Numbers>,

    /// Sequences of a step
    #[arg(long, value_name = "N")]
    global_batch: Option<u64>,

    /// Tokens to train on, such as 300e9
    #[arg(long, value_name = "N")]
    tokens: Option<f64>,

    /// Longest time of training, such as '30 d'
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,

    /// Highest cost of training
    #[arg(long, value_name = "AMOUNT")]
    budget: Option<f64>,

    /// Admit plans that fit only if the allocator loses little
    #[arg(long)]
    may_fit: bool,

    /// Print the best plan for a framework: megatron, torchtitan, deepspeed or fsdp
    #[arg(long, value_name = "FRAMEWORK")]
    emit: Option<Framework>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Plan {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let mut edits = self.about.single_edits()?;
        edits.extend(self.restriction()?);
        if self.about.scenario.is_none() && self.about.model.is_some() {
            edits.insert(0, Edit::parse(OPEN)?);
        }
        let mut request = self.about.request_with(edits)?;
        let mut scenario = request.scenario()?;
        if scenario.strategy.plan.is_none() && scenario.source.transformer().is_some() {
            request = request.changed(Edit::parse(OPEN)?);
            scenario = request.scenario()?;
        }
        signal::listen(STOPPED);
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        let report = on_threads(self.threads, || {
            plan(&scenario, self.minimize, &mut |plans| {
                bar.set_message(format!("{} plans", count(plans)));
                signal::check()
            })
        });
        bar.finish_and_clear();
        if report.is_err() && signal::interrupted() {
            return Ok(signal::stopped(STOPPED));
        }
        let report = report.map_err(|fault| request.refused(fault))?;
        let end = if report.interrupted { End::Interrupted } else { End::Done };
        if let Some(framework) = self.emit {
            let text = emit(&scenario, &report, framework).map_err(|fault| fault.at("--emit"))?;
            return Ok(Answer { text, end });
        }
        Ok(Answer { end, ..output.answer(&report, |screen| answers::plan(&report, screen))? })
    }

    /// What the flags say about the search.
    fn restriction(&self) -> Result<Vec<Edit>, Fault> {
        let restriction = Restriction {
            offers: self.offers.clone(),
            nodes: self.nodes.as_ref().map(|nodes| nodes.0.clone()),
            global_batch: self.global_batch,
            tokens: self.tokens,
            deadline: self.deadline.clone(),
            budget: self.budget,
            may_fit: self.may_fit,
        };
        restriction.changes().iter().map(|text| Edit::parse(text)).collect()
    }
}
