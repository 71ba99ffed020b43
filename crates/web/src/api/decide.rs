//! Which machines to take: every option with its time, cost and risk, and the edits that make it the scenario.

use crate::edit::Change;
use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_core::text;
use stepcast_study::explore::decide::{Decision, decide};
use stepcast_study::explore::plan::SHARED;

/// The request for a decision: a scenario whose `[plan]` has offers.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct DecideRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
}

impl Study for DecideRequest {
    type Report = Decision;

    fn answer(&self, job: &mut Job<'_>) -> Result<(Decision, Shown), Problem> {
        let request = self.asked.request(job.shared)?.for_planning();
        let scenario = request.scenario()?;
        let watch = &mut |done: usize, of: usize| {
            job.progress(done as u64, Some(of as u64), "kinds of machines", || None)
        };
        let decision = decide(SHARED, &scenario, watch).map_err(|why| request.refused(why))?;
        let shown = job.show(|| {
            let mut shown = Shown::new("");
            for (number, option) in decision.options.iter().enumerate() {
                let Some(figures) = &option.figures else { continue };
                let words = format!("{} × {}", option.nodes, option.offer);
                shown.offer(number as u64, words, written(&figures.toml)?);
            }
            Ok(shown)
        })?;
        Ok((decision, shown))
    }
}

/// The edits that put sections of a scenario in the place of those that a text has.
fn written(sections: &str) -> Result<Vec<Change>, Problem> {
    let table: toml::Table = text::parse(sections).map_err(|_| Problem::fault("a plan cannot be read"))?;
    let mut changes = Vec::new();
    for (section, value) in table {
        let (path, keys) = match value {
            toml::Value::Table(mut inner) if section == "strategy" => (
                "strategy.plan".to_owned(),
                inner.remove("plan").and_then(|plan| plan.as_table().cloned()).unwrap_or_default(),
            ),
            toml::Value::Table(inner) => (section, inner),
            _ => continue,
        };
        changes.push(Change { key: path.clone(), value: None });
        let set = |(key, value): (String, toml::Value)| Change {
            key: format!("{path}.{key}"),
            value: Some(value.to_string()),
        };
        changes.extend(keys.into_iter().map(set));
    }
    Ok(changes)
}
