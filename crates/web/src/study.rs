//! Studies as jobs: the result of a command, as one response, or as a stream with progress, plots and tables for the page.

use crate::Shared;
use crate::api::accepts;
use crate::edit::Change;
use crate::problem::Problem;
use crate::request::Input;
use crate::work::{self, EVENTS, Events, Work};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stepcast_core::prediction::Warning;
use stepcast_report::table::NEUTRAL;
use stepcast_report::table::Table;
use stepcast_report::{json, table};
use tokio_util::sync::CancellationToken;

/// Shortest interval between progress events.
const BETWEEN: Duration = Duration::from_millis(150);

/// Largest plot that is redrawn while it grows; larger ones are drawn when they are complete.
const LARGEST_PART: usize = 256 << 10;

/// Least ratio of a study's working time to its drawing time.
const WORKING: u32 = 9;

/// The request for a study; its fields are the flags of the command.
pub(crate) trait Study: DeserializeOwned + JsonSchema + Send + 'static {
    type Report: Serialize + JsonSchema + Send + 'static;

    /// Computes the answer, and its presentation on the page.
    fn answer(&self, job: &mut Job<'_>) -> Result<(Self::Report, Shown), Problem>;

    /// The answer as the command writes it with `--json`.
    fn written(report: &Self::Report) -> Result<Response, Problem> {
        as_written(report)
    }
}

pub(crate) struct Job<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    token: &'a CancellationToken,
    /// Receiver of progress, if the client wants any.
    events: Option<&'a Events>,
    told: Instant,
    /// When the next plot may be drawn; never if they are too large.
    next_plot: Option<Instant>,
}

impl<'a> Job<'a> {
    /// The token that is cancelled when the client disconnects.
    pub(crate) fn token(&self) -> &'a CancellationToken {
        self.token
    }

    /// Cancels the study once the client has gone.
    pub(crate) fn check(&self) -> ControlFlow<()> {
        work::check(self.token)
    }

    /// Reports progress, with a plot so far; limited to a visible rate.
    pub(crate) fn progress(
        &mut self,
        done: u64,
        of: Option<u64>,
        what: &'static str,
        plot: impl FnOnce() -> Option<String>,
    ) -> ControlFlow<()> {
        if let Some(events) = self.events.filter(|_| self.told.elapsed() >= BETWEEN) {
            self.told = Instant::now();
            let plot = self.part(plot);
            events.send(&StudyEvent::<()>::Progress { done, of, what, plot });
        }
        self.check()
    }

    /// The plot so far, if it is time for one.
    fn part(&mut self, plot: impl FnOnce() -> Option<String>) -> Option<String> {
        let began = Instant::now();
        self.next_plot.filter(|next| *next <= began)?;
        let plot = plot()?;
        let is_small = plot.len() <= LARGEST_PART;
        self.next_plot = is_small.then(|| Instant::now() + began.elapsed() * WORKING);
        is_small.then_some(plot)
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.events.is_some()
    }

    /// The presentation for the page; empty for other clients.
    pub(crate) fn show(&self, make: impl FnOnce() -> Result<Shown, Problem>) -> Result<Shown, Problem> {
        if self.is_shown() { make() } else { Ok(Shown::default()) }
    }
}

/// The events of a study, one per line.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(rename = "Event")]
pub(crate) enum StudyEvent<Report> {
    /// Progress of the study.
    Progress {
        /// Number done.
        done: u64,
        /// Total number, if known.
        of: Option<u64>,
        /// Name of the counted things.
        what: &'static str,
        /// The plot so far, if there is one.
        plot: Option<String>,
    },
    /// The end.
    Answer {
        /// The report, as from the command with `--json`; for a sweep, only the number of points.
        report: Report,
        /// Its presentation on the page.
        #[serde(flatten)]
        shown: Shown,
    },
}

/// An answer as plots, tables and sentences, with changes that can be applied to the scenario.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Shown {
    summary: String,
    plots: Vec<Drawing>,
    tables: Vec<Section>,
    /// A part of a scenario file.
    text: Option<String>,
    notes: Vec<String>,
    /// Edits of the scenario's text, by the number that rows of tables and points of plots have.
    uses: BTreeMap<u64, Use>,
}

