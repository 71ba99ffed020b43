//! `stepcast fuse`: the best fusion of gradients into messages.

use crate::answer::{Answer, Output, check_plot, write_plot};
use crate::render::answers;
use crate::request::ScenarioFlags;
use crate::signal::busy;
use clap::Args;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::scenario::Edit;
use stepcast_report::format::name;
use stepcast_report::plots::fusion::FusionComparison;
use stepcast_study::fuse;
use stepcast_study::request::{ALL_REDUCE, is_profile};

/// Flags of `fuse`.
#[derive(Debug, Args)]
pub(crate) struct Fuse {
    #[command(flatten)]
    about: ScenarioFlags,

    /// Show every message of the best plan
    #[arg(long)]
    plan: bool,

    /// Plot the step times of the fastest rule of every kind to this file
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
}

impl Fuse {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        check_plot(self.plot.as_deref())?;
        let mut edits = Vec::new();
        if self.about.scenario.as_deref().is_none_or(is_profile) {
            edits.extend(ALL_REDUCE.map(|(key, value)| Edit::set(key, value)));
        }
        edits.extend(self.about.single_edits()?);
        let request = self.about.request_with(edits)?;
        let scenario = request.scenario()?;
        let report =
            busy("comparing fusion rules", || fuse::fuse(&scenario)).map_err(|why| request.refused(why))?;
        let note = write_plot(self.plot.as_deref(), &output.screen, || {
            FusionComparison::from_report(&report, &name(scenario.name())).svg()
        })?;
        output.answer(&report, |screen| answers::fusion(&scenario, &report, self.plan, screen) + &note)
    }
}
