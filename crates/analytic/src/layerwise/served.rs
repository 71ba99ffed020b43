//! Exchanges through servers whose software costs time (docs/priors.md, section 4).
//!
//! All that workers and one server exchange in a round passes its software, and the wire beside it: both together are
//! the communication. A share of the backward pass hides it; a share of it stays exposed in any case.
//! Workers of unequal speed come to the server one group after the other. Asynchronous workers are customers of a closed
//! queue: they compute, then wait for their turn at the fullest server, which is busy all the time once they are enough.

use super::{Port, Shard, Worker, message};
use crate::placement;
use crate::queue::{self, Arrival};
use crate::servers::{self, Service};
use crate::step::{Round, TransferCost};
use stepcast_core::machine::ServerSoftware;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Whether the software of the scenario's servers costs time.
pub(super) fn models(scenario: &Scenario) -> bool {
    scenario.strategy.architecture == Architecture::ParameterServer
        && scenario.server_software() != ServerSoftware::None
}

/// Whether gradients are pushed while the backward pass goes on. Workers that pull a copy for each GPU do not.
pub(super) fn overlaps(scenario: &Scenario) -> bool {
    let servers = &scenario.cluster.servers;
    servers.overlap.unwrap_or(servers.copies == 1)
}

pub(super) fn round(scenario: &Scenario, workers: &[Worker], shards: &[Shard], steps: f64) -> Round {
    let mut round = match scenario.strategy.synchronisation {
        Synchronisation::Async => asynchronous(scenario, workers, shards),
        _ => synchronous(scenario, workers, shards, steps),
    };
    let latency = scenario.cluster.network.latency;
    round.push.fixed += latency;
    round.pull.fixed += latency;
    round
}

fn synchronous(scenario: &Scenario, workers: &[Worker], shards: &[Shard], steps: f64) -> Round {
    let priors = &scenario.priors.servers;
    let all = scenario.cluster.workers();
    let exchange = Exchange::new(scenario, workers, shards);
    let mut communication = exchange.server.times(all as f64).larger(exchange.machine);
    communication.server += exchange.update;
    let finish = |worker: &Worker| {
        let kind = scenario.cluster.groups[worker.group].device.kind;
        (worker.host_to_device + worker.computing() * servers::losses(priors, kind, all)) * steps
    };
    let arrival = |(position, worker): (usize, &Worker)| {
        let hidden = match overlaps(scenario) {
            true => servers::hidden(priors, worker.computing() - worker.forward),
            false => Seconds::ZERO,
        };
        Arrival {
            ready: finish(worker) - hidden,
            service: communication.total() / all as f64,
            count: worker.count,
            owner: position as u32,
        }
    };
    let mut arrivals: Vec<Arrival> = workers.iter().enumerate().map(arrival).collect();
    queue::sort(&mut arrivals);
    let (mut computed, mut slowest) = (Seconds::ZERO, 0);
    for (position, worker) in workers.iter().enumerate() {
        if finish(worker) > computed {
            (computed, slowest) = (finish(worker), position);
        }
    }
    let least = computed + servers::least_exposed(priors, communication.total());
    let exposed = queue::drain(&arrivals).end.max(least) - computed;
    let host_to_device = workers[slowest].host_to_device * steps;
    let round = Round { host_to_device, compute: computed - host_to_device, ..Round::default() };
    let worker_link = exchange.machine.total() > exchange.server.times(all as f64).total();
    exchange.share_out(Round { worker_link, ..round }, communication, exposed, all as f64)
}

fn asynchronous(scenario: &Scenario, workers: &[Worker], shards: &[Shard]) -> Round {
    let priors = &scenario.priors.servers;
    let all = scenario.cluster.workers();
    // Steps per second add up, so unequal workers count by the harmonic mean of their times.
    let mean = |time: &dyn Fn(&Worker) -> Seconds| {
        let rate = |worker: &Worker| f64::from(worker.count) / time(worker).get();
        Seconds::new(all as f64 / workers.iter().map(rate).sum::<f64>())
    };
    let computing = mean(&|worker| worker.host_to_device + worker.computing());
    let copied = workers.iter().map(|worker| worker.host_to_device).fold(computing, Seconds::min);
    let exchange = Exchange::new(scenario, workers, shards);
    // Machines serve their own workers side by side: all together are as one station for the worker in turn.
    let turn = exchange.server.larger(exchange.machine.times(1.0 / all as f64));
    let alone = exchange.alone.max(exchange.machine.total() / f64::from(scenario.cluster.workers_per_node()));
    let alone = alone.max(turn.total());
    let hidden = match overlaps(scenario) {
        true => {
            let backward = mean(&|worker| worker.computing() - worker.forward);
            servers::hidden(priors, backward).min(alone - servers::least_exposed(priors, alone))
        }
        false => Seconds::ZERO,
    };
    let thinking = computing + (alone - turn.total()) - hidden;
    // Steps hardly vary, so workers come in turn: the larger of the two asymptotic bounds of a closed queue (Denning and
    // Buzen 1978, section 5).
    let cycle = (thinking + turn.total()).max(turn.total() * all as f64);
    let waiting = (cycle - computing).max(Seconds::ZERO);
    let worker_link = alone - turn.total() > turn.total();
    let round =
        Round { compute: computing - copied, host_to_device: copied, worker_link, ..Round::default() };
    let whole = turn.total().max(Seconds::new(f64::MIN_POSITIVE));
    exchange.share_out(round, turn, waiting, waiting / whole)
}

