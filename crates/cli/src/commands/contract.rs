//! `stepcast contract`: an acceptance test from a forecast.

use crate::answer::{Answer, Output};
use crate::render::answers;
use crate::request::ForecastFlags;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_report::sentences;
use stepcast_report::tables::check::contract_page;
use stepcast_study::contract::Contract as Terms;
use stepcast_study::{ForecastOptions, MethodChoice};
use stepcast_trace::write_text;

/// Flags of `contract`.
#[derive(Debug, Args)]
pub(crate) struct Contract {
    #[command(flatten)]
    asked: ForecastFlags,

    /// Longest step that keeps the contract [default: the longest of the 90 % interval]
    #[arg(long, value_name = "TIME")]
    agreed: Option<Seconds>,

    /// Slowdown that the test must detect, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    tolerance: f64,

    /// Highest rate of false alarms, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    false_alarm: f64,

    /// Highest rate of missed slowdowns, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    miss: f64,

    /// Spread of the mean of ten steps, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    spread: f64,

    /// Write the terms to this file, which `check --contract` reads
    #[arg(short, long, value_name = "OUT.toml")]
    output: PathBuf,

    /// Write a page for both parties to this file, as Markdown
    #[arg(long, value_name = "OUT.md")]
    page: Option<PathBuf>,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    contract: &'a Terms,
    written: Vec<String>,
}

impl Contract {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let request = self.asked.request(self.asked.edits()?)?;
        let (scenario, method) = request.prepare(&self.asked.method)?;
        let options = ForecastOptions::unscaled(MethodChoice::One(method));
        let forecast = request.forecast(&options)?;
        let shares =
            [self.tolerance, self.false_alarm, self.miss, self.spread].map(|percent| percent / 100.0);
        let contract = Terms::new(&scenario, &forecast, self.agreed, shares)?;
        let mut written = vec![self.output.display().to_string()];
        write_text(&self.output, &contract.terms.to_toml()?)?;
        if let Some(path) = &self.page {
            let inputs = toml::to_string(&request.inner.file()?)
                .map_err(|error| Fault::new(error.to_string(), "name a scenario file"))?;
            let command = format!("stepcast check job.toml --measured train.log --contract {}", written[0]);
            write_text(
                path,
                &contract_page(&contract, &sentences::title(&scenario, &forecast.assumed), &inputs, &command),
            )?;
            written.push(path.display().to_string());
        }
        let answer = Written { contract: &contract, written };
        output.answer(&answer, |screen| answers::contract(&scenario, &contract, &answer.written, screen))
    }
}
