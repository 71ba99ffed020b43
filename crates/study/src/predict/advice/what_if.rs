//! The usual what-if changes, each predicted.

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::machine::Cluster;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::{MAX_WORKERS, Scenario};
use stepcast_core::strategy::Architecture;

/// One change and its effect.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct WhatIf {
    /// "2× bandwidth".
    pub change: &'static str,
    /// Time of one step after the change.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Throughput after the change.
    #[serde(rename = "throughput_samples_per_s")]
    #[serde_as(as = "InBaseUnits")]
    pub throughput: SamplesPerSec,
    /// Relative change of the throughput: 0.3 is 30 % more.
    pub gain: f64,
    /// Relative change of the step time: −0.3 is 30 % shorter.
    pub step_change: f64,
}

/// The cluster with the bandwidth of every link multiplied by `factor`.
pub(crate) fn with_bandwidth(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.network.bandwidth = cluster.network.bandwidth * factor;
    cluster.servers.bandwidth = cluster.servers.bandwidth.map(|rate| rate * factor);
    if let Some(nodes) = &mut cluster.nodes {
        nodes.network.bandwidth = nodes.network.bandwidth * factor;
    }
    for group in &mut cluster.groups {
        group.bandwidth = group.bandwidth.map(|rate| rate * factor);
    }
    cluster
}

/// The cluster with the start-up cost of every transfer multiplied by `factor`.
pub(crate) fn with_startup(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    let inner = cluster.nodes.as_mut().map(|nodes| &mut nodes.network);
    for network in std::iter::once(&mut cluster.network).chain(inner) {
        network.latency = network.latency * factor;
        network.startup = network.startup * factor;
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

fn with_batch(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.strategy.batch = scenario.strategy.batch.saturating_mul(2);
    for group in &mut scenario.cluster.groups {
        group.batch = group.batch.map(|batch| batch.saturating_mul(2));
    }
    scenario
}

/// The changes that can be made to a scenario.
fn changes(scenario: &Scenario) -> Vec<(&'static str, Scenario)> {
    let cluster = &scenario.cluster;
    let mut changes =
        vec![("2× compute", scenario.on(with_compute(cluster, 2.0))), ("2× batch", with_batch(scenario))];
    if scenario.strategy.architecture == Architecture::StandAlone {
        return changes;
    }
    // Times of measured all-reduces do not depend on the network of the scenario.
    if scenario.strategy.exchange.curve.is_none() {
        changes.push(("2× bandwidth", scenario.on(with_bandwidth(cluster, 2.0))));
        if cluster.network.latency + cluster.network.startup > Seconds::ZERO {
            changes.push(("½ start-up", scenario.on(with_startup(cluster, 0.5))));
        }
    }
    if cluster.workers() < MAX_WORKERS {
        changes.push(("+1 worker", scenario.on(with_worker(cluster))));
    }
    if scenario.strategy.architecture == Architecture::ParameterServer {
        changes.push(("+1 server", scenario.on(with_server(cluster))));
    }
    changes
}

/// The effect of each change, the most helpful first.
pub(super) fn tried(scenario: &Scenario, method: &dyn Method, now: &Prediction) -> Vec<WhatIf> {
    let predicted = changes(scenario).into_iter().filter_map(|(change, scenario)| {
        let then = method.predict(&scenario).ok()?;
        Some(WhatIf {
            change,
            iteration: then.iteration,
            throughput: then.throughput,
            gain: then.throughput / now.throughput - 1.0,
            step_change: then.iteration / now.iteration - 1.0,
        })
    });
    let mut what_if: Vec<WhatIf> = predicted.collect();
    what_if.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    what_if
}
