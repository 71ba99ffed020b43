//! Networks of layers: all-reduce, parameter servers, local SGD, asynchronous training and SPRINT.

use super::{Relation, changed, hold, holds, in_interval, none_slower, parts_add_up};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_core::strategy::{Architecture, Synchronisation};
use stepcast_study::MethodChoice;

/// What sums of many times lose.
const ROUNDING: f64 = 1e-9;

/// Servers take pushes in the order in which they arrive, and a faster link leaves less to fuse: what is earlier can delay
/// what the step waits for.
const ORDER: f64 = 1e-3;

/// The largest factor between counted and done work of a convolution: Winograd's F(2×2, 3×3).
const FAST_CONVOLUTION: f64 = 2.25;

const RELATIONS: &[Relation] = &[
    // Caught: faster memory that lengthened the forward pass, where the host's time was spread over layers by their device
    // time
    ("faster computing never lengthens a step", faster_computing),
    ("faster links never lengthen a step", faster_links),
    ("more samples never take less time", more_samples),
    ("no step is shorter than its bounds", bounded),
    ("workers do no more together than alone", together),
    ("parts add up to the step, and none is negative", |scenario, _| parts_add_up(&predicted(scenario)?)),
    ("an interval contains its step", |scenario, _| {
        in_interval(scenario, method(scenario)?, &predicted(scenario)?)
    }),
];

/// Of a simulation with few steps, only bounds are exact.
const SIMULATED: &[Relation] =
    &[("no step is shorter than its bounds", bounded), ("workers do no more together than alone", together)];

#[test]
fn relations_of_layers_hold() {
    hold(&scenarios(&["all-reduce", "servers", "local"], usize::MAX), RELATIONS);
}

#[test]
fn relations_of_asynchronous_training_hold() {
    hold(&scenarios(&["async", "stale"], 8), SIMULATED);
}

#[test]
fn relations_of_sprint_hold() {
    let example = include_str!("../../../../../examples/sprint.toml");
    let cases =
        (1_u32..=16, 1_u32..=16, select(&["10gbe", "infiniband-fdr", "infiniband-edr"][..]), 0.2..4.0_f64);
    let scenarios = cases.prop_filter_map("the method refuses it", move |(nodes, batch, network, speed)| {
        let mut scenario = Document::new("sprint", example).scenario(&[]).ok()?;
        scenario.cluster = scenario.cluster.resized(8 * nodes);
        scenario.cluster.network = stepcast_core::machine::catalog::network(network).ok()?;
        scenario.strategy.batch = batch;
        scenario.cluster.groups[0].speed = speed;
        MethodChoice::Auto.method(&scenario).is_ok().then_some(scenario)
    });
    let relations = &RELATIONS[..3];
    hold(&scenarios.boxed(), relations);
}

/// Random clusters and ways to train.
fn scenarios(ways: &'static [&'static str], most: usize) -> BoxedStrategy<Scenario> {
    let machines = (
        select(&["tesla-t4", "v100", "a100", "xeon-e5-2660"][..]),
        1_u32..=most.min(32) as u32,
        select(&["1gbe", "10gbe", "100gbe", "infiniband-edr"][..]),
        select(&[1_u32, 2, 4][..]),
        1_u32..=4,
    );
    let training = (
        select(&["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet-v2"][..]),
        select(&[1_u32, 8, 32, 128][..]),
        select(ways),
        select(&["fp32", "amp"][..]),
        // What Horovod fuses depends on when its cycles begin.
        select(&["none", "pytorch", "all"][..]),
        0.1..2.0_f64,
    );
    (machines, training)
        .prop_filter_map("no method models it", |(machines, training)| {
            let (device, workers, network, node, servers) = machines;
            let (zoo, batch, way, precision, fusion, speed) = training;
            let strategy = match way {
                "all-reduce" => format!("architecture = \"all-reduce\"\nfusion.rule = \"{fusion}\"\n"),
                "servers" => "architecture = \"parameter-server\"\n".to_owned(),
                "local" => "architecture = \"parameter-server\"\nsynchronisation = \"local-sgd(4)\"\n".to_owned(),
                "async" => "synchronisation = \"async\"\n".to_owned(),
                _ => "synchronisation = \"ssp(3)\"\n".to_owned(),
            };
            let precision = if device.starts_with("xeon") { "fp32" } else { precision };
            let more = match way {
                "all-reduce" => format!("nodes = {{ workers = {node} }}\n"),
                _ => format!("servers = {{ count = {servers} }}\n"),
            };
            let text = format!(
                "[model]\nzoo = \"{zoo}\"\n[cluster]\nworkers = [{{ count = {workers}, device = \"{device}\", speed = \
                 {speed} }}]\nnetwork = \"{network}\"\n{more}[strategy]\nbatch = {batch}\nprecision = \
                 \"{precision}\"\n{strategy}[methods.simulate]\njitter = 0\nruns = 1\nsteps = 40\nwarm-up = 10\n"
            );
            let scenario = Document::new("test", text).scenario(&[]).ok()?;
            MethodChoice::Auto.method(&scenario).is_ok().then_some(scenario)
        })
        .boxed()
}

