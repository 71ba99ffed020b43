//! The bottleneck of a step and the changes that would help, each of them predicted.

mod changes;
mod critical_path;
mod served;
mod what_if;

pub use changes::{Change, all as changes};
pub(crate) use changes::{with_bandwidth, with_startup};
pub use critical_path::{CriticalPath, Share};
pub use what_if::{Alone, WhatIf};

use super::budget::BALANCE;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;
use stepcast_core::method::{CancelCheck, Method};
use stepcast_core::prediction::{Bottleneck, PartKind, Prediction, Resource};
use stepcast_core::quantity::{BitsPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// The bottleneck of the step, in words and figures.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Advice {
    /// What limits the step, in words; also whether one worker alone is faster than all of them.
    pub sentence: String,
    /// The fastest worker alone, which the speed-up compares with; none if it is the whole cluster.
    pub alone: Option<Alone>,
    /// Link rate at which computing takes as long as communicating; none if no rate achieves it.
    pub balanced_bandwidth: Option<BitsPerSec>,
    /// The critical path of one step; none if the scenario cannot be simulated, is too large, or
    /// the method predicts another step than the engine.
    pub critical_path: Option<CriticalPath>,
    /// Possible changes, the most helpful first.
    pub what_if: Vec<WhatIf>,
}

/// Explains a prediction, without parts that need further predictions or the engine.
pub fn explain(scenario: &Scenario, method: &dyn Method, prediction: &Prediction) -> Advice {
    let alone = Alone::fastest(scenario, prediction);
    let slower = alone.as_ref().and_then(|alone| alone.faster_than(prediction));
    Advice {
        sentence: [sentence(scenario, prediction)]
            .into_iter()
            .chain(slower)
            .chain(served::sentence(scenario, method))
            .collect::<Vec<_>>()
            .join(" "),
        what_if: Vec::new(),
        alone,
        balanced_bandwidth: None,
        critical_path: None,
    }
}

impl Advice {
    /// Adds the critical path of the predicted step.
    pub fn find_path(&mut self, scenario: &Scenario, prediction: &Prediction, wanted: &CancelCheck<'_>) {
        self.critical_path = CriticalPath::of(scenario, prediction, wanted);
    }

    pub(crate) fn find_balance(&mut self, scenario: &Scenario, method: &dyn Method) {
        self.balanced_bandwidth = balanced_bandwidth(scenario, method);
    }

    /// Adds the changes that would help.
    pub fn try_changes(&mut self, scenario: &Scenario, method: &dyn Method, prediction: &Prediction) {
        self.what_if = what_if::tried(scenario, method, prediction, self.alone.as_ref());
    }
}

fn sentence(scenario: &Scenario, prediction: &Prediction) -> String {
    if prediction.transformer.is_some() {
        return of_plan(prediction);
    }
    let percent = |time: Seconds| 100.0 * (time / prediction.iteration);
    let communicating = prediction.iteration - prediction.computing();
    let link = percent(communicating - prediction.part(PartKind::StartUp));
    let waiting = prediction.part(PartKind::HostToDevice);
    match prediction.bottleneck {
        Bottleneck::Compute
            if scenario.input.rate.is_some() && waiting > prediction.part(PartKind::Compute) =>
        {
            format!(
                "The input pipeline is the bottleneck: workers wait for their samples {:.0} % of the step.",
                percent(waiting)
            )
        }
        Bottleneck::Compute => {
            format!(
                "Computing is the bottleneck: it takes {:.0} % of the step.",
                percent(prediction.computing())
            )
        }
        Bottleneck::ServerLink => match busiest_link(prediction) {
            Some((link, share)) => {
                format!("The {link} is the bottleneck: it is busy {:.0} % of the time.", 100.0 * share)
            }
            None => format!(
                "The link of {} is the bottleneck: the step waits for it {link:.0} % of the time.",
                if scenario.cluster.servers.count == 1 { "the server" } else { "the fullest server" }
            ),
        },
        Bottleneck::WorkerLink => {
            format!(
                "The workers' own links are the bottleneck: the step waits for them {link:.0} % of the time."
            )
        }
        Bottleneck::FixedCost => format!(
            "Start-up and latency of transfers are the bottleneck: they take {:.0} % of the step.",
            percent(prediction.part(PartKind::StartUp))
        ),
        Bottleneck::Server => format!(
            "Updating at the servers is the bottleneck: workers wait {:.0} % of the time.",
            percent(communicating)
        ),
        Bottleneck::HostCopy => {
            format!("Copying on the hosts is the bottleneck: transfers take {link:.0} % of the step.")
        }
    }
}

