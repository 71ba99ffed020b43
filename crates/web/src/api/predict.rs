//! The forecast: as a whole, as a stream of events, as a plot or as an HTML document.

use super::accepts;
use crate::Shared;
use crate::edit::{Change, edits};
use crate::problem::Problem;
use crate::request::{Input, ScenarioBody, Uploaded, method_choice};
use crate::study::as_written;
use crate::work::{self, EVENTS, Events, Work};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use stepcast_core::method::Method;
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec};
use stepcast_core::scenario::{MAX_WORKERS, Scenario};
use stepcast_report::page;
use stepcast_study::{
    Forecast, ForecastOptions, MethodChoice, Observer, Progress, Request, WhatIf, forecast, usual_workers,
};
use tokio_util::sync::CancellationToken;

/// Most rows of a scaling table.
const MOST_POINTS: usize = 256;

/// Largest cluster whose closed forms take no noticeable time.
const LARGE: u64 = 10_000;

/// Least time of an answer whose figures are shown before the rest.
const SOON: Duration = Duration::from_millis(150);

/// Approximate number of predictions for an interval.
const INTERVAL: u32 = 20;

/// Predictions of slow methods in addition to the scaling table: the cluster itself, and the what-if changes.
const BESIDE: usize = 5;

/// The forecast request.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct PredictRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The method; by default the first that applies.
    #[serde(default)]
    method: Option<String>,
    /// Numbers of workers for the scaling table; by default powers of two.
    #[serde(default)]
    workers: Option<Vec<u32>>,
}

/// The events of a forecast, one per line.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[schemars(rename = "Event")]
pub(crate) enum ForecastEvent {
    /// The method has started.
    Begun {
        /// Its name.
        method: &'static str,
    },
    /// Another prediction was made.
    Progress {
        /// Number of predictions so far.
        done: usize,
        /// Approximate number of predictions in total.
        of: usize,
        /// Number of workers of the last prediction.
        workers: u64,
        /// Its throughput.
        #[serde(with = "InBaseUnits")]
        throughput_samples_per_s: SamplesPerSec,
    },
    /// The forecast so far: first the figures, as estimates while a simulation goes on, then also the scaling curve.
    Part(Box<ForecastAnswer>),
    /// The complete forecast.
    Answer(Box<ForecastAnswer>),
}

/// A forecast as data, as HTML and in brief.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub(crate) struct ForecastAnswer {
    /// The forecast, as from `stepcast predict --json`.
    forecast: Forecast,
    /// Figures, plots and tables as an HTML fragment.
    html: String,
    /// Edits that apply rows of its tables.
    apply: Apply,
}

/// Edits of the scenario's text, for every row; none where edits cannot do it, and while the forecast is incomplete.
#[derive(Default, Serialize, JsonSchema)]
struct Apply {
    what_if: Vec<Vec<Change>>,
    scaling: Vec<Vec<Change>>,
}

struct ForecastJob {
    shared: Arc<Shared>,
    asked: ScenarioBody,
    request: Request<Uploaded>,
    scenario: Arc<Scenario>,
    method: &'static dyn Method,
    workers: Vec<u32>,
    /// Whether the numbers of workers were requested.
    listed: bool,
}

impl ForecastJob {
    fn new(shared: &Arc<Shared>, body: &PredictRequest) -> Result<Self, Problem> {
        let request = body.asked.request(shared)?;
        let choice = method_choice(body.method.as_deref())?;
        let (scenario, method) = (request.scenario()?, request.method(choice)?);
        if let Some(workers) = &body.workers {
            if workers.len() > MOST_POINTS {
                let reason = format!("{} numbers of workers are too many", workers.len());
                return Err(Problem::invalid("workers", reason, format!("name at most {MOST_POINTS}")));
            }
            if let Some(wrong) = workers.iter().find(|&&workers| !(1..=MAX_WORKERS).contains(&workers.into()))
            {
                let reason = format!("{wrong} workers are outside 1 to {MAX_WORKERS}");
                return Err(Problem::invalid("workers", reason, "name numbers within"));
            }
        }
        let workers = body.workers.clone().unwrap_or_else(|| usual_workers(&scenario, method));
        let (shared, asked) = (Arc::clone(shared), body.asked.clone());
        let listed = body.workers.is_some();
        Ok(Self { shared, asked, request, scenario, method, workers, listed })
    }

    fn is_quick(&self) -> bool {
        let largest = self.workers.iter().copied().map(u64::from).max().unwrap_or(0);
        self.method.is_quick() && largest.max(self.scenario.cluster.workers()) <= LARGE
    }

