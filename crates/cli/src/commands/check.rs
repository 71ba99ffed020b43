//! `stepcast check`: a running job against its forecast.

use crate::answer::{Answer, End, Output};
use crate::render::answers;
use crate::request::ForecastFlags;
use crate::signal;
use clap::{Args, value_parser};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_study::check::ranks::{RankRecording, read_ranks};
use stepcast_study::check::{Check as Checked, Known, Reading, check, read_progress, read_steps};
use stepcast_study::contract::Terms;
use stepcast_study::predict::calibrate::with_run;
use stepcast_study::unwatched;
use stepcast_trace::write_text;

/// Bytes of a log that are read.
const LONGEST_LOG: u64 = 64 << 20;

/// Time between two reads of a followed log.
const PATIENCE: Duration = Duration::from_millis(500);

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    asked: ForecastFlags,

    /// Step times of the running job: a log, a table, or lines such as 41 ms, - for standard input; one step time; a folder with
    /// traces, flight recordings or tables of several ranks
    #[arg(long, value_name = "FILE", required_unless_present = "follow", conflicts_with = "follow")]
    measured: Option<PathBuf>,

    /// The log of a run that goes on: its end, its cost and the chance to meet the deadline, again whenever it grows
    #[arg(long, value_name = "LOG")]
    follow: Option<PathBuf>,

    /// Time from the first line of the followed log to the end of the run [default: that of `[plan]`]
    #[arg(long, value_name = "TIME", requires = "follow")]
    deadline: Option<Seconds>,

    /// Updates after which a followed log is left [default: until the run ends]
    #[arg(long, value_name = "N", requires = "follow", value_parser = value_parser!(u32).range(1..))]
    updates: Option<u32>,

    /// Steps that are still to come; otherwise from the data set and epochs of the scenario
    #[arg(long, value_name = "N")]
    steps_left: Option<u64>,

    /// Test the steps against the terms that `contract` wrote
    #[arg(long, value_name = "CONTRACT.toml")]
    contract: Option<PathBuf>,

    /// Append the measured step, with the keys of its scenario, to this table of runs, for --calibrate of the next
    /// forecast
    #[arg(long, value_name = "RUNS.csv")]
    keep: Option<PathBuf>,
}

type CheckedAnswer = Result<(Checked, Answer), Fault>;

impl Check {
    pub(super) fn run(&self, output: &Output) -> Result<Answer, Fault> {
        let terms =
            self.contract.as_deref().map(|path| Terms::from_toml(&path.display().to_string(), &text(path)?));
        let terms = terms.transpose()?;
        let request = self.asked.request(self.asked.edits()?)?;
        let (scenario, method) = request.prepare(&self.asked.method)?;
        let answer = |log: &Path, is_followed: bool| -> Result<(Checked, Answer), Fault> {
            let is_file = log.as_os_str() != "-" && log.exists();
            let ranks = if is_file { read_ranks(log)? } else { None };
            let steps = ranks.as_ref().map(RankRecording::steps).filter(|steps| !steps.is_empty());
            let (readings, lines) = match steps {
                Some(steps) => (steps.into_iter().map(Reading::Step).collect(), Vec::new()),
                None => {
                    let text = text(log)?;
                    (read_steps(&log.display().to_string(), &text)?, read_progress(&text))
                }
            };
            let deadline = self.deadline.or(scenario.planning.as_ref().and_then(|plan| plan.deadline));
            let known = Known {
                steps_left: self.steps_left,
                contract: terms.as_ref(),
                ranks: ranks.as_ref(),
                followed: is_followed.then_some((&lines, deadline)),
            };
            let checked = check(&request.inner, method, &readings, known, &unwatched)
                .map_err(|stopped| request.placed(stopped.into()))?;
            let answer = output.answer(&checked, |screen| answers::check(&scenario, &checked, screen))?;
            Ok((checked, answer))
        };
        let (checked, answer) = match (&self.measured, &self.follow) {
            (_, Some(log)) => self.followed(log, &answer)?,
            (Some(path), None) => answer(path, false)?,
            (None, None) => return Err(Fault::new("nothing was measured", "name a log")),
        };
        if let Some(path) = &self.keep {
            let place = format!("--keep {}", path.display());
            let kept = match std::fs::read(path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(Fault::in_file(place, error.to_string(), "name a file")),
            };
            with_run(&place, &kept, &request.inner, checked.measured)
                .and_then(|table| write_text(path, &table))
                .map_err(|fault| fault.at(place))?;
        }
        Ok(answer)
    }

    /// Answers whenever the log has grown, until the run has ended, enough updates were written, or Ctrl-C is pressed. The last
    /// answer is returned.
    fn followed(&self, log: &Path, answer: &dyn Fn(&Path, bool) -> CheckedAnswer) -> CheckedAnswer {
        signal::listen("Stopped.");
        let mut updates = 0;
        loop {
            let size = std::fs::metadata(log).map_or(0, |file| file.len());
            let (checked, found) = answer(log, true)?;
            updates += 1;
            let is_over = checked.running.as_ref().is_none_or(|running| running.done >= running.steps);
            if is_over || self.updates.is_some_and(|most| updates >= most) {
                return Ok((checked, found));
            }
            // If standard output is closed, nobody follows.
            if writeln!(io::stdout().lock(), "{}", found.text).is_err() {
                return Ok((checked, found));
            }
            while std::fs::metadata(log).map_or(0, |file| file.len()) == size {
                std::thread::sleep(PATIENCE);
                if signal::interrupted() {
                    let end = End::Interrupted;
                    return Ok((checked, Answer { text: String::new(), end }));
                }
            }
        }
    }
}

/// The log or table at `path`; a step time in its place, such as "121 ms", stands for itself.
fn text(path: &Path) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let written = path.to_str().filter(|_| !path.exists());
    if let Some(time) = written.filter(|text| text.parse::<Seconds>().is_ok()) {
        return Ok(time.to_owned());
    }
    if let Some(number) = written.filter(|text| text.parse::<f64>().is_ok()) {
        let reason = "a step time has a unit";
        return Err(Fault::in_file(number, reason, format!("write \"{number} s\" or \"{number} ms\"")));
    }
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
