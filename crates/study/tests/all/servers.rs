//! Parameter servers from names and one throughput: scenarios of published runs by the default method, against the
//! reference implementation of server software in research/priors.

use crate::predicted_by;
use stepcast_core::prediction::{PartKind, Prediction};
use stepcast_core::scenario::Scenario;
use stepcast_study::predict::methods;

/// Runs of the test vectors: model, and what the scenario says beside the number of workers and servers.
const RUNS: &str = include_str!("../servers.txt");

fn cell(id: &str, column: &str) -> String {
    let text = include_str!("../../../../research/priors/vectors_servers.csv");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let column = lines.next().unwrap().iter().position(|name| *name == column).unwrap();
    lines.find(|line| line[0] == id).unwrap()[column].to_owned()
}

fn number(id: &str, column: &str) -> f64 {
    cell(id, column).parse().unwrap()
}

fn scenario(model: &str, changes: &[&str]) -> Scenario {
    let text = format!(
        "strategy.batch = 64\nstrategy.architecture = \"parameter-server\"\n[model]\nzoo = \"{model}\"\n"
    );
    crate::scenario(&text, changes)
}

fn predicted(scenario: &Scenario) -> Prediction {
    methods::choose(scenario).unwrap().predict(scenario).unwrap()
}

/// The scenario whose single worker takes `alone` seconds: with its server where the baseline had one.
fn calibrated(mut scenario: Scenario, alone: f64, with_server: bool) -> Scenario {
    let mut one = scenario.clone();
    one.cluster.groups[0].count = 1;
    one.cluster.servers.count = 1;
    let first = predicted(&one);
    let computing = first.groups[0].compute.get();
    let others = if with_server { first.iteration.get() - computing } else { 0.0 };
    scenario.cluster.groups[0].speed = computing / (alone - others).max(0.3 * alone);
    scenario
}

#[test]
fn published_runs_follow_the_reference() {
    for run in RUNS.lines() {
        let [id, model, changes] = run.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let mut scenario = scenario(model, &changes.split(' ').collect::<Vec<_>>());
        scenario.cluster.groups[0].count = number(id, "N") as u32;
        scenario.cluster.servers.count = number(id, "S") as u32;
        let scenario = calibrated(scenario, number(id, "T1"), cell(id, "with_server") == "True");
        let prediction = predicted(&scenario);
        let (step, expected) = (prediction.iteration.get(), number(id, "predicted_s"));
        assert!((step / expected - 1.0).abs() < 0.05, "{id}: {step} against {expected}");
        let samples = u64::from(scenario.cluster.groups[0].gpus) * 64 * scenario.cluster.workers();
        assert_eq!(prediction.samples, samples, "{id}");
    }
}

/// Li 2020, Figure 2: asynchronous Inception-v3 on machines with a V100 and 10 Gbit/s, from names alone.
#[test]
fn inception_saturates_where_it_did() {
    for (batch, workers) in [(16, 4), (32, 4), (64, 5), (128, 7)] {
        let batch = format!("strategy.batch={batch}");
        let changes = [
            "strategy.synchronisation=async",
            &batch,
            "cluster.network=cloud-10g",
            "cluster.workers.0.device=v100",
        ];
        let base = scenario("inception-v3", &changes);
        let rate = |workers| predicted(&base.on(base.cluster.resized(workers))).throughput.get();
        assert!(
            rate(workers) * 1.05 > rate(30) && rate(workers - 1) * 1.05 < rate(30),
            "{workers} at {batch}"
        );
    }
}

#[test]
fn workers_of_a_machine_share_its_ports() {
    let step = |changes: &[&str]| {
        let base = ["cluster.servers.count=4", "cluster.workers.0.count=8", "cluster.network=1gbe"];
        let all: Vec<&str> = base.iter().chain(changes).copied().collect();
        predicted(&scenario("resnet50", &all)).iteration.get()
    };
    for software in ["none", "grpc"] {
        let software = format!("cluster.servers.software={software}");
        let apart = step(&[&software]);
        let four = step(&[&software, "cluster.nodes.workers=4"]);
        let ports = step(&[&software, "cluster.nodes.workers=4", "cluster.nodes.ports=4"]);
        assert!(four > 1.3 * apart, "{software}: {four} {apart}");
        assert!((ports / apart - 1.0).abs() < 0.02, "{software}: {ports} {apart}");
    }
}

#[test]
fn servers_on_the_machines_of_workers_use_their_ports() {
    let step = |method: &str, changes: &[&str]| {
        let base = [
            "cluster.servers.count=4",
            "cluster.workers.0.count=4",
            "cluster.network=1gbe",
            "cluster.servers.software=none",
            "cluster.servers.placement=greedy",
            "methods.simulate.transport=fair",
            "methods.simulate.jitter=0",
        ];
        let all: Vec<&str> = base.iter().chain(changes).copied().collect();
        let scenario = scenario("resnet50", &all);
        predicted_by(method, &scenario).iteration.get()
    };
    // A quarter stays inside, in either direction.
    let (apart, together) = (step("layerwise", &[]), step("layerwise", &["cluster.servers.colocated=true"]));
    assert!(together < 0.95 * apart && together > 0.7 * apart, "{together} {apart}");
    let engine = step("simulate", &["cluster.servers.colocated=true"]);
    assert!(engine <= 1.1 * together && engine > 0.5 * together, "{engine} {together}");
    // With one server all others pass the port of its machine.
    let one = step("simulate", &["cluster.servers.colocated=true", "cluster.servers.count=1"]);
    let closed = step("layerwise", &["cluster.servers.colocated=true", "cluster.servers.count=1"]);
    assert!(one <= 1.05 * closed && one > 0.5 * closed, "{one} {closed}");
}

#[test]
fn priors_move_predictions() {
    let mut scenario = scenario("resnet50", &[]);
    let before = predicted(&scenario).iteration;
    let priors = std::sync::Arc::make_mut(&mut scenario.priors);
    priors.servers.unnamed *= 0.1;
    assert!(predicted(&scenario).iteration > before * 1.3, "{before}: {:#?}", predicted(&scenario));
}

#[test]
fn cpus_lose_more_than_gpus() {
    let losing = |changes: &[&str]| {
        let fast = ["cluster.network=100gbe", "cluster.servers.software=grpc-mpi"];
        let all: Vec<&str> = fast.iter().chain(changes).copied().collect();
        let scenario = scenario("resnet32", &all);
        let prediction = predicted(&scenario);
        prediction.part(PartKind::Compute) / prediction.groups[0].compute
    };
    let (cpu, gpu) = (losing(&["cluster.workers.0.device=xeon-e5-2620"]), losing(&[]));
    assert!(cpu > gpu, "{cpu} {gpu}");
}