/// Cost of exchanging all parameters in one round.
struct Exchange {
    /// The fullest server, for one worker.
    server: TransferCost,
    /// Least time of the exchange for a worker that has all servers to itself.
    alone: Seconds,
    /// The update of the fullest server, once in a round.
    update: Seconds,
    /// The slowest machine of workers, for all of its workers.
    machine: TransferCost,
    /// Copies that a worker pulls.
    copies: f64,
}

impl Exchange {
    fn new(scenario: &Scenario, workers: &[Worker], shards: &[Shard]) -> Self {
        let cluster = &scenario.cluster;
        let copies = f64::from(cluster.servers.copies);
        if scenario.server_software() == ServerSoftware::Byteps {
            return Self::byteps(scenario, workers, copies);
        }
        let service = Service::from_scenario(scenario);
        // Asynchronous workers use both directions at once, synchronous ones push together and then pull together.
        let asynchronous = scenario.strategy.synchronisation == Synchronisation::Async;
        let directions = if asynchronous { copies } else { 1.0 + copies };
        let connections = cluster.workers() as f64;
        let (mut server, mut alone, mut update) = (TransferCost::default(), Seconds::ZERO, Seconds::ZERO);
        for shard in shards {
            let (mut bytes, mut tensors, mut wire) = (Bytes::ZERO, 0.0, TransferCost::default());
            for &(layer, share) in &shard.layers {
                let work = &scenario.workload.layers[layer];
                bytes += scenario.sent(workers[0].group, work) * share;
                tensors += work.tensors.len() as f64 * share;
                wire = wire.plus(message(scenario, &workers[0], (layer, share), Port::Server));
            }
            // Servers on the machines of workers have no ports of their own.
            let wire =
                if cluster.servers.colocated { TransferCost::default() } else { wire.times(directions) };
            let Some(service) = service else {
                server = server.larger(wire);
                continue;
            };
            let (moved, messages) = (bytes * (1.0 + copies), tensors * (1.0 + copies));
            let software = service.time(moved, messages, connections);
            // Among workers that come at different times, wire and software are both busy all the time.
            server = server.larger(match asynchronous {
                true => wire.larger(TransferCost { server: software, ..TransferCost::default() }),
                false => wire.beside(software),
            });
            alone = alone.max(service.time(moved, messages, 1.0));
            update = update.max(service.update(bytes));
        }
        let machine = workers.iter().map(|worker| {
            let layers = 0..scenario.workload.layers.len();
            let messages =
                layers.map(|layer| message(scenario, worker, (layer, worker.machine.load), Port::Worker));
            let once = messages.fold(TransferCost::default(), TransferCost::plus);
            once.times((1.0 + copies) * f64::from(worker.machine.workers))
        });
        let machine = machine.fold(TransferCost::default(), TransferCost::larger);
        Self { server, alone, update, machine, copies }
    }

    /// BytePS: servers on all machines, which the rate of a machine includes.
    fn byteps(scenario: &Scenario, workers: &[Worker], copies: f64) -> Self {
        let cluster = &scenario.cluster;
        let priors = &scenario.priors.servers;
        let moved = |group: usize| scenario.sent_in_all(group) * (1.0 + copies);
        let through = |size: Bytes, port: BytesPerSec| TransferCost {
            wire: size / servers::byteps_rate(priors, port, cluster.workers(), cluster.network.transport),
            ..TransferCost::default()
        };
        let first = workers[0].group;
        let busiest = placement::busiest(scenario, first);
        let machine = workers.iter().map(|worker| {
            let all = moved(worker.group) * f64::from(worker.machine.workers);
            through(all, worker.machine.rate.to_bytes_per_sec())
        });
        Self {
            server: through(moved(first) * busiest, placement::server_port(cluster).to_bytes_per_sec()),
            alone: Seconds::ZERO,
            update: Seconds::ZERO,
            machine: machine.fold(TransferCost::default(), TransferCost::larger),
            copies,
        }
    }

    /// A round with the `exposed` part of `communication`, shared out to the push of one of this many workers, to those of
    /// the others, and to pulls.
    fn share_out(&self, round: Round, communication: TransferCost, exposed: Seconds, workers: f64) -> Round {
        if communication.total() <= Seconds::ZERO {
            return round;
        }
        let shown = communication.times(exposed / communication.total());
        let pushes = 1.0 / (1.0 + self.copies);
        let own = pushes / workers.max(1.0);
        Round {
            push: shown.times(own),
            queueing: shown.times(pushes - own),
            pull: shown.times(1.0 - pushes),
            ..round
        }
    }
}
