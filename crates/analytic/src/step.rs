//! Shared parts of the closed forms for bulk-synchronous parameter servers: one round of compute, push and pull,
//! split by cause, and the prediction derived from it.

use crate::placement::{server_port, worker_port};
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::machine::{Cluster, ServerSoftware, WorkerGroup};
use stepcast_core::method::refuse_if;
use stepcast_core::prediction::{Bottleneck, GroupReport, Part, PartKind, Prediction, Warning};
use stepcast_core::quantity::{BitsPerSec, Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Strategy, Synchronisation};

/// Cost of transfers, split by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct TransferCost {
    pub(crate) wire: Seconds,
    /// Time to copy and serialise on the hosts.
    pub(crate) host: Seconds,
    /// Start-up and latency.
    pub(crate) fixed: Seconds,
    /// Time of the servers' software, where that is longer than all others.
    pub(crate) server: Seconds,
}

impl TransferCost {
    pub(crate) fn total(self) -> Seconds {
        self.payload() + self.fixed
    }

    pub(crate) fn payload(self) -> Seconds {
        self.wire + self.host + self.server
    }

    /// The cost that takes longer.
    pub(crate) fn larger(self, other: Self) -> Self {
        if other.total() > self.total() { other } else { self }
    }

    /// The cost with a server's software working beside these transfers: times add up in quadrature, split in proportion.
    pub(crate) fn beside(self, software: Seconds) -> Self {
        let (transfers, software) = (self.total().get(), software.get());
        let total = transfers.hypot(software);
        if total <= 0.0 {
            return self;
        }
        let server = Seconds::new(software * software / total);
        Self { server, ..self.times(transfers / total) }
    }

    pub(crate) fn times(self, count: f64) -> Self {
        Self {
            wire: self.wire * count,
            host: self.host * count,
            fixed: self.fixed * count,
            server: self.server * count,
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            wire: self.wire + other.wire,
            host: self.host + other.host,
            fixed: self.fixed + other.fixed,
            server: self.server + other.server,
        }
    }
}

/// The critical path of a round, split by cause. The times add up to the duration of the round.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Round {
    /// Computing that does not overlap anything else on the path.
    pub(crate) compute: Seconds,
    /// Copying batches to the device.
    pub(crate) host_to_device: Seconds,
    /// The push that finishes last.
    pub(crate) push: TransferCost,
    /// Pushes of other workers ahead of it in the queue.
    pub(crate) queueing: TransferCost,
    pub(crate) pull: TransferCost,
    /// Whether the workers' own links are the limit rather than those of the servers.
    pub(crate) worker_link: bool,
}

impl Round {
    pub(crate) fn total(&self) -> Seconds {
        let transfers = self.push.total() + self.queueing.total() + self.pull.total();
        self.compute + self.host_to_device + transfers
    }

    fn bottleneck(&self) -> Bottleneck {
        let transfers = self.push.plus(self.queueing).plus(self.pull);
        let computing = self.compute + self.host_to_device;
        if computing >= transfers.total() {
            return Bottleneck::Compute;
        }
        if transfers.fixed >= transfers.payload() {
            return Bottleneck::FixedCost;
        }
        if transfers.server > transfers.wire + transfers.host {
            return Bottleneck::Server;
        }
        if transfers.host > transfers.wire {
            return Bottleneck::HostCopy;
        }
        if self.worker_link { Bottleneck::WorkerLink } else { Bottleneck::ServerLink }
    }
}

pub(crate) fn steps_per_round(synchronisation: Synchronisation) -> f64 {
    match synchronisation {
        Synchronisation::LocalSgd(steps) => f64::from(steps),
        _ => 1.0,
    }
}

/// The prediction for `scenario`, derived from one of its rounds.
pub(crate) fn prediction(
    method: &'static str,
    scenario: &Scenario,
    round: &Round,
    groups: Vec<GroupReport>,
    warnings: Vec<Warning>,
) -> Prediction {
    let steps = steps_per_round(scenario.strategy.synchronisation);
    let iteration = round.total() / steps;
    let part = |kind, time: Seconds| Part { kind, time: time / steps };
    let startup = round.push.fixed + round.queueing.fixed + round.pull.fixed;
    let breakdown = vec![
        part(PartKind::Compute, round.compute),
        part(PartKind::HostToDevice, round.host_to_device),
        part(PartKind::Push, round.push.payload()),
        part(PartKind::Queueing, round.queueing.payload()),
        part(PartKind::Pull, round.pull.payload()),
        part(PartKind::StartUp, startup),
    ];
    Prediction { warnings, ..Prediction::new(method, iteration, groups, breakdown, round.bottleneck()) }
}

/// Rejects scenarios that only an asynchronous or all-reduce method can model.
pub(crate) fn only_bulk_synchronous(who: &str, scenario: &Scenario) -> Result<(), Fault> {
    let reason = "needs operation counts, and a profile has none";
    refuse_if(scenario.profile().is_some(), who, "model.profile", reason, || {
        [Remedy::method("simulate"), Remedy::advice("name a model with `zoo`")]
    })?;
    let Strategy { architecture, synchronisation, .. } = &scenario.strategy;
    let other = *architecture == Architecture::AllReduce;
    refuse_if(other, who, "strategy.architecture", "does not model all-reduce", || {
        Remedy::set("strategy.architecture", "parameter-server")
    })?;
    let other = matches!(synchronisation, Synchronisation::Async | Synchronisation::Ssp(_));
    refuse_if(other, who, "strategy.synchronisation", "does not model asynchronous training", || {
        ["bsp", "local-sgd(8)"].map(|value| Remedy::set("strategy.synchronisation", value))
    })
}

/// Cost of moving `size` between one worker of `group` and a server that serves no other worker: the slower of the
/// two ports determines the time on the wire. The caller sets `fixed`, because it depends on the number of messages.
pub(crate) fn payload(cluster: &Cluster, group: &WorkerGroup, size: Bytes) -> TransferCost {
    across(cluster, server_port(cluster).min(worker_port(cluster, group)), size)
}

/// The time for which `size` occupies a port of this rate.
pub(crate) fn across(cluster: &Cluster, port: BitsPerSec, size: Bytes) -> TransferCost {
    let network = &cluster.network;
    TransferCost {
        wire: size.to_bits() / (port * network.efficiency),
        host: network.host_rate.map_or(Seconds::ZERO, |rate| size / rate),
        ..TransferCost::default()
    }
}

/// Warns of keys about servers and machines that `who` does not model; it knows software of these kinds.
pub(crate) fn unused(who: &str, scenario: &Scenario, known: &[ServerSoftware]) -> Option<Warning> {
    let Cluster { servers, nodes, .. } = &scenario.cluster;
    if scenario.strategy.architecture != Architecture::ParameterServer {
        return None;
    }
    let given = servers.software.filter(|software| *software != ServerSoftware::None);
    let software = given.is_some_and(|software| !known.contains(&software));
    let keys: Vec<&str> = [
        (software, "cluster.servers.software"),
        (servers.copies > 1 && known.is_empty(), "cluster.servers.copies"),
        (servers.overlap.is_some(), "cluster.servers.overlap"),
        (servers.colocated, "cluster.servers.colocated"),
        (nodes.is_some(), "cluster.nodes"),
    ]
    .into_iter()
    .filter_map(|(given, key)| given.then_some(key))
    .collect();
    (!keys.is_empty()).then(|| Warning {
        code: "unused-key",
        message: format!("{who} does not model {}: compare with another method", keys.join(", ")),
    })
}
