//! The timeline of a simulated run: plots a time window of some workers, from a run that is cached for a while.

use super::accepts;
use crate::Shared;
use crate::problem::Problem;
use crate::request::{Input, ScenarioBody, Uploaded};
use crate::work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::quantity::Seconds;
use stepcast_report::format::name;
use stepcast_report::plots::gantt::{Bar, Gantt, Lane};
use stepcast_study::Request;
use stepcast_study::simulate::{self, Recording};
use stepcast_trace::timeline::perfetto;
use tokio_util::sync::CancellationToken;

/// Most events of a run; longer ones are for the command line and a trace viewer.
const MOST_EVENTS: u64 = 300_000;

const KEPT: usize = 8;

/// Width of the hidden drawn area on either side of a window, in windows.
const BEYOND: f64 = 0.5;

const WORKERS: usize = 4;

/// The timeline request.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct TimelineRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// Steps per worker.
    #[serde(default = "five")]
    steps: u32,
    /// Start of the window in seconds; by default the beginning of the run.
    #[serde(default)]
    from_s: Option<f64>,
    /// End of the window in seconds; by default the end of the run.
    #[serde(default)]
    to_s: Option<f64>,
    /// The first worker to draw.
    #[serde(default)]
    first_worker: usize,
    /// Number of workers to draw.
    #[serde(default)]
    workers: Option<usize>,
}

fn five() -> u32 {
    5
}

/// Parts of a window that a lane is divided into: shorter operations are counted together.
const PARTS: f64 = 1000.0;

/// A lane of a window: its operations, in the order of their beginnings.
#[derive(Serialize, JsonSchema)]
struct DrawnLane {
    /// The process: "worker 0".
    group: String,
    /// The resource: "computing".
    name: String,
    /// Its colour.
    kind: usize,
    /// Begin and end in seconds, colour (that of the lane if less than 0), place of the name, and number of operations.
    bars: Vec<(f64, f64, i64, usize, usize)>,
}

/// A time window of some workers of a run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Window {
    /// Number of events of the whole run.
    events: usize,
    /// Duration of the run.
    span_s: f64,
    /// Number of workers of the run.
    workers: usize,
    /// Start of the window.
    from_s: f64,
    /// End of the window.
    to_s: f64,
    /// The lanes, with operations near the window.
    lanes: Vec<DrawnLane>,
    /// Names of operations.
    names: Vec<String>,
    /// Colours of operations that differ from their lanes' colours, and their names.
    kinds: Vec<(usize, String)>,
}

struct SimulatedRun {
    gantt: Gantt,
    /// The first lane of every group, and the end of the last one.
    groups: Vec<usize>,
    events: usize,
    span: Seconds,
}

/// Recently plotted runs, the latest first.
#[derive(Default)]
pub(crate) struct Timelines(Mutex<VecDeque<(u64, Arc<SimulatedRun>)>>);

impl Timelines {
    fn get(
        &self,
        key: u64,
        make: impl FnOnce() -> Result<SimulatedRun, Problem>,
    ) -> Result<Arc<SimulatedRun>, Problem> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, run)) = lock().iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(run));
        }
        let run = Arc::new(make()?);
        let mut runs = lock();
        runs.push_front((key, Arc::clone(&run)));
        runs.truncate(KEPT);
        Ok(run)
    }
}

impl SimulatedRun {
    fn new(request: &Request<Uploaded>, steps: u32, check: &CancelCheck<'_>) -> Result<Self, Problem> {
        let recording = recorded(request, steps, check)?;
        let scenario = request.scenario()?;
        let gantt =
            Gantt::from_recording(&recording, &format!("Steps of {}, simulated", name(scenario.name())));
        let mut groups = vec![0];
        let changes = gantt.lanes.windows(2).enumerate().filter(|(_, pair)| pair[0].group != pair[1].group);
        groups.extend(changes.map(|(place, _)| place + 1));
        groups.push(gantt.lanes.len());
        let bars = || gantt.lanes.iter().flat_map(|lane| &lane.bars);
        let span = Seconds::new(bars().map(|bar| bar.until.get()).fold(0.0, f64::max));
        Ok(Self { events: bars().count(), span, groups, gantt })
    }

