//! `stepcast compare`: one scenario, every method.

use crate::answer::{Answer, Output};
use crate::render::answers;
use crate::request::ScenarioFlags;
use crate::signal::busy;
use clap::Args;
use stepcast_core::fault::Fault;
use stepcast_study::predict::compare::Comparison;

pub(super) const EXAMPLES: &str = include_str!("examples/compare.txt");

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    about: ScenarioFlags,
}

impl Compare {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let scenario = self.about.request()?.scenario()?;
        let compared = busy("predicting by every method", || Comparison::new(&scenario));
        output.answer(&compared, |screen| answers::comparison(&scenario, &compared, screen))
    }
}
