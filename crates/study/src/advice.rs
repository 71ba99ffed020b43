//! What limits a step and what would help: every change is predicted, none is guessed.

use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::cluster::Cluster;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Bottleneck, Prediction};
use stepcast_core::quantity::{BitsPerSec, SamplesPerSec, Seconds, number};
use stepcast_core::scenario::{MAX_WORKERS, Scenario};
use stepcast_core::strategy::Architecture;

/// One change and what it would bring.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct WhatIf {
    /// "2× bandwidth".
    pub change: &'static str,
    /// Time of one step after the change.
    #[serde(rename = "iteration_s", serialize_with = "number")]
    #[schemars(with = "f64")]
    pub iteration: Seconds,
    /// Throughput after the change.
    #[serde(rename = "throughput_samples_per_s", serialize_with = "number")]
    #[schemars(with = "f64")]
    pub throughput: SamplesPerSec,
    /// Throughput after against before: 0.3 is 30 % more.
    pub gain: f64,
}

/// What limits the step, in words and figures.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Advice {
    /// One sentence about the bottleneck.
    pub sentence: String,
    /// Link rate at which computing takes as long as communicating; none where no rate achieves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balanced_bandwidth: Option<BitsPerSec>,
    /// Changes, the most helpful first.
    pub what_if: Vec<WhatIf>,
}

/// Judges a prediction and tries the usual changes.
pub(crate) fn advise(scenario: &Scenario, method: &dyn Method, prediction: &Prediction) -> Advice {
    Advice {
        sentence: sentence(scenario, prediction),
        balanced_bandwidth: balanced_bandwidth(scenario, method),
        what_if: what_if(scenario, method, prediction),
    }
}

fn computing(prediction: &Prediction) -> Seconds {
    prediction.part("compute") + prediction.part("host-to-device")
}

fn sentence(scenario: &Scenario, prediction: &Prediction) -> String {
    let percent = |time: Seconds| 100.0 * (time / prediction.iteration);
    let communicating = prediction.iteration - computing(prediction);
    let link = percent(communicating - prediction.part("start-up"));
    match prediction.bottleneck {
        Bottleneck::Compute => {
            format!(
                "Computing is the bottleneck: it takes {:.0} % of the step.",
                percent(computing(prediction))
            )
        }
        Bottleneck::ServerLink => format!(
            "The link of {} is the bottleneck: the step waits for it {link:.0} % of the time.",
            if scenario.cluster.servers.count == 1 { "the server" } else { "the fullest server" }
        ),
        Bottleneck::WorkerLink => {
            format!(
                "The workers' own links are the bottleneck: the step waits for them {link:.0} % of the time."
            )
        }
        Bottleneck::FixedCost => format!(
            "Start-up and latency of transfers are the bottleneck: they take {:.0} % of the step.",
            percent(prediction.part("start-up"))
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

fn with_bandwidth(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.network.bandwidth = cluster.network.bandwidth * factor;
    cluster.servers.bandwidth = cluster.servers.bandwidth.map(|rate| rate * factor);
    for group in &mut cluster.groups {
        group.bandwidth = group.bandwidth.map(|rate| rate * factor);
    }
    cluster
}

fn with_compute(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    for group in &mut cluster.groups {
        group.speed *= factor;
    }
    cluster
}

fn with_worker(cluster: &Cluster) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.groups[0].count += 1;
    cluster
}

fn with_server(cluster: &Cluster) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.servers.count += 1;
    cluster
}

fn what_if(scenario: &Scenario, method: &dyn Method, now: &Prediction) -> Vec<WhatIf> {
    let cluster = &scenario.cluster;
    let mut changes = vec![("2× compute", with_compute(cluster, 2.0))];
    if scenario.strategy.architecture != Architecture::StandAlone {
        changes.push(("2× bandwidth", with_bandwidth(cluster, 2.0)));
        if cluster.workers() < MAX_WORKERS {
            changes.push(("+1 worker", with_worker(cluster)));
        }
    }
    if scenario.strategy.architecture == Architecture::ParameterServer {
        changes.push(("+1 server", with_server(cluster)));
    }
    let predicted = changes.into_iter().filter_map(|(change, cluster)| {
        let then = method.predict(&scenario.on(cluster)).ok()?;
        let gain = then.throughput / now.throughput - 1.0;
        Some(WhatIf { change, iteration: then.iteration, throughput: then.throughput, gain })
    });
    let mut what_if: Vec<WhatIf> = predicted.collect();
    what_if.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    what_if
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
        Some(2.0 * computing(&prediction).get() >= prediction.iteration.get())
    };
    let (mut low, mut high) = (-4.0, 4.0);
    if compute_bound(low)? || !compute_bound(high)? {
        return None;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if compute_bound(middle)? { high = middle } else { low = middle }
    }
    let server = scenario.cluster.servers.bandwidth.unwrap_or(scenario.cluster.network.bandwidth);
    Some(server * 10f64.powf(high))
}