    fn forecast(
        &self,
        token: &CancellationToken,
        report: impl Fn(Progress<'_>) + Sync,
        part: &(dyn Fn(&Forecast) + Sync),
    ) -> Result<Forecast, Problem> {
        let watch = |progress: Progress<'_>| {
            report(progress);
            work::check(token)
        };
        let options = ForecastOptions {
            method: MethodChoice::One(self.method),
            workers: self.listed.then(|| self.workers.clone()),
            ..ForecastOptions::default()
        };
        Ok(forecast(&self.request, &options, &Observer { progress: &watch, part })?)
    }

    /// Sends the forecast, and every prediction before it, as events.
    fn stream(&self, events: &Events) -> Result<(), Problem> {
        events.send(&ForecastEvent::Begun { method: self.method.name() });
        let (done, of) = (AtomicUsize::new(0), self.workers.len() + BESIDE);
        let quick = self.method.is_quick();
        let report = |progress: Progress<'_>| {
            let (done, prediction) = match progress {
                Progress::Working => return,
                Progress::Estimate(prediction) => (done.load(Ordering::Relaxed), prediction),
                Progress::Predicted(prediction) => (1 + done.fetch_add(1, Ordering::Relaxed), prediction),
            };
            if !quick {
                events.send(&ForecastEvent::Progress {
                    done: done.min(of),
                    of,
                    workers: prediction.workers,
                    throughput_samples_per_s: prediction.throughput,
                });
            }
        };
        // The rest takes about as long again for each number of workers and each input of the interval: figures that would wait for
        // it are shown before.
        let since = Instant::now();
        let part = |so_far: &Forecast| {
            let waits = !quick || since.elapsed() * (self.workers.len() as u32 + INTERVAL) > SOON;
            if waits {
                let answer = self.answer(so_far.clone(), Apply::default());
                events.send(&ForecastEvent::Part(Box::new(answer)));
            }
        };
        let forecast = self.forecast(events.token(), report, &part)?;
        let apply = self.apply(&forecast);
        events.send(&ForecastEvent::Answer(Box::new(self.answer(forecast, apply))));
        Ok(())
    }

    fn answer(&self, forecast: Forecast, apply: Apply) -> ForecastAnswer {
        let plots = page::narrow_plots(&self.scenario, self.method, &forecast);
        let html = page::part(&self.scenario, self.method, &forecast, &plots);
        ForecastAnswer { forecast, html, apply }
    }

    /// The edits that apply each row of the tables to the scenario.
    fn apply(&self, forecast: &Forecast) -> Apply {
        let scenario = &self.scenario;
        let from = scenario.to_file();
        let edits = |to: &Scenario| edits(&self.shared, &self.asked, &from, &to.to_file());
        let change = |row: &WhatIf| row.scenario.as_deref().map_or(Vec::new(), edits);
        Apply {
            what_if: forecast.advice.what_if.iter().map(change).collect(),
            scaling: forecast
                .scaling
                .iter()
                .map(|point| edits(&scenario.on(scenario.cluster.resized(point.workers))))
                .collect(),
        }
    }

    /// The report, with the command that makes it from a file with this text.
    fn document(&self, forecast: &Forecast) -> Result<String, Problem> {
        let inputs = toml::to_string(&forecast.scenario).map_err(Problem::fault)?;
        let command = format!("stepcast report scenario.toml --method {} -o report.html", self.method.name());
        Ok(page::document(&self.scenario, self.method, forecast, &inputs, &command))
    }
}

pub(super) async fn predict(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Input(body): Input<PredictRequest>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let job = shared.work.quick().run(move |_| ForecastJob::new(&kept, &body)).await?;
    let queue = if job.is_quick() { Work::quick } else { Work::heavy };
    if accepts(&headers, EVENTS) {
        return Ok(work::respond(shared, queue, move |events| job.stream(events)));
    }
    let (drawing, document) = (accepts(&headers, "image/svg+xml"), accepts(&headers, "text/html"));
    let done = queue(&shared.work).run(move |token| {
        let forecast = job.forecast(token, |_| (), &|_| ())?;
        Ok(if drawing {
            let plot = page::plots(&job.scenario, job.method, &forecast).into_iter().next();
            ([(header::CONTENT_TYPE, "image/svg+xml")], plot.map(|plot| plot.svg).unwrap_or_default())
                .into_response()
        } else if document {
            ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], job.document(&forecast)?).into_response()
        } else {
            as_written(&forecast)?
        })
    });
    done.await
}
