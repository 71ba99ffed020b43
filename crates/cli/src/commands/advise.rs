//! `stepcast advise`: what to measure before one of several offers is taken.

use super::plan::{PlanFlags, STOPPED};
use crate::answer::{Answer, Output};
use crate::render::answers;
use crate::signal;
use clap::Args;
use stepcast_core::fault::Fault;
use stepcast_study::explore::plan::Aim;

pub(super) const EXAMPLES: &str = include_str!("examples/advise.txt");

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
