//! `stepcast plan`: the best way to split a transformer; `stepcast advise`: what to measure before one of several offers is taken.

use crate::answer::{Answer, End, Output};
use crate::numbers::Numbers;
use crate::render::answers;
use crate::request::ScenarioFlags;
use crate::signal;
use clap::{Args, value_parser};
use indicatif::ProgressBar;
use std::sync::Arc;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Amount;
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_report::format::count;
use stepcast_study::explore::plan::{Aim, PlanReport, Restriction, plan};
use stepcast_study::explore::sweep::on_threads;
use stepcast_study::request::launch::{Framework, emit};

/// Message if Ctrl-C comes before there is anything to report.
const STOPPED: &str = "Stopped before anything was found.";

/// Flags of `plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    search: PlanFlags,

    /// Objective: time or cost
    #[arg(long, alias = "minimise", value_name = "WHAT", default_value = "time")]
    minimize: Aim,

    /// Print the best plan for a framework: megatron, torchtitan, deepspeed or fsdp; or as settings of a fine-tuning recipe: axolotl,
    /// llama-factory, torchtune or trl
    #[arg(long, value_name = "FRAMEWORK")]
    emit: Option<Framework>,
}

/// Flags of every search over plans.
#[derive(Debug, Args)]
pub(super) struct PlanFlags {
    #[command(flatten)]
    about: ScenarioFlags,

    /// Machines of the catalog to choose from, such as dgx-a100,dgx-h100 [default: those of the cluster]
    #[arg(long, value_name = "MACHINES", value_delimiter = ',')]
    offers: Option<Vec<String>>,

    /// Numbers of machines: 1..16 or 16,32,64 [default: that of the cluster; of several offers, some that fit]
    #[arg(long)]
    nodes: Option<Numbers>,

    /// Tokens to train on, such as 300e9 or 300B
    #[arg(long, value_name = "N")]
    tokens: Option<Amount>,

    /// Longest time of training, such as '30 d'
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,

    /// Highest cost of training
    #[arg(long, value_name = "AMOUNT")]
    budget: Option<Amount>,

    /// Include plans that fit only with low memory fragmentation
    #[arg(long)]
    may_fit: bool,

    /// Only plans that a framework runs, with its kernels, states and overlap: megatron, nemo, torchtitan, deepspeed, fsdp,
    /// any of these, axolotl, llama-factory, torchtune or trl
    #[arg(long = "for", value_name = "FRAMEWORK", value_parser = frameworks)]
    launched_by: Option<Frameworks>,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Frameworks to choose from; all if empty.
#[derive(Debug, Clone)]
struct Frameworks(Vec<Framework>);

fn frameworks(text: &str) -> Result<Frameworks, String> {
    match text {
        "any" => Ok(Frameworks(Vec::new())),
        // NeMo and Megatron-Bridge run its core.
        "nemo" => Ok(Frameworks(vec![Framework::Megatron])),
        name => name.parse().map(|framework| Frameworks(vec![framework])),
    }
}

impl Plan {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let Some((scenario, report)) = self.search.search(self.minimize, self.emit)? else {
            return Ok(signal::stopped(STOPPED));
        };
        let end = if report.interrupted { End::Interrupted } else { End::Done };
        if let Some(framework) = self.emit {
            let text = emit(&scenario, &report, framework).map_err(|fault| fault.at("--emit"))?;
            return Ok(Answer { text, end });
        }
        Ok(Answer { end, ..output.answer(&report, |screen| answers::plan(&report, screen))? })
    }
}

impl PlanFlags {
    /// The scenario and the best plan; none if Ctrl-C comes before there is any.
    fn search(
        &self,
        aim: Aim,
        emit: Option<Framework>,
    ) -> Result<Option<(Arc<Scenario>, PlanReport)>, Fault> {
        let mut edits = self.about.single_edits()?;
        edits.extend(self.restriction(emit)?);
        let mut request = self.about.request_with(edits)?;
        request.inner = request.inner.for_planning();
        let scenario = request.scenario()?;
        signal::listen(STOPPED);
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        let report = on_threads(self.threads, || {
            plan(&scenario, aim, &mut |plans| {
                bar.set_message(format!("{} plans", count(plans)));
                signal::check()
            })
        });
        bar.finish_and_clear();
        if report.is_err() && signal::interrupted() {
            return Ok(None);
        }
        Ok(Some((scenario, report.map_err(|fault| request.refused(fault))?)))
    }

    /// The edits that the flags make for the search.
    fn restriction(&self, emit: Option<Framework>) -> Result<Vec<Edit>, Fault> {
        let restriction = Restriction {
            offers: self.offers.clone(),
            nodes: self.nodes.as_ref().map(|nodes| nodes.0.clone()),
            frameworks: match (&self.launched_by, emit) {
                (Some(Frameworks(list)), _) => Some(list.clone()),
                (None, emitted) => emitted.map(|framework| vec![framework]),
            },
            global_batch: self.about.global_batch,
            tokens: self.tokens.map(Amount::get),
            deadline: self.deadline.clone(),
            budget: self.budget.map(Amount::get),
            may_fit: self.may_fit,
        };
        restriction.changes().iter().map(|text| Edit::parse(text)).collect()
    }
}

/// Flags of `advise`.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    #[command(flatten)]
    search: PlanFlags,
}

impl Advise {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let Some((_, report)) = self.search.search(Aim::Cost, None)? else {
            return Ok(signal::stopped(STOPPED));
        };
        let Some(advice) = &report.advice else {
            let reason = "there is nothing to choose: one offer, or no number of tokens";
            return Err(Fault::in_key(
                "plan.offers",
                reason,
                "add `[[plan.offers]]`, several `nodes` or `tokens` to `[plan]`",
            ));
        };
        output.answer(advice, |screen| answers::advice(advice, screen))
    }
}
