//! `stepcast report`: a forecast as one self-contained HTML file.

use crate::answer::{Answer, Output, unexpected};
use crate::request::ForecastFlags;
use crate::words::quoted;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_report::page;
use stepcast_study::{ForecastOptions, MethodChoice};
use stepcast_trace::write_text;

#[derive(Serialize)]
struct WrittenReport<'a> {
    written: &'a str,
    bytes: usize,
}

/// Flags of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    asked: ForecastFlags,

    /// Measured runs that correct assumed figures: a CSV table with a column throughput (samples/s) or step-time, and
    /// columns named after keys of the scenario: number of workers, batch, and what else differs between runs
    #[arg(long, value_name = "RUNS.csv")]
    calibrate: Option<PathBuf>,

    /// The HTML file to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

impl Report {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let path = self.output.display().to_string();
        let place = || format!("-o {path}");
        if self.output.extension().is_none_or(|extension| extension != "html") {
            let reason = "a report is an HTML file, and its name ends in .html";
            return Err(Fault::new(reason, "use a name such as report.html").at(place()));
        }
        let mut request = self.asked.request(self.asked.edits()?)?;
        let (_, method) = request.prepare(&self.asked.method)?;
        self.calibrate.as_deref().map(|path| request.calibrate(path, &self.asked.method)).transpose()?;
        let options = ForecastOptions { method: MethodChoice::One(method), ..ForecastOptions::default() };
        let forecast = request.forecast(&options)?;
        let inputs = toml::to_string(&forecast.scenario).map_err(unexpected)?;
        let html = page::document(&*request.scenario()?, method, &forecast, &inputs, &self.command()?);
        write_text(&self.output, &html).map_err(|error| {
            Fault::new(format!("cannot write the report: {}", error.reason), error.remedy).at(place())
        })?;
        output.answer(&WrittenReport { written: &path, bytes: html.len() }, |screen| {
            screen.paragraph(0, &format!("Written to {}.", stepcast_report::format::name(&path)))
        })
    }

    fn command(&self) -> Result<String, Fault> {
        let mut words = vec!["stepcast".to_owned(), "report".to_owned()];
        words.extend(self.asked.about.scenario.as_deref().map(quoted));
        if let (None, Some(model)) = (&self.asked.about.scenario, &self.asked.about.model) {
            words.extend(["--model".to_owned(), quoted(model)]);
        }
        for edit in self.asked.edits()? {
            words.extend(["--set".to_owned(), quoted(edit.text())]);
        }
        if self.asked.method != "auto" {
            words.extend(["--method".to_owned(), quoted(&self.asked.method)]);
        }
        words.extend(["-o".to_owned(), quoted(&self.output.display().to_string())]);
        Ok(words.join(" "))
    }
}
