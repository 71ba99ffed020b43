//! Changes to a scenario that might help, the most useful first: of strategies, plans, sizes and hardware.

use crate::predict::training;
use stepcast_core::machine::{Cluster, Generation, WorkerGroup};
use stepcast_core::prediction::{Prediction, Verdict};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{MAX_WORKERS, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::{Architecture, Plan, Recompute, ScheduleKind, Sharding, Synchronisation};

const LOCAL_STEPS: u32 = 8;

/// A change and the changed scenario.
pub struct Change {
    /// "2× bandwidth".
    pub name: String,
    /// The changed scenario.
    pub scenario: Scenario,
}

/// The possible changes of a scenario, except those that need more memory than now and more than there is.
/// Changes that need no purchase come first.
pub fn all(scenario: &Scenario) -> Vec<Change> {
    if let Some(plan) = &scenario.strategy.plan {
        let changes = plan_changes(scenario, plan).into_iter();
        return changes.map(|(name, scenario)| Change { name: name.to_owned(), scenario }).collect();
    }
    let mut changes = Vec::new();
    let mut add = |name: String, scenario: Scenario| changes.push(Change { name, scenario });
    if scenario.strategy.architecture != Architecture::StandAlone {
        strategies(scenario, &mut add);
        smaller(scenario, &mut add);
    }
    add("2× batch".to_owned(), with_batch(scenario, |batch| batch.saturating_mul(2)));
    hardware(scenario, &mut add);
    if (0..scenario.cluster.groups.len()).any(|group| scenario.batch(group) > 1) {
        add("½ batch".to_owned(), with_batch(scenario, |batch| (batch / 2).max(1)));
    }
    let fullest = training::fullest(scenario).max(1.0);
    changes.retain(|change| training::fullest(&change.scenario) <= fullest);
    changes
}

/// Other ways to train on the same machines.
fn strategies(scenario: &Scenario, add: &mut impl FnMut(String, Scenario)) {
    let now = scenario.strategy.synchronisation;
    let servers = scenario.strategy.architecture == Architecture::ParameterServer;
    if servers {
        let mut changed = scenario.clone();
        changed.strategy.architecture = Architecture::AllReduce;
        if !matches!(now, Synchronisation::LocalSgd(_)) {
            changed.strategy.synchronisation = Synchronisation::Bsp;
        }
        add("all-reduce instead of servers".to_owned(), changed);
    }
    let other = match now {
        Synchronisation::Bsp if servers => {
            vec![Synchronisation::LocalSgd(LOCAL_STEPS), Synchronisation::Async]
        }
        Synchronisation::Bsp => vec![Synchronisation::LocalSgd(LOCAL_STEPS)],
        Synchronisation::Async | Synchronisation::Ssp(_) if servers => vec![Synchronisation::Bsp],
        _ => Vec::new(),
    };
    for synchronisation in other {
        let mut changed = scenario.clone();
        changed.strategy.synchronisation = synchronisation;
        add(format!("{synchronisation} instead of {now}"), changed);
    }
}

fn smaller(scenario: &Scenario, add: &mut impl FnMut(String, Scenario)) {
    let cluster = &scenario.cluster;
    let workers = cluster.workers();
    if let Some(nodes) = &cluster.nodes
        && workers > u64::from(nodes.workers)
    {
        let several = workers.div_ceil(u64::from(nodes.workers));
        let mut one = cluster.resized(nodes.workers);
        one.network = nodes.network.clone();
        add(format!("one node instead of {several}"), scenario.on(one));
    }
    if let Some(slowest) = slowest(scenario) {
        let mut without = cluster.clone();
        let name = match without.groups.remove(slowest).count {
            1 => "without the slowest worker".to_owned(),
            count => format!("without the {count} slowest workers"),
        };
        add(name, scenario.on(without));
    }
    if let Ok(half @ 1..) = u32::try_from(workers / 2) {
        add(format!("{half} instead of {workers} workers"), scenario.on(cluster.resized(half)));
    }
}

/// The group whose workers take longest for a step, if groups differ.
fn slowest(scenario: &Scenario) -> Option<usize> {
    let step = |index: usize| -> f64 {
        if scenario.profile().is_some() {
            return scenario.slowness(index);
        }
        let speed = Speed::of_group(scenario, index);
        let layers = scenario.workload.layers.iter();
        layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum::<Seconds>().get()
    };
    let groups = scenario.cluster.groups.len();
    (0..groups).filter(|_| groups > 1).max_by(|&a, &b| step(a).total_cmp(&step(b)))
}

/// Faster or more machines.
fn hardware(scenario: &Scenario, add: &mut impl FnMut(String, Scenario)) {
    let cluster = &scenario.cluster;
    let distributed = scenario.strategy.architecture != Architecture::StandAlone;
    // Times of measured all-reduces do not depend on the network of the scenario.
    let networked = distributed && scenario.strategy.exchange.curve.is_none();
    if networked {
        add("2× bandwidth".to_owned(), scenario.on(with_bandwidth(cluster, 2.0)));
    }
    add("2× compute".to_owned(), scenario.on(with_compute(cluster, 2.0)));
    if scenario.strategy.architecture == Architecture::ParameterServer {
        add("+1 server".to_owned(), scenario.on(with_server(cluster)));
    }
    if distributed && cluster.workers() < MAX_WORKERS {
        add("+1 worker".to_owned(), scenario.on(with_worker(cluster)));
    }
    if networked && cluster.network.latency + cluster.network.startup > Seconds::ZERO {
        add("½ start-up".to_owned(), scenario.on(with_startup(cluster, 0.5)));
    }
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

fn with_batch(scenario: &Scenario, change: impl Fn(u32) -> u32) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.strategy.batch = change(scenario.strategy.batch);
    for group in &mut scenario.cluster.groups {
        group.batch = group.batch.map(&change);
    }
    scenario
}

/// The changes that can be made to a scenario with a plan; those that do not divide it are left out when they are
/// predicted.
fn plan_changes(scenario: &Scenario, plan: &Plan) -> Vec<(&'static str, Scenario)> {
    let cluster = &scenario.cluster;
    let with = |plan: Plan| {
        let mut changed = scenario.clone();
        changed.strategy.plan = Some(plan);
        changed
    };
    let mut changes = vec![
        ("2× compute", scenario.on(with_compute(cluster, 2.0))),
        ("2× bandwidth", scenario.on(with_bandwidth(cluster, 2.0))),
        ("½ start-up", scenario.on(with_startup(cluster, 0.5))),
    ];
    // The replicas follow from the other kinds, so that every change keeps the workers.
    let base = Plan { data: None, stage_layers: None, stage_recompute: None, ..plan.clone() };
    let mut change = |name, plan: Plan| changes.push((name, with(plan)));
    let global_batch = plan.global_batch.map(|batch| batch.saturating_mul(2));
    if global_batch.is_some() {
        change("2× global batch", Plan { global_batch, ..plan.clone() });
    }
    change("2× micro-batch", Plan { micro_batch: plan.micro_batch.saturating_mul(2), ..plan.clone() });
    change("2× tensor ranks", Plan { tensor: base.tensor.saturating_mul(2), ..base.clone() });
    if plan.tensor.is_multiple_of(2) {
        change("½ tensor ranks", Plan { tensor: base.tensor / 2, ..base.clone() });
    }
    change("2× stages", Plan { pipeline: base.pipeline.saturating_mul(2), ..base.clone() });
    if plan.pipeline.is_multiple_of(2) {
        change("½ stages", Plan { pipeline: base.pipeline / 2, ..base.clone() });
    }
    if plan.pipeline > 1 && plan.virtual_stages == 1 {
        let schedule = Some(ScheduleKind::Interleaved);
        change("two chunks per stage", Plan { virtual_stages: 2, schedule, ..base.clone() });
        if plan.schedule_kind() != ScheduleKind::ZbH1 {
            change("split backward (zb-h1)", Plan { schedule: Some(ScheduleKind::ZbH1), ..plan.clone() });
        }
    }
    let is_gpu = |group: &WorkerGroup| !group.device.generation.is_some_and(Generation::is_systolic);
    if !plan.graphs && cluster.groups.iter().all(is_gpu) {
        change("CUDA graphs", Plan { graphs: true, ..plan.clone() });
    }
    if plan.tensor > 1 && !plan.sequence_parallel {
        change("sequence parallelism", Plan { sequence_parallel: true, ..plan.clone() });
    }
    let scores = plan.attention_kind().keeps_scores() && !plan.implemented_by().is_hugging_face();
    if scores && plan.recomputation().what == Recompute::Layer {
        change("recompute attention only", plan.recomputing(Recompute::Attention));
    }
    if plan.recomputation().what != Recompute::None {
        change("no recomputation", plan.recomputing(Recompute::None));
    }
    if plan.sharding == Sharding::Zero3 {
        change("ZeRO 1 instead of 3", Plan { sharding: Sharding::Zero1, ..plan.clone() });
    }
    changes
}

/// Whether a changed plan certainly does not fit.
pub(super) fn overflows(then: &Prediction) -> bool {
    then.transformer.as_ref().is_some_and(|report| report.memory.verdict != Verdict::Fits)
}

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

/// The cluster with the speed of every worker multiplied by `factor`.
fn with_compute(cluster: &Cluster, factor: f64) -> Cluster {
    let mut cluster = cluster.clone();
    for group in &mut cluster.groups {
        group.speed *= factor;
    }
    cluster
}
