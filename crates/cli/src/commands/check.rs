//! `stepcast check`: a running job against its forecast.

use crate::answer::{Answer, Output};
use crate::render::answers;
use crate::request::{ScenarioFlags, SimulationFlags};
use clap::Args;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_study::check::{check, read_steps};
use stepcast_study::contract::Terms;
use stepcast_study::predict::calibrate::with_run;
use stepcast_study::unwatched;
use stepcast_trace::write_text;

/// Bytes of a log that are read.
const LONGEST_LOG: u64 = 64 << 20;

pub(super) const EXAMPLES: &str = "\
Examples:
  stepcast check job.toml --measured train.log                a log of Megatron-LM, torchtitan, DeepSpeed or Lightning
  stepcast check job.toml --measured steps.csv                a table with a column step-time or throughput
  stepcast check job.toml --measured - --steps-left 12000     step times from standard input, such as 41 ms
  stepcast check job.toml --measured train.log --contract contract.toml      is the cluster as agreed?
  stepcast check job.toml --measured train.log --keep runs.csv
  stepcast predict job.toml --calibrate runs.csv              the next forecast, with what was kept";

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    about: ScenarioFlags,

    #[command(flatten)]
    simulation: SimulationFlags,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,

    /// Step times of the running job: a log, a table, or lines such as 41 ms; - for standard input
    #[arg(long, value_name = "FILE")]
    measured: PathBuf,

    /// Steps that are still to come; otherwise from the data set and epochs of the scenario
    #[arg(long, value_name = "N")]
    steps_left: Option<u64>,

    /// Terms that `contract` wrote: are they kept?
    #[arg(long, value_name = "CONTRACT.toml")]
    contract: Option<PathBuf>,

    /// Append the measured step, with the keys of its scenario, to this table of runs, for --calibrate of the next
    /// forecast
    #[arg(long, value_name = "RUNS.csv")]
    keep: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let readings = read_steps(&self.measured.display().to_string(), &text(&self.measured)?)?;
        let terms =
            self.contract.as_deref().map(|path| Terms::from_toml(&path.display().to_string(), &text(path)?));
        let terms = terms.transpose()?;
        let request = self.simulation.request(&self.about)?;
        let (scenario, method) = request.prepare(&self.method)?;
        let checked = check(&request.inner, method, &readings, self.steps_left, terms.as_ref(), &unwatched)
            .map_err(|stopped| request.placed(stopped.into()))?;
        if let Some(path) = &self.keep {
            let place = format!("--keep {}", path.display());
            let kept = match std::fs::read(path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(Fault::in_file(place, error.to_string(), "name a file")),
            };
            with_run(&place, &kept, &request.inner, checked.measured)
                .and_then(|table| write_text(path, &table))
                .map_err(|fault| Fault::new(fault.reason, fault.remedy).at(place))?;
        }
        output.answer(&checked, |screen| answers::check(&scenario, &checked, screen))
    }
}

fn text(path: &Path) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().take(LONGEST_LOG + 1).read_to_end(&mut bytes),
        _ => std::fs::File::open(path).and_then(|file| file.take(LONGEST_LOG + 1).read_to_end(&mut bytes)),
    };
    match read {
        Ok(_) if bytes.len() as u64 > LONGEST_LOG => {
            let reason = format!("it is larger than {} MiB", LONGEST_LOG >> 20);
            let remedy = "give its end: `tail -c 60M train.log | stepcast check --measured -`";
            Err(Fault::in_file(path.display().to_string(), reason, remedy))
        }
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            let reason = format!("cannot read the measured steps: {error}");
            Err(Fault::in_file(path.display().to_string(), reason, "check the path"))
        }
    }
}
