//! The forecast: as a whole, as a stream of events, as a plot or as an HTML document.

use super::accepts;
use crate::Shared;
use crate::events::{self, Events};
use crate::input::Input;
use crate::problem::Problem;
use crate::request::{ScenarioBody, Uploaded, method_choice};
use crate::work::Work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::serde_as;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec};
use stepcast_core::scenario::MAX_WORKERS;
use stepcast_report::format::{grouped, limit, percent};
use stepcast_report::page;
use stepcast_study::{Extent, Forecast, Prepared, Progress, Request};
use tokio_util::sync::CancellationToken;

/// Most rows of a scaling table.
const MOST_POINTS: usize = 256;

/// Closed forms of larger clusters take noticeable time.
const LARGE: u64 = 10_000;

/// Predictions of slow methods in addition to the scaling table: the cluster itself, and the what-if changes.
const BESIDE: usize = 5;

/// The forecast request.
#[derive(Clone, Deserialize, JsonSchema)]
pub(crate) struct Body {
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
#[serde_as]
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
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
        #[serde_as(as = "InBaseUnits")]
        throughput_samples_per_s: SamplesPerSec,
    },
    /// The complete forecast.
    Answer(Box<Answer>),
}

/// A forecast as data, as HTML and in brief.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The same as `stepcast predict --json`.
    forecast: Forecast,
    /// Figures, plots and tables as an HTML fragment.
    html: String,
    /// The row in the table of methods.
    brief: Brief,
}

/// Formatted figures.
#[derive(Serialize, JsonSchema)]
struct Brief {
    step: String,
    throughput: String,
    scaling_factor: String,
    bottleneck: &'static str,
}

struct Job {
    request: Request<Uploaded>,
    prepared: Prepared,
    extent: Extent,
}

impl Job {
    fn new(shared: &Arc<Shared>, body: &Body) -> Result<Self, Problem> {
        let request = body.asked.request(shared)?;
        let prepared = request.prepare(method_choice(body.method.as_deref())?)?;
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
        let workers = Some(prepared.workers(&Extent { workers: body.workers.clone(), ..Extent::default() }));
        Ok(Self { request, prepared, extent: Extent { workers, ..Extent::default() } })
    }

    fn points(&self) -> &[u32] {
        self.extent.workers.as_deref().unwrap_or_default()
    }

    fn is_quick(&self) -> bool {
        let largest = self.points().iter().copied().map(u64::from).max().unwrap_or(0);
        self.prepared.method.is_quick() && largest.max(self.prepared.scenario.cluster.workers()) <= LARGE
    }

    fn forecast(
        &self,
        token: &CancellationToken,
        report: impl Fn(Progress<'_>) + Sync,
    ) -> Result<Forecast, Problem> {
        let watch = |progress: Progress<'_>| {
            report(progress);
            if token.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        Ok(self.request.forecast(&self.prepared, &self.extent, &watch)?)
    }

    /// Sends the forecast, and every prediction before it, as events.
    fn stream(&self, events: &Events) -> Result<(), Problem> {
        events.send(&Event::Begun { method: self.prepared.method.name() });
        let (done, of) = (AtomicUsize::new(0), self.points().len() + BESIDE);
        let quick = self.prepared.method.is_quick();
        let report = |progress: Progress<'_>| {
            let (done, prediction) = match progress {
                Progress::Working => return,
                Progress::Estimate(prediction) => (done.load(Ordering::Relaxed), prediction),
                Progress::Predicted(prediction) => (1 + done.fetch_add(1, Ordering::Relaxed), prediction),
            };
            if !quick {
                events.send(&Event::Progress {
                    done: done.min(of),
                    of,
                    workers: prediction.workers,
                    throughput_samples_per_s: prediction.throughput,
                });
            }
        };
        let forecast = self.forecast(events.token(), report)?;
        events.send(&Event::Answer(Box::new(self.answer(forecast)?)));
        Ok(())
    }

    fn answer(&self, forecast: Forecast) -> Result<Answer, Problem> {
        let plots = page::plots(&self.prepared.scenario, self.prepared.method, &forecast);
        let html = page::part(&self.prepared.scenario, self.prepared.method, &forecast, &plots)
            .map_err(|error| Problem::fault(error.to_string()))?;
        let prediction = &forecast.prediction;
        let brief = Brief {
            step: prediction.iteration.human(),
            throughput: grouped(prediction.throughput.human()),
            scaling_factor: percent(prediction.scaling_factor),
            bottleneck: limit(prediction.bottleneck),
        };
        Ok(Answer { forecast, html, brief })
    }

    /// The report, with the command that makes it from a file with this text.
    fn document(&self, forecast: &Forecast) -> Result<String, Problem> {
        let fault = |error: &dyn std::fmt::Display| Problem::fault(error.to_string());
        let inputs = toml::to_string(&forecast.scenario).map_err(|error| fault(&error))?;
        let command =
            format!("stepcast report scenario.toml --method {} -o report.html", self.prepared.method.name());
        page::document(&self.prepared.scenario, self.prepared.method, forecast, inputs, &command)
            .map_err(|error| fault(&error))
    }
}

pub(super) async fn predict(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Input(body): Input<Body>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let job = shared.work.quick().run(move |_| Job::new(&kept, &body)).await?;
    let queue = if job.is_quick() { Work::quick } else { Work::heavy };
    if accepts(&headers, events::CONTENT_TYPE) {
        return Ok(events::respond(shared, queue, move |events| job.stream(events)));
    }
    let (drawing, document) = (accepts(&headers, "image/svg+xml"), accepts(&headers, "text/html"));
    let done = queue(&shared.work).run(move |token| {
        let forecast = job.forecast(token, |_| ())?;
        Ok(if drawing {
            let plot = page::plots(&job.prepared.scenario, job.prepared.method, &forecast).into_iter().next();
            ([(header::CONTENT_TYPE, "image/svg+xml")], plot.map(|plot| plot.svg).unwrap_or_default())
                .into_response()
        } else if document {
            ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], job.document(&forecast)?).into_response()
        } else {
            Json(forecast).into_response()
        })
    });
    done.await
}
