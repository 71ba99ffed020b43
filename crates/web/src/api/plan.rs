//! The best way to split a transformer, the machines to take for it, and what to measure before.

use super::map::several;
use crate::edit::{Change, edits};
use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Job, Shown, Study};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use stepcast_core::scenario::Scenario;
use stepcast_core::text;
use stepcast_report::plots::pareto::Pareto;
use stepcast_report::tables::{advise, plan as tables};
use stepcast_study::advise::MeasurementAdvice;
use stepcast_study::explore::decide::{Decision, decide};
use stepcast_study::explore::plan::{Aim, PlanReport, Restriction, SHARED, applied, plan_within};

/// Time after which the best plan so far is the answer: half of what a request may take.
const LONGEST: Duration = Duration::from_secs(60);

/// The request for a plan.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct PlanRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The objective to minimise: time or cost; by default time.
    #[serde(default)]
    minimize: Option<String>,
    /// Machines of the catalog to choose from: "dgx-a100, dgx-h100"; by default those of the cluster.
    #[serde(default)]
    offers: Option<String>,
    /// Numbers of machines: "1..16" or "16,32,64"; by default that of the cluster.
    #[serde(default)]
    nodes: Option<String>,
    /// Sequences of a step.
    #[serde(default)]
    global_batch: Option<u64>,
    /// Tokens to train on.
    #[serde(default)]
    tokens: Option<f64>,
    /// Longest time of training: "30 d".
    #[serde(default)]
    deadline: Option<String>,
    /// Highest cost of training.
    #[serde(default)]
    budget: Option<f64>,
    /// Whether to include plans that fit only with low memory fragmentation.
    #[serde(default)]
    may_fit: bool,
}

impl Study for PlanRequest {
    type Report = PlanReport;

    fn answer(&self, job: &mut Job<'_>) -> Result<(PlanReport, Shown), Problem> {
        let minimize = self.minimize.as_deref().map(str::parse::<Aim>).transpose();
        let aim = minimize.map_err(|reason| Problem::invalid("minimize", reason, "use time or cost"))?;
        let own = Restriction {
            offers: self.offers.as_deref().map(listed),
            nodes: several(self.nodes.as_deref(), "nodes")?,
            frameworks: None,
            global_batch: self.global_batch,
            tokens: self.tokens,
            deadline: self.deadline.clone(),
            budget: self.budget,
            may_fit: self.may_fit,
        };
        let with = |more: Vec<String>| {
            let set = self.asked.set.iter().cloned().chain(more).collect();
            let body = ScenarioBody { set, ..self.asked.clone() };
            Ok::<_, Problem>(body.request(job.shared)?.for_planning())
        };
        let request = with(own.changes())?;
        let scenario = request.scenario()?;
        let began = Instant::now();
        let watch = &mut |plans| match began.elapsed() < LONGEST {
            true => job.progress(plans, None, "plans", || None),
            false => ControlFlow::Break(()),
        };
        let report = plan_within(SHARED, &scenario, aim.unwrap_or_default(), watch);
        let report = report.map_err(|why| request.refused(why))?;
        let shown = job.show(|| self.shown(job, &*with(Vec::new())?.scenario()?, &report))?;
        Ok((report, shown))
    }
}

impl PlanRequest {
    fn shown(&self, job: &Job<'_>, open: &Scenario, report: &PlanReport) -> Result<Shown, Problem> {
        let mut shown = Shown::new(&tables::summary(report));
        let rows = tables::front_rows(report);
        let from = open.to_file();
        for (number, entry) in std::iter::once(&&report.best).chain(&rows).enumerate() {
            let edits = match applied(open, entry) {
                Ok(to) => edits(job.shared, &self.asked, &from, &to.to_file()),
                Err(_) => Vec::new(),
            };
            let words = if number == 0 { "the best plan" } else { &entry.words };
            shown.offer(number as u64, words, edits);
        }
        if report.best.training.is_some() && report.best.cost.is_some() {
            shown.plot("front", Pareto::from_plans(report, &rows).svg());
        }
        shown.table(&tables::best(report));
        for table in [tables::settings(report), tables::stages(report)].iter().flatten() {
            shown.table(table);
        }
        if let Some(training) = &report.training {
            shown.table(&tables::training(training, report));
        }
        if report.front.len() > 1 {
            shown.table_of(&tables::front(report), (1..=rows.len() as u64).map(Some).collect());
        }
        shown.table(&tables::families(report));
        shown.text(report.toml.clone());
        shown.warnings(&report.prediction.warnings);
        Ok(shown)
    }
}

fn listed(names: &str) -> Vec<String> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

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

/// The request for advice: a scenario whose `[plan]` has offers and tokens.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct AdviseRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
}

impl Study for AdviseRequest {
    type Report = MeasurementAdvice;

    fn answer(&self, job: &mut Job<'_>) -> Result<(MeasurementAdvice, Shown), Problem> {
        let request = self.asked.request(job.shared)?.for_planning();
        let scenario = request.scenario()?;
        let watch = &mut |plans| job.progress(plans, None, "plans", || None);
        let report = plan_within(SHARED, &scenario, Aim::Cost, watch).map_err(|why| request.refused(why))?;
        let Some(advice) = report.advice else {
            let reason = "there is nothing to choose: one offer, or no number of tokens";
            return Err(Problem::invalid(
                "plan.offers",
                reason,
                "choose among several machines, and say how much to train on",
            ));
        };
        let shown = job.show(|| {
            let mut shown = Shown::new(&advise::verdict(&advice));
            shown.table(&advise::candidates(&advice));
            shown.table(&advise::experiments(&advice));
            if let Some(best) = advice.best() {
                shown.notes(advise::choices(&advice, best));
                shown.text(best.command.clone());
            }
            Ok(shown)
        })?;
        Ok((advice, shown))
    }
}
