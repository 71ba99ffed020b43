//! Sliders: the keys that are varied most, each with the values that make a valid scenario.

use crate::Shared;
use crate::edit::{Change, edited};
use crate::problem::Problem;
use crate::request::{Input, ScenarioBody, method_choice};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use stepcast_core::quantity::BitsPerSec;
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::Architecture;
use stepcast_core::text;

const COUNTS: [u64; 24] =
    [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192];

/// Rates of a network that are tried, in Gbit/s.
const RATES: [f64; 14] =
    [0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0];

/// Largest factor between the current value and tried ones.
const REACH: u64 = 64;

/// A slider.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Slider {
    /// The key that it changes.
    key: String,
    /// Its name.
    label: &'static str,
    /// The place of the current value among the stops.
    now: usize,
    /// Valid values, the least first.
    stops: Vec<Stop>,
}

/// A valid value.
#[derive(Serialize, JsonSchema)]
struct Stop {
    /// The value in words.
    words: String,
    /// The edit that sets it.
    edit: Change,
}

pub(super) async fn stops(
    State(shared): State<Arc<Shared>>,
    Input(body): Input<ScenarioBody>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    Ok(Json(shared.work.quick().run(move |_| sliders(&kept, &body)).await?).into_response())
}

fn sliders(shared: &Arc<Shared>, body: &ScenarioBody) -> Result<Vec<Slider>, Problem> {
    let scenario = body.request(shared)?.scenario()?;
    let written: Value = text::parse(&body.scenario).unwrap_or_default();
    let trial = Trial { shared, body, own: scenario.to_file() };
    let mut sliders = Vec::new();
    for (key, label, now) in counted(&scenario, &written) {
        // Batches and splits are powers of two.
        let usual = |value: &u64| !key.starts_with("strategy.") || value.is_power_of_two();
        let near = |value: &u64| *value / REACH <= now && *value >= now / REACH;
        let tried = COUNTS.iter().copied().filter(|value| near(value) && usual(value));
        let mut values: Vec<u64> = tried.chain([now]).collect();
        values.sort_unstable();
        values.dedup();
        let stop = |value: u64| (value == now, value.to_string(), value.to_string());
        sliders.extend(trial.slider(&key, label, values.into_iter().map(stop)));
    }
    if scenario.strategy.architecture != Architecture::StandAlone && scenario.cluster.workers() > 1 {
        let now = scenario.cluster.network.bandwidth;
        let mut rates: Vec<BitsPerSec> = RATES.iter().map(|rate| BitsPerSec::new(rate * 1e9)).collect();
        rates.push(now);
        rates.sort_by(|a, b| a.get().total_cmp(&b.get()));
        rates.dedup();
        let stop =
            |rate: BitsPerSec| (rate == now, rate.human(), toml::Value::from(rate.to_string()).to_string());
        let stops: Vec<_> = rates.into_iter().map(stop).collect();
        // Setting only the rate keeps the machine's network, and the other keys of a network that the text writes.
        let ways = ["cluster.network.bandwidth", "cluster.network"];
        sliders.extend(ways.iter().find_map(|key| trial.slider(key, "Bandwidth", stops.iter().cloned())));
    }
    Ok(sliders)
}

/// Keys that count something, their names and values.
fn counted(scenario: &Scenario, written: &Value) -> Vec<(String, &'static str, u64)> {
    let cluster = &scenario.cluster;
    let mut keys: Vec<(String, &'static str, u64)> = Vec::new();
    if written["cluster"]["machine"].is_string() {
        let machines = written["cluster"]["machines"].as_u64().unwrap_or(1);
        keys.push(("cluster.machines".to_owned(), "Machines", machines));
    } else {
        let names = ["Workers", "Workers, group 2", "Workers, group 3"];
        keys.extend(cluster.groups.iter().zip(names).enumerate().map(|(place, (group, name))| {
            (format!("cluster.workers.{place}.count"), name, group.count.into())
        }));
    }
    match &scenario.strategy.plan {
        Some(plan) => {
            keys.extend(
                plan.global_batch.map(|now| ("strategy.plan.global-batch".to_owned(), "Global batch", now)),
            );
            keys.push(("strategy.plan.micro-batch".to_owned(), "Micro-batch", plan.micro_batch));
            keys.push(("strategy.plan.tensor".to_owned(), "Tensor", plan.tensor));
            keys.push(("strategy.plan.pipeline".to_owned(), "Pipeline", plan.pipeline));
        }
        None => keys.push(("strategy.batch".to_owned(), "Batch", scenario.strategy.batch.into())),
    }
    if scenario.strategy.architecture == Architecture::ParameterServer {
        keys.push(("cluster.servers.count".to_owned(), "Servers", cluster.servers.count.into()));
    }
    keys
}

struct Trial<'a> {
    shared: &'a Arc<Shared>,
    body: &'a ScenarioBody,
    own: ScenarioFile,
}

impl Trial<'_> {
    /// The edited scenario, if it is valid and some method predicts it.
    fn reached(&self, edit: &Change) -> Option<ScenarioFile> {
        let scenario = edited(&self.body.scenario, std::slice::from_ref(edit)).ok()?;
        let request = ScenarioBody { scenario, set: self.body.set.clone() }.request(self.shared).ok()?;
        request.method(method_choice(None).ok()?).ok()?;
        Some(request.scenario().ok()?.to_file())
    }

    /// The slider of a key, whose values are the current one or not, with words; none if there is nothing to choose, or if
    /// writing the current value changes the scenario.
    fn slider(
        &self,
        key: &str,
        label: &'static str,
        values: impl Iterator<Item = (bool, String, String)>,
    ) -> Option<Slider> {
        let mut now = None;
        let mut stops = Vec::new();
        for (is_now, words, value) in values {
            let edit = Change { key: key.to_owned(), value: Some(value) };
            let reached = self.reached(&edit);
            if is_now && reached.as_ref() != Some(&self.own) {
                return None;
            }
            if reached.is_some() {
                now = now.or(is_now.then_some(stops.len()));
                stops.push(Stop { words, edit });
            }
        }
        Some(Slider { key: key.to_owned(), label, now: now?, stops }).filter(|slider| slider.stops.len() > 1)
    }
}
