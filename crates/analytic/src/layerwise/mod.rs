//! Bulk-synchronous parameter-server training modelled layer by layer: this project's own closed form, designed to be
//! calibrated with a few parameters per machine and none per model.
//!
//! Departures from Zeng 2023:
//! * computing takes three times the forward operations (the backward pass costs twice the forward pass) at a share
//!   of the peak rate, plus work per weight and step at a share of the memory rate;
//! * the gradient of every layer is pushed as soon as the backward pass has computed it, on CPUs and GPUs alike, so
//!   pushes overlap computing; the link still serves pushes one at a time in order of arrival;
//! * transfers run at the link rate less framing, and the hosts copy and serialise every byte;
//! * workers of a machine share its ports.
//!
//! Where the software of servers costs time (`cluster.servers.software`), exchanges are taken as a whole, and
//! asynchronous training is modelled too.
//!
//! With a single layer there is no overlap, and the queue is that of Algorithm 1. Complexity: O(g·l·log(g·l)) for g
//! groups and l layers.

mod served;

use crate::placement::{self, Machine};
use crate::queue::{self, Arrival};
use crate::servers;
use crate::step::{self, Round, TransferCost};
use stepcast_core::compute;
use stepcast_core::fault::Fault;
use stepcast_core::machine::Placement;
use stepcast_core::method::{Method, MethodAbout};
use stepcast_core::prediction::{GroupReport, Prediction};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Layer-wise parameter server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layerwise;

impl Method for Layerwise {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "layerwise",
            summary: "parameter server, gradients pushed layer by layer while computing, with the cost of servers' software",
            source: "Stepcast, docs/methods/layerwise.md",
        }
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        let served = served::models(scenario) && scenario.profile().is_none();
        if served && scenario.strategy.synchronisation == Synchronisation::Async {
            return Ok(());
        }
        step::only_bulk_synchronous("the layer-wise model", scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        let workers: Vec<Worker> =
            (0..scenario.cluster.groups.len()).map(|index| Worker::new(scenario, index)).collect();
        let round = round(scenario, &workers);
        let report = |(index, worker): (usize, &Worker)| GroupReport {
            group: index,
            count: worker.count,
            batch: scenario.samples(index),
            compute: worker.host_to_device + worker.computing(),
            ready: worker.host_to_device + worker.ready.first().copied().unwrap_or(Seconds::ZERO),
            slack: None,
        };
        let groups = workers.iter().enumerate().map(report).collect();
        let mut warnings = compute::assumptions(scenario);
        warnings.extend(servers::assumption(scenario));
        let prediction = step::prediction(self.name(), scenario, &round, groups, warnings);
        // While a worker goes through a cycle of its own, every other worker goes through one.
        let others = scenario.cluster.workers().saturating_sub(1) as f64;
        let is_async = scenario.strategy.synchronisation == Synchronisation::Async;
        Ok(Prediction { staleness: is_async.then_some(others), ..prediction })
    }
}

/// Times of the identical workers of one group in one step, without any waiting for other workers.
#[derive(Debug, Clone)]
struct Worker {
    group: usize,
    count: u32,
    host_to_device: Seconds,
    forward: Seconds,
    /// When the gradients of each layer are ready, in backward order, from the start of computing.
    ready: Vec<Seconds>,
    machine: Machine,
}

impl Worker {
    fn new(scenario: &Scenario, index: usize) -> Self {
        let speed = Speed::of_group(scenario, index);
        let layers = &scenario.workload.layers;
        let forward: Seconds = layers.iter().map(|layer| speed.forward(layer)).sum();
        let mut now = forward;
        let ready: Vec<Seconds> = layers
            .iter()
            .rev()
            .map(|layer| {
                now += speed.backward(layer);
                now
            })
            .collect();
        let copying = compute::host_to_device(scenario, index);
        Self {
            forward,
            machine: Machine::new(scenario, index),
            group: index,
            count: scenario.cluster.groups[index].count,
            ready,
            host_to_device: copying + compute::input_wait(scenario, index, copying + now),
        }
    }

    fn computing(&self) -> Seconds {
        self.ready.last().copied().unwrap_or(Seconds::ZERO)
    }

    fn pushes(&self, scenario: &Scenario, layer: usize) -> Seconds {
        match served::overlaps(scenario) {
            true => self.ready[self.ready.len() - 1 - layer],
            false => self.computing(),
        }
    }
}

/// The layers held by one server, in backward order, with the share of each.
struct Shard {
    layers: Vec<(usize, f64)>,
}

fn shards(scenario: &Scenario) -> Vec<Shard> {
    let layers = scenario.workload.layers.len();
    let servers = &scenario.cluster.servers;
    match servers.placement {
        // All servers hold the same shares, so one represents all.
        Placement::Even => {
            let share = 1.0 / f64::from(servers.count);
            vec![Shard { layers: (0..layers).rev().map(|layer| (layer, share)).collect() }]
        }
        Placement::Greedy => {
            let assignment = placement::greedy(&scenario.workload.layers, servers.count);
            let used = assignment.iter().max().map_or(0, |server| *server as usize + 1);
            let mut shards: Vec<Shard> = (0..used).map(|_| Shard { layers: Vec::new() }).collect();
            for (layer, server) in assignment.iter().enumerate().rev() {
                shards[*server as usize].layers.push((layer, 1.0));
            }
            shards
        }
    }
}

