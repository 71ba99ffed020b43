//! The search for the best configuration, with intermediate results.

use super::accepts;
use crate::Shared;
use crate::events::{self, Events};
use crate::input::Input;
use crate::problem::Problem;
use crate::request::{ScenarioBody, method_choice};
use crate::words::for_the_page;
use crate::work::{self, Work};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stepcast_core::method::Wanted;
use stepcast_report::adapters;
use stepcast_report::format::name;
use stepcast_report::html;
use stepcast_report::plots::pareto::Pareto;
use stepcast_report::tables::search as tables;
use stepcast_study::explore::search::{Constraint, Effort, Entry, Goal, Progress, SearchReport, search};
use stepcast_study::explore::sweep::Axis;

/// Most configurations; larger searches are for the command line.
const MOST: u128 = 20_000_000;

/// Shortest interval between progress events.
const BETWEEN: Duration = Duration::from_millis(150);

/// The search request.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Body {
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

/// The events of a search, one per line.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// Results so far.
    Progress {
        /// Configurations that are evaluated or excluded.
        done: u64,
        /// All configurations.
        of: u64,
        /// The plot of the front of time and cost.
        plot: Option<String>,
    },
    /// The final result.
    Found {
        /// The same as `stepcast search --json`.
        report: Box<SearchReport>,
        /// The plot of the front of time and cost; points have the indices of configurations.
        plot: Option<String>,
        /// The tables of the report as HTML fragments: the best, the front, the constraints.
        tables: Vec<String>,
        /// The configurations in the rows of the table of the front.
        front_rows: Vec<u64>,
    },
}

pub(super) async fn find(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Input(body): Input<Body>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    if accepts(&headers, events::CONTENT_TYPE) {
        return Ok(events::respond(shared, Work::heavy, move |events| aloud(&kept, &body, events)));
    }
    let report =
        shared.work.heavy().run(move |token| found(&kept, &body, &|| work::wanted(token), &mut |_, _| ()));
    Ok(Json(report.await?.0).into_response())
}

type Tell<'a> = dyn FnMut(&Progress<'_>, &About) + 'a;

/// Context of the plots.
struct About {
    name: String,
    currency: String,
    of: u64,
}

fn found(
    shared: &Arc<Shared>,
    body: &Body,
    wanted: &Wanted<'_>,
    tell: &mut Tell<'_>,
) -> Result<(SearchReport, About), Problem> {
    let objective = body.minimize.parse().map_err(|reason: String| {
        Problem::invalid("minimize", reason, "use iteration, epoch, time, cost or cost-time")
    })?;
    let constraint = |text: &String| {
        Constraint::parse(text).map_err(|fault| Problem::from(fault).at(format!("subject_to: {text}")))
    };
    let constraints = body.subject_to.iter().map(constraint).collect::<Result<_, _>>()?;
    let axis =
        |text: &String| Axis::parse(text).map_err(|fault| Problem::from(fault).at(format!("vary: {text}")));
    let axes = body.vary.iter().map(axis).collect::<Result<_, _>>()?;
    let request = body.asked.request(shared)?;
    let variants = request.variants(axes)?;
    let points = variants.grid().points();
    if points > MOST {
        let reason = format!("{:.1e} configurations are too many here", points as f64);
        return Err(Problem::invalid("vary", reason, "vary fewer values, or use `stepcast search`"));
    }
    let choice = method_choice(body.method.as_deref())?;
    let first = variants.first();
    let about = About { name: name(first.name()), currency: first.currency().to_owned(), of: points as u64 };
    let goal = Goal { objective, constraints };
    let effort = Effort { how: None, budget: None, seed: 1 };
    let report = search(&variants, choice, &goal, effort, wanted, &mut |seen| tell(&seen, &about))?;
    Ok((report, about))
}

fn aloud(shared: &Arc<Shared>, body: &Body, events: &Events) -> Result<(), Problem> {
    let mut told = Instant::now();
    let wanted = || work::wanted(events.token());
    let (report, about) = found(shared, body, &wanted, &mut |seen, about| {
        if told.elapsed() >= BETWEEN {
            told = Instant::now();
            let plot = front(seen.front(), about);
            events.send(&Event::Progress { done: seen.done, of: about.of, plot });
        }
    })?;
    let plot = (!report.front.is_empty()).then(|| adapters::pareto(&report, &about.name).svg());
    let all = [tables::best(&report), tables::front(&report), tables::constraints(&report)];
    let sections = all.iter().filter(|table| !table.rows.is_empty()).map(html::section);
    let sections: Vec<String> =
        sections.collect::<Result<_, _>>().map_err(|error| Problem::fault(error.to_string()))?;
    let sections = sections.iter().map(|table| for_the_page(table)).collect();
    let front_rows = tables::front_rows(&report).iter().map(|entry| entry.index).collect();
    events.send(&Event::Found { report: Box::new(report), plot, tables: sections, front_rows });
    Ok(())
}

/// The plot of the front so far.
fn front(entries: Vec<Entry>, about: &About) -> Option<String> {
    let front: Vec<_> = entries.iter().filter_map(adapters::choice).collect();
    (!front.is_empty()).then(|| {
        Pareto {
            title: format!("Time and cost of training {}", about.name),
            currency: about.currency.clone(),
            candidates: Vec::new(),
            front,
            chosen: None,
        }
        .svg()
    })
}
