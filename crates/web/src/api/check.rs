//! A running job against its forecast.

use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::quantity::Seconds;
use stepcast_report::table::NEUTRAL;
use stepcast_report::tables::check as tables;
use stepcast_study::check::ranks::{RankRecording, read_rank_texts};
use stepcast_study::check::{Check, Known, Reading, check, read_progress, read_steps};
use stepcast_study::{MethodChoice, Progress};

/// The request to check a log.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct CheckRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The log of a framework, a table, or lines such as "41 ms".
    #[serde(default)]
    log: String,
    /// Instead of a log: steps of several ranks, as `stepcast check --measured FOLDER` reads them, without traces.
    #[serde(default)]
    files: Vec<NamedText>,
    /// Steps that are still to come; by default from the log or the data set.
    #[serde(default)]
    steps_left: Option<u64>,
    /// Time from the first line of the log to the end of the run: "30 d"; by default that of the plan.
    #[serde(default)]
    deadline: Option<String>,
}

/// A file of a rank.
#[derive(Deserialize, JsonSchema)]
struct NamedText {
    /// Its name, which tells the rank of a dump.
    name: String,
    /// Its contents.
    text: String,
}

impl Study for CheckRequest {
    type Report = Check;

    fn answer(&self, job: &mut Job<'_>) -> Result<(Check, Shown), Problem> {
        let request = self.asked.request(job.shared)?;
        let scenario = request.scenario()?;
        let given = self.deadline.as_deref().map(str::parse::<Seconds>).transpose();
        let given =
            given.map_err(|_| Problem::invalid("deadline", "it is no time", "use a time such as 30 d"))?;
        let deadline = given.or(scenario.planning.as_ref().and_then(|plan| plan.deadline));
        let given = self.files.iter().map(|file| (file.name.clone(), file.text.clone()));
        let texts: Vec<_> = given.chain([("log".to_owned(), self.log.clone())]).collect();
        let ranks = read_rank_texts(&texts)?;
        let steps = ranks.as_ref().map(RankRecording::steps).filter(|steps| !steps.is_empty());
        let readings = match steps {
            Some(steps) => steps.into_iter().map(Reading::Step).collect(),
            None => read_steps("log", &self.log)?,
        };
        let lines = read_progress(&self.log);
        // Logs without numbers of steps cannot predict the end.
        let is_followed =
            lines.len() > 1 && (self.steps_left.is_some() || lines.iter().any(|line| line.of.is_some()));
        let known = Known {
            steps_left: self.steps_left,
            ranks: ranks.as_ref(),
            followed: is_followed.then_some((&lines, deadline)),
            ..Known::default()
        };
        let method = request.method(MethodChoice::Auto)?;
        let watch = |_: Progress<'_>| job.check();
        let checked =
            check(&request, method, &readings, known, &watch).map_err(|why| request.refused(why.into()))?;
        let shown = job.show(|| {
            let slow = checked.slowness.as_ref().map(|slow| format!(" {}", tables::slow_verdict(slow)));
            let mut shown = Shown::new(&(tables::verdict(&checked) + &slow.unwrap_or_default()));
            shown.table(&tables::steps(&checked));
            if let Some(running) = &checked.running {
                shown.table(&tables::running(running, scenario.currency()));
            }
            if let Some(slow) = &checked.slowness {
                shown.table(&tables::slowness(slow));
            }
            shown.table(&tables::suspects(&checked, NEUTRAL));
            Ok(shown)
        })?;
        Ok((checked, shown))
    }
}
