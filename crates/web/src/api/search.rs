//! The search for the best configuration.

use crate::problem::Problem;
use crate::request::{ScenarioBody, method_choice};
use crate::study::{Job, Shown, Study, values};
use crate::work;
use schemars::JsonSchema;
use serde::Deserialize;
use stepcast_report::format::{name, plain};
use stepcast_report::plots::pareto::{Choice, Pareto};
use stepcast_report::tables::search as tables;
use stepcast_study::explore::search::{Constraint, Effort, Entry, Goal, SearchReport, search};
use stepcast_study::explore::sweep::Axis;

/// Most configurations; larger searches are for the command line.
const MOST: u128 = 20_000_000;

/// The search request.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct SearchRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The objective to minimise: iteration, epoch, time, cost or cost-time.
    minimize: String,
    /// The keys to vary: "workers.count=1..64".
    vary: Vec<String>,
    /// The constraints: "deadline<=2h".
    #[serde(default)]
    subject_to: Vec<String>,
    /// The method; by default the first that applies.
    #[serde(default)]
    method: Option<String>,
}

impl Study for SearchRequest {
    type Report = SearchReport;

    fn answer(&self, job: &mut Job<'_>) -> Result<(SearchReport, Shown), Problem> {
        let objective = self.minimize.parse().map_err(|reason: String| {
            Problem::invalid("minimize", reason, "use iteration, epoch, time, cost or cost-time")
        })?;
        let constraint = |text: &String| {
            Constraint::parse(text).map_err(|fault| Problem::from(fault).at(format!("subject_to: {text}")))
        };
        let constraints = self.subject_to.iter().map(constraint).collect::<Result<_, _>>()?;
        let request = self.asked.request(job.shared)?;
        let variants = request.variants(Axis::parse_all(&self.vary)?)?;
        let points = variants.grid().points();
        if points > MOST {
            let reason = format!("{:.1e} configurations are too many here", points as f64);
            return Err(Problem::invalid("vary", reason, "vary fewer values, or use `stepcast search`"));
        }
        let choice = method_choice(self.method.as_deref())?;
        let called = name(variants.first().name());
        let currency = variants.first().currency();
        let goal = Goal { objective, constraints };
        let effort = Effort { how: None, budget: None, seed: 1 };
        let token = job.token();
        let report = search(&variants, choice, &goal, effort, &|| work::check(token), &mut |seen| {
            let plot = || front(&seen.front(), &called, currency);
            let _ = job.progress(seen.done, Some(points as u64), "configurations", plot);
        })?;
        let shown = job.show(|| shown(&report, &called))?;
        Ok((report, shown))
    }
}

fn shown(report: &SearchReport, called: &str) -> Result<Shown, Problem> {
    let mut shown = Shown::new(&tables::summary(report));
    if !report.front.is_empty() {
        shown.plot("front", Pareto::from_search(report, called).svg());
    }
    let rows = |entries: &[&Entry]| entries.iter().map(|entry| Some(entry.index)).collect();
    shown.table_of(&tables::best(report), rows(&report.best.iter().collect::<Vec<_>>()));
    shown.table_of(&tables::front(report), rows(&tables::front_rows(report)));
    shown.table(&tables::constraints(report));
    shown.notes(report.reasons().map(|reason| plain(reason)));
    for entry in report.front.iter().chain(&report.best) {
        shown.offer(entry.index, tables::configuration(entry), values(&entry.values));
    }
    Ok(shown)
}

fn front(entries: &[Entry], called: &str, currency: &str) -> Option<String> {
    let front: Vec<_> = entries.iter().filter_map(Choice::from_entry).collect();
    (!front.is_empty()).then(|| {
        Pareto {
            title: format!("Time and cost of training {called}"),
            currency: currency.to_owned(),
            candidates: Vec::new(),
            front,
            chosen: None,
        }
        .svg()
    })
}