/// A plot.
#[derive(Serialize, JsonSchema)]
struct Drawing {
    /// Name of its file.
    name: &'static str,
    /// The plot as SVG.
    svg: String,
}

/// A table.
#[derive(Serialize, JsonSchema)]
struct Section {
    /// The table as an HTML fragment.
    html: String,
    /// Number of each row's use; none for rows that cannot be used.
    rows: Vec<Option<u64>>,
}

/// A change that can be applied to the scenario.
#[derive(Serialize, JsonSchema)]
struct Use {
    /// Its description.
    words: String,
    /// The edits.
    edits: Vec<Change>,
}

impl Shown {
    pub(crate) fn new(summary: &str) -> Self {
        Self { summary: summary.to_owned(), ..Self::default() }
    }

    pub(crate) fn plot(&mut self, name: &'static str, svg: String) {
        self.plots.push(Drawing { name, svg });
    }

    /// Adds a table without rows that can be used; nothing if it is empty.
    pub(crate) fn table(&mut self, table: &Table) {
        self.table_of(table, Vec::new());
    }

    /// Adds a table whose rows stand for these numbers.
    pub(crate) fn table_of(&mut self, table: &Table, rows: Vec<Option<u64>>) {
        if table.rows.is_empty() && table.worded_note(NEUTRAL).is_empty() {
            return;
        }
        self.tables.push(Section { html: table::folding_section(table), rows });
    }

    pub(crate) fn notes(&mut self, notes: impl IntoIterator<Item = String>) {
        self.notes.extend(notes);
    }

    pub(crate) fn warnings(&mut self, warnings: &[Warning]) {
        self.notes(warnings.iter().map(|warning| format!("{}: {}", warning.code, warning.message)));
    }

    pub(crate) fn text(&mut self, text: String) {
        self.text = Some(text);
    }

    /// Adds a change of the scenario; nothing without edits.
    pub(crate) fn offer(&mut self, number: u64, words: impl Into<String>, edits: Vec<Change>) {
        if !edits.is_empty() {
            self.uses.insert(number, Use { words: words.into(), edits });
        }
    }
}

pub(crate) async fn ask<S: Study>(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Input(study): Input<S>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let told = Instant::now();
    if accepts(&headers, EVENTS) {
        return Ok(work::respond(shared, Work::heavy, move |events| {
            let mut job = Job {
                shared: &kept,
                token: events.token(),
                events: Some(events),
                told,
                next_plot: Some(told),
            };
            let (report, shown) = study.answer(&mut job)?;
            events.send(&StudyEvent::Answer { report, shown });
            Ok(())
        }));
    }
    let work = move |token: &CancellationToken| {
        let (report, _) =
            study.answer(&mut Job { shared: &kept, token, events: None, told, next_plot: None })?;
        S::written(&report)
    };
    shared.work.heavy().run(work).await
}

/// A value exactly as commands write it with `--json`.
pub(crate) fn as_written(value: &impl Serialize) -> Result<Response, Problem> {
    let text = json::pretty(value).map_err(Problem::fault)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// The edits that set varied keys to values; groups without workers are removed, the last one first.
pub(crate) fn values(pairs: &[(String, String)]) -> Vec<Change> {
    let group = |(key, value): &(String, String)| {
        let group = key.strip_suffix(".count").filter(|_| value == "0")?;
        let number = group.strip_prefix("cluster.workers.")?;
        number.parse::<usize>().is_ok().then(|| group.to_owned())
    };
    let left = pairs.iter().filter(|pair| group(pair).is_none());
    let set = left.map(|(key, value)| Change { key: key.clone(), value: Some(value.clone()) });
    let removed = pairs.iter().rev().filter_map(group).map(|key| Change { key, value: None });
    set.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_without_workers_are_removed_from_the_last() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let pairs = [
            pair("cluster.workers.0.count", "0"),
            pair("strategy.batch", "0"),
            pair("cluster.workers.1.count", "0"),
            pair("cluster.workers.2.count", "4"),
        ];
        let made: Vec<String> = values(&pairs)
            .into_iter()
            .map(|change| {
                change.value.map_or(format!("-{}", change.key), |value| format!("{}={value}", change.key))
            })
            .collect();
        assert_eq!(
            made,
            ["strategy.batch=0", "cluster.workers.2.count=4", "-cluster.workers.1", "-cluster.workers.0"]
        );
    }
}