fn method(scenario: &Scenario) -> Result<&'static dyn Method, TestCaseError> {
    MethodChoice::Auto.method(scenario).map_err(|fault| TestCaseError::fail(fault.to_string()))
}

fn predicted(scenario: &Scenario) -> Result<Prediction, TestCaseError> {
    super::predicted(method(scenario)?, scenario)
}

fn faster_computing(scenario: &Scenario, factor: f64) -> Result<(), TestCaseError> {
    let speed = changed(scenario, |s| s.cluster.groups.iter_mut().for_each(|group| group.speed *= factor));
    let memory = changed(scenario, |s| {
        for group in &mut s.cluster.groups {
            group.device.memory_rate = group.device.memory_rate * factor;
        }
    });
    none_slower(scenario, method(scenario)?, vec![("speed", speed), ("memory", memory)], ORDER)
}

fn faster_links(scenario: &Scenario, factor: f64) -> Result<(), TestCaseError> {
    let network = changed(scenario, |s| s.cluster.network.bandwidth = s.cluster.network.bandwidth * factor);
    let latency = changed(scenario, |s| s.cluster.network.latency = s.cluster.network.latency / factor);
    let within = changed(scenario, |s| {
        if let Some(nodes) = &mut s.cluster.nodes {
            nodes.network.bandwidth = nodes.network.bandwidth * factor;
        }
    });
    none_slower(
        scenario,
        method(scenario)?,
        vec![("network", network), ("latency", latency), ("within nodes", within)],
        ORDER,
    )
}

fn more_samples(scenario: &Scenario, _: f64) -> Result<(), TestCaseError> {
    let more = changed(scenario, |s| s.strategy.batch *= 2);
    let (now, then) = (predicted(scenario)?.iteration, predicted(&more)?.iteration);
    holds(then.get() >= now.get() * (1.0 - ROUNDING), || format!("twice the batch: {then} in place of {now}"))
}

/// Computing at the peak rate, and bytes over the ports of servers.
fn bounded(scenario: &Scenario, _: f64) -> Result<(), TestCaseError> {
    let prediction = predicted(scenario)?;
    let step = prediction.iteration.get() * (1.0 + ROUNDING);
    let group = &scenario.cluster.groups[0];
    let peak = group.device.peak(scenario.strategy.precision.of_products());
    let peak = peak.unwrap_or_else(|| group.device.fp32_peak()).get() * group.speed * FAST_CONVOLUTION;
    let flops = 3.0 * scenario.workload.forward.get() * f64::from(scenario.strategy.batch);
    // Backward passes of the first layer need no gradient of the input, and half of some networks is that layer.
    let computing = 0.5 * flops / peak;
    let served = scenario.strategy.architecture == Architecture::ParameterServer;
    let rounds = match scenario.strategy.synchronisation {
        Synchronisation::LocalSgd(steps) => f64::from(steps),
        _ => 1.0,
    };
    let ports = scenario.cluster.network.bandwidth.to_bytes_per_sec().get()
        * f64::from(scenario.cluster.servers.count);
    let bytes = scenario.workload.bytes().get() * scenario.cluster.workers() as f64;
    let transfer = if served { bytes / ports / rounds } else { 0.0 };
    holds(step >= computing.max(transfer), || {
        format!("{}: {step} s, at least {computing} and {transfer}", prediction.method)
    })
}

fn together(scenario: &Scenario, _: f64) -> Result<(), TestCaseError> {
    let prediction = predicted(scenario)?;
    let alone: f64 = prediction
        .groups
        .iter()
        .filter(|group| group.compute > Seconds::ZERO)
        .map(|group| f64::from(group.count) * f64::from(group.batch) / group.compute.get())
        .sum();
    let factor = prediction.scaling_factor;
    holds(prediction.throughput.get() <= alone * (1.0 + 1e-6) && factor <= 1.0 + 1e-6, || {
        format!("{} samples/s, {alone} without communication, factor {factor}", prediction.throughput.get())
    })
}
