//! `stepcast advise`: what to measure before one of several offers is taken.

use super::plan::{PlanFlags, STOPPED};
use crate::answer::{Answer, Output};
use crate::render::answers;
use crate::signal;
use clap::Args;
use stepcast_core::fault::Fault;
use stepcast_study::explore::plan::Aim;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast advise examples/plan-offers.toml                   offers with prices in `[[plan.offers]]`
  stepcast advise job.toml --nodes 8,16,32 --tokens 300e9     numbers of machines, with `[price]`
  stepcast advise job.toml --deadline '30 d' --set plan.late-day=20000
  stepcast advise job.toml --json                             every experiment and its outcomes, for programs";

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
