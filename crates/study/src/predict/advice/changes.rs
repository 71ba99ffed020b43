//! Changes to a scenario that might help, the most useful first.

use super::faster::{with_bandwidth, with_compute, with_startup};
use super::plan;
use crate::predict::training;
use stepcast_core::machine::Cluster;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{MAX_WORKERS, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Local steps of the local SGD that is tried.
const LOCAL_STEPS: u32 = 8;

/// A change and what it makes of a scenario.
pub struct Change {
    /// "2× bandwidth".
    pub name: String,
    /// The changed scenario.
    pub scenario: Scenario,
}

/// The changes that can be made to a scenario, but for those that need more memory than now and more than there is.
/// What can be done without buying anything comes first.
pub fn all(scenario: &Scenario) -> Vec<Change> {
    if let Some(plan) = &scenario.strategy.plan {
        let changes = plan::changes(scenario, plan).into_iter();
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

/// Fewer machines.
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
        let speed = Speed::of(scenario, index);
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