/// The most heavily used simulated link of a server, with its utilisation: "uplink of server 0".
fn busiest_link(prediction: &Prediction) -> Option<(String, f64)> {
    prediction.simulation.as_deref()?.usage.iter().find_map(|usage| match usage.resource {
        Resource::Downlink(server) => Some((format!("downlink of server {server}"), usage.share)),
        Resource::Uplink(server) => Some((format!("uplink of server {server}"), usage.share)),
        _ => None,
    })
}

/// The rate at which computing and communicating take equally long, by bisection over eight decades: more
/// bandwidth never lengthens communication.
fn balanced_bandwidth(scenario: &Scenario, method: &dyn Method) -> Option<BitsPerSec> {
    if scenario.strategy.architecture == Architecture::StandAlone || !method.is_quick() {
        return None;
    }
    let compute_bound = |exponent: f64| {
        let cluster = with_bandwidth(&scenario.cluster, 10f64.powf(exponent));
        let prediction = method.predict(&scenario.on(cluster)).ok()?;
        Some(match prediction.transformer {
            // Stages also wait for each other, which is not communication.
            Some(_) => prediction.bottleneck == Bottleneck::Compute,
            None => 2.0 * prediction.computing().get() >= prediction.iteration.get(),
        })
    };
    let (mut low, mut high) = (-4.0, 4.0);
    if compute_bound(low)? || !compute_bound(high)? {
        return None;
    }
    for _ in 2..BALANCE {
        let middle = 0.5 * (low + high);
        if compute_bound(middle)? { high = middle } else { low = middle }
    }
    let server = scenario.cluster.servers.bandwidth.unwrap_or(scenario.cluster.network.bandwidth);
    Some(server * 10f64.powf(high))
}

/// Parts of the step of a plan below this share are left out.
const LEAST: f64 = 0.005;

/// The cause of a stage's wait in a part of the breakdown.
fn awaited(part: PartKind) -> &'static str {
    match part {
        PartKind::Host => "its host to issue kernels",
        PartKind::Offload => "its host's memory",
        PartKind::PipelineSends => "its own sends",
        PartKind::Gradients => "the sum of gradients",
        PartKind::PipelineBubble => "other stages",
        PartKind::OuterGradients => "the exchange of outer gradients",
        other => other.name(),
    }
}

/// The largest part of the step of a plan, and the waits of its last stage, the longest first.
fn of_plan(prediction: &Prediction) -> String {
    let share = |time: Seconds| time / prediction.iteration;
    let percent = |share: f64| format!("{:.0} %", (100.0 * share).max(1.0));
    let [compute, again] = [PartKind::Compute, PartKind::Recompute].map(|kind| share(prediction.part(kind)));
    let computes = |kind: PartKind| matches!(kind, PartKind::Compute | PartKind::Recompute);
    let waits = prediction.breakdown.iter().filter(|part| !computes(part.kind));
    let mut waits: Vec<(PartKind, f64)> = waits.map(|part| (part.kind, share(part.time))).collect();
    waits.retain(|(_, share)| *share >= LEAST);
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let lead = match waits.first() {
        Some((kind, most)) if *most > compute + again => match kind {
            PartKind::PipelineBubble => "Stages wait for each other most of all".to_owned(),
            PartKind::Host => "The host is the bottleneck".to_owned(),
            PartKind::Offload => "Offloading is the bottleneck".to_owned(),
            kind => {
                let name = kind.name();
                let mut letters = name.chars();
                let first = letters.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
                let verb = if name.ends_with('s') { "are" } else { "is" };
                format!("{first}{} {verb} the bottleneck", letters.as_str())
            }
        },
        _ => "Computing is the bottleneck".to_owned(),
    };
    let mut text = format!("{lead}. The last stage to finish computes {} of the step", percent(compute));
    if again >= LEAST {
        text.push_str(&format!(" and recomputes {}", percent(again)));
    }
    for (index, (kind, share)) in waits.iter().enumerate() {
        let joint = if index == 0 { "; it waits for" } else { ", for" };
        text.push_str(&format!("{joint} {} {}", awaited(*kind), percent(*share)));
    }
    text + "."
}
