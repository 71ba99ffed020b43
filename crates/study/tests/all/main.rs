//! Tests of studies, by area, and studies on whole data sets.

#![allow(clippy::unwrap_used, clippy::panic)]

mod check {
    mod ranks;
    mod running;
}
mod decisions;
mod explore {
    mod plan;
    mod search;
    mod sweep;
}
mod fuse;
mod predict {
    mod advice;
    mod calibrate;
    mod forecast;
    mod interval;
    mod methods;
}
mod published;
mod relations;
mod request {
    mod launch;
    mod recipes;
    mod round_trips;
    mod scenarios;
}
mod servers;
mod side_by_side;
mod simulate {
    mod runs;
    mod transformer;
}
mod sprint;
mod steady;

use std::ops::ControlFlow;
use stepcast_core::prediction::Prediction;
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_study::explore::plan::{Aim, PlanReport, plan};
use stepcast_study::predict::methods;
use stepcast_study::{Forecast, ForecastOptions, MethodChoice, Observer, Request, forecast};

/// The scenario of a text with changes.
fn scenario(text: &str, changes: &[&str]) -> Scenario {
    Document::new("test", text).scenario(&Edit::parse_all(changes).unwrap()).unwrap()
}

fn request(text: &str, changes: &[&str]) -> Request {
    Request::from_reader("job.toml", text.as_bytes(), Edit::parse_all(changes).unwrap()).unwrap()
}

fn example(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

/// The answer of the method called `name`.
fn predicted_by(name: &str, scenario: &Scenario) -> Prediction {
    methods::find(name).unwrap().predict(scenario).unwrap()
}

/// The choice of the method called `name`.
fn by(name: &str) -> MethodChoice {
    MethodChoice::One(methods::find(name).unwrap())
}

/// The forecast of a request without a scaling table.
fn forecast_by(request: &Request, method: MethodChoice) -> Forecast {
    forecast(request, &ForecastOptions::unscaled(method), &Observer::none()).unwrap()
}

fn go(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The plan with the shortest step, or time of training.
fn fastest(scenario: &Scenario) -> PlanReport {
    plan(scenario, Aim::Time, &mut go).unwrap()
}

/// Layers that one closed form goes through: all of them for every group of workers.
fn pass(scenario: &Scenario) -> u64 {
    let workload = &scenario.workload;
    (workload.layers.len().max(workload.tensors as usize) * scenario.cluster.groups.len()) as u64
}

/// Many small layers on groups of unequal workers.
fn deep(layers: usize, groups: usize) -> String {
    let group = |group| format!("[[cluster.workers]]\ncount = 2\nspeed = {}\n", 1 + group);
    format!(
        "strategy.batch = 8\n{}[model.custom]\nname = \"deep\"\ninput = [16]\nlayers = [\n{}]\n",
        (0..groups).map(group).collect::<String>(),
        "{ op = \"linear\", out = 16 },\n".repeat(layers)
    )
}