fn round(scenario: &Scenario, workers: &[Worker]) -> Round {
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    if scenario.strategy.architecture == Architecture::StandAlone {
        let worker = &workers[0];
        return Round {
            compute: worker.computing(),
            host_to_device: worker.host_to_device,
            ..Round::default()
        };
    }
    let shards = shards(scenario);
    if served::models(scenario) {
        return served::round(scenario, workers, &shards, steps);
    }
    let mut slowest = Round::default();
    let mut pull = TransferCost::default();
    // Servers on the machines of workers have no ports of their own.
    let with_ports = if scenario.cluster.servers.colocated { &[][..] } else { &shards[..] };
    for shard in with_ports {
        let pushed = pushed(scenario, workers, shard, steps, Port::Server);
        if pushed.total() > slowest.total() {
            slowest = pushed;
        }
        pull = pull.larger(pulled(scenario, workers, shard, Port::Server));
    }
    // The ports of a machine carry the shares of all servers, and may be slower than a server's.
    for worker in workers.iter().filter(|worker| worker.machine.is_limited(&scenario.cluster)) {
        let everything = Shard {
            layers: (0..scenario.workload.layers.len()).rev().map(|l| (l, worker.machine.load)).collect(),
        };
        let one = [Worker { count: worker.machine.workers, ..worker.clone() }];
        let own = pushed(scenario, &one, &everything, steps, Port::Worker);
        if own.total() > slowest.total() {
            slowest = Round { worker_link: true, ..own };
        }
        let own = pulled(scenario, &one, &everything, Port::Worker);
        if own.total() > pull.total() {
            pull = own;
            slowest.worker_link = true;
        }
    }
    let latency = TransferCost { fixed: scenario.cluster.network.latency, ..TransferCost::default() };
    Round { push: slowest.push.plus(latency), pull: pull.plus(latency), ..slowest }
}

/// The port that a message occupies.
#[derive(Clone, Copy)]
enum Port {
    Server,
    Worker,
}

/// Cost, at one of its two ports, of the message that carries one worker's share of a layer.
fn message(scenario: &Scenario, worker: &Worker, (layer, share): (usize, f64), port: Port) -> TransferCost {
    let cluster = &scenario.cluster;
    let size = scenario.sent(worker.group, &scenario.workload.layers[layer]) * share;
    let rate = match port {
        Port::Server => placement::server_port(cluster),
        Port::Worker => worker.machine.rate,
    };
    TransferCost { fixed: cluster.network.startup, ..step::across(cluster, rate, size) }
}

/// The round from the start of computing until the gradients of all workers have passed one port.
fn pushed(scenario: &Scenario, workers: &[Worker], shard: &Shard, steps: f64, port: Port) -> Round {
    let layers = scenario.workload.layers.len();
    let mut arrivals = Vec::with_capacity(workers.len() * shard.layers.len());
    for (position, worker) in workers.iter().enumerate() {
        let before = worker.host_to_device * steps + worker.computing() * (steps - 1.0);
        for &(layer, share) in &shard.layers {
            let cost = message(scenario, worker, (layer, share), port);
            arrivals.push(Arrival {
                ready: before + worker.pushes(scenario, layer),
                service: cost.total(),
                count: worker.count,
                owner: (position * layers + layer) as u32,
            });
        }
    }
    queue::sort(&mut arrivals);
    let drained = queue::drain(&arrivals);
    let owner = |arrival: &Arrival| (arrival.owner as usize / layers, arrival.owner as usize % layers);
    let (Some(first), Some(last)) = (arrivals.get(drained.first), arrivals.last()) else {
        return Round::default();
    };
    let host_to_device = workers[owner(first).0].host_to_device * steps;
    let mut round = Round { host_to_device, compute: first.ready - host_to_device, ..Round::default() };
    let share = shard.layers.first().map_or(1.0, |(_, share)| *share);
    for arrival in &arrivals[drained.first..] {
        let (position, layer) = owner(arrival);
        let cost = message(scenario, &workers[position], (layer, share), port);
        let own = if position == owner(last).0 { 1.0 } else { 0.0 };
        round.push = round.push.plus(cost.times(own));
        round.queueing = round.queueing.plus(cost.times(f64::from(arrival.count) - own));
    }
    round
}

fn pulled(scenario: &Scenario, workers: &[Worker], shard: &Shard, port: Port) -> TransferCost {
    let mut total = TransferCost::default();
    for worker in workers {
        for &part in &shard.layers {
            let copies = f64::from(worker.count) * f64::from(scenario.cluster.servers.copies);
            total = total.plus(message(scenario, worker, part, port).times(copies));
        }
    }
    total
}