    /// The window and its workers as a chart.
    fn part(&self, body: &TimelineRequest, beyond: f64) -> Gantt {
        let finite = |time: Option<f64>, other: f64| time.filter(|time| time.is_finite()).unwrap_or(other);
        let span = self.span.get();
        let shortest = span * 1e-6;
        let from = finite(body.from_s, 0.0).clamp(0.0, span - shortest);
        let to = finite(body.to_s, span).clamp(from + shortest, span);
        let workers = self.groups.len() - 1;
        let first = body.first_worker.min(workers.saturating_sub(1));
        let last = first.saturating_add(body.workers.unwrap_or(WORKERS).max(1)).min(workers);
        let margin = beyond * (to - from);
        let lane = |lane: &Lane| {
            let near = |bar: &&Bar| bar.until.get() >= from - margin && bar.since.get() <= to + margin;
            let bars = lane.bars.iter().filter(near);
            Lane {
                group: lane.group.clone(),
                name: lane.name.clone(),
                kind: lane.kind,
                bars: bars.cloned().collect(),
            }
        };
        let lanes = &self.gantt.lanes[self.groups[first]..self.groups[last]];
        Gantt {
            title: self.gantt.title.clone(),
            lanes: lanes.iter().map(lane).collect(),
            window: Some([Seconds::new(from), Seconds::new(to)]),
            kinds: self.gantt.kinds.clone(),
        }
    }

    /// A page gets more than the window, so that it can move the picture at once.
    fn window(&self, body: &TimelineRequest) -> Window {
        let part = self.part(body, BEYOND);
        let [from_s, to_s] = part.window.unwrap_or([Seconds::ZERO; 2]).map(Seconds::get);
        let narrow = (to_s - from_s) / PARTS;
        let mut places: IndexMap<&str, usize> = IndexMap::new();
        let mut lanes = Vec::new();
        for lane in &part.lanes {
            let mut bars: Vec<(f64, f64, i64, usize, usize)> = Vec::new();
            for bar in &lane.bars {
                let (since, until) = (bar.since.get(), bar.until.get());
                let kind = bar.kind.map_or(-1, |kind| kind as i64);
                let joins = |last: &&mut (f64, f64, i64, usize, usize)| {
                    kind == last.2 && until - since < narrow && until - last.0 < narrow
                };
                if let Some(last) = bars.last_mut().filter(joins) {
                    last.1 = last.1.max(until);
                    last.4 += 1;
                } else {
                    let next = places.len();
                    bars.push((since, until, kind, *places.entry(&bar.name).or_insert(next), 1));
                }
            }
            let (group, name) = (lane.group.clone(), lane.name.clone());
            lanes.push(DrawnLane { group, name, kind: lane.kind, bars });
        }
        let names = places.into_keys().map(str::to_owned).collect();
        let (events, span_s, workers) = (self.events, self.span.get(), self.groups.len() - 1);
        Window { events, span_s, workers, from_s, to_s, lanes, names, kinds: part.kinds }
    }
}

pub(super) async fn timeline(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Input(body): Input<TimelineRequest>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    let (trace, drawing) =
        (accepts(&headers, "application/vnd.perfetto"), accepts(&headers, "image/svg+xml"));
    let work = move |token: &CancellationToken| {
        let check = || work::check(token);
        let request = body.asked.request(&kept)?;
        if trace {
            let mut trace = Vec::new();
            perfetto::print(&recorded(&request, body.steps, &check)?.timeline(), &mut trace)
                .map_err(Problem::fault)?;
            return Ok(([(header::CONTENT_TYPE, "application/vnd.perfetto")], trace).into_response());
        }
        let mut key = DefaultHasher::new();
        (&body.asked.scenario, &body.asked.set, body.steps).hash(&mut key);
        let run = kept.timelines.get(key.finish(), || SimulatedRun::new(&request, body.steps, &check))?;
        Ok(if drawing {
            ([(header::CONTENT_TYPE, "image/svg+xml")], run.part(&body, 0.0).svg()).into_response()
        } else {
            Json(run.window(&body)).into_response()
        })
    };
    shared.work.heavy().run(work).await
}

/// The first steps of a run that is short enough to be drawn here.
fn recorded(request: &Request<Uploaded>, steps: u32, check: &CancelCheck<'_>) -> Result<Recording, Problem> {
    let scenario = request.scenario()?;
    let each = simulate::events_per_step(&scenario);
    if steps == 0 || each.saturating_mul(steps.into()) > MOST_EVENTS {
        let reason = format!("{steps} steps would be no events, or more than {MOST_EVENTS}");
        let remedy = match MOST_EVENTS / each {
            0 => "use fewer workers".to_owned(),
            most => format!("use 1 to {most} steps"),
        };
        return Err(Problem::invalid("steps", reason, remedy));
    }
    simulate::timeline(&scenario, steps.into(), check).map_err(|stopped| match stopped {
        Stopped::Fault(why) => request.refused(why).into(),
        Stopped::Cancelled => Problem::stopped(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_simulated_once_for_all_its_windows() {
        let timelines = Timelines::default();
        let run =
            || Ok(SimulatedRun { gantt: Gantt::default(), groups: vec![0], events: 0, span: Seconds::ZERO });
        let first = timelines.get(1, run).unwrap();
        let again = timelines.get(1, || Err(Problem::fault("it was simulated again"))).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(timelines.get(2, || Err(Problem::stopped())).is_err());
    }
}
