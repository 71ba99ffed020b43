//! Keys that can be set in a resolved scenario, without reading the document again.
//!
//! There is no second parser and no second check of values: a setting is what the document's own resolution made of the
//! key, copied to where it belongs. Whoever uses one makes sure that this is all the key does (see `variants`).

use super::axis::Axis;
use stepcast_core::machine::{Device, Network, Placement, WorkerGroup};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::{BitsPerSec, BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Algorithm, Architecture, Fusion, Synchronisation};

/// Which groups of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Groups {
    /// All of them.
    All,
    /// The one at this place.
    One(usize),
}

/// One value of one key, where it stands in a resolved scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Setting {
    Count(Groups, u32),
    GroupBatch(Groups, Option<u32>),
    Speed(Groups, f64),
    Efficiency(Groups, Option<f64>),
    Port(Groups, Option<BitsPerSec>),
    Price(Groups, Option<f64>),
    Device(Groups, Box<Device>),
    Network(Box<Network>),
    Bandwidth(BitsPerSec),
    Latency(Seconds),
    Payload(f64),
    Startup(Seconds),
    HostRate(Option<BytesPerSec>),
    Servers(u32),
    Placement(Placement),
    ServerPort(Option<BitsPerSec>),
    Architecture(Architecture),
    Synchronisation(Synchronisation),
    Batch(u32),
    Precision(Precision),
    Algorithm(Algorithm),
    Channels(u32),
    Overhead(Option<Seconds>),
    Interference(f64),
    Fusion(Fusion),
}

impl Setting {
    /// What `scenario` has at the key of `axis`; none for keys that only the document can set.
    pub(crate) fn of(axis: &Axis, scenario: &Scenario) -> Option<Self> {
        let parts: Vec<&str> = axis.parts().collect();
        match parts[..] {
            ["cluster", "workers", index, key] => {
                let index = index.parse().ok()?;
                Self::of_group(key, Groups::One(index), scenario.cluster.groups.get(index)?)
            }
            ["cluster", "workers", key] => Self::of_group(key, Groups::All, scenario.cluster.groups.first()?),
            ["cluster", "network"] => Some(Self::Network(Box::new(scenario.cluster.network.clone()))),
            ["cluster", "network", key] => Self::of_network(key, &scenario.cluster.network),
            ["cluster", "servers", key] => {
                let servers = scenario.cluster.servers;
                Some(match key {
                    "count" => Self::Servers(servers.count),
                    "placement" => Self::Placement(servers.placement),
                    "bandwidth" => Self::ServerPort(servers.bandwidth),
                    _ => return None,
                })
            }
            ["strategy", "fusion", ..] => Some(Self::Fusion(scenario.strategy.exchange.fusion.clone())),
            ["strategy", ref keys @ ..] => Self::of_strategy(keys, scenario),
            _ => None,
        }
    }

    fn of_group(key: &str, which: Groups, group: &WorkerGroup) -> Option<Self> {
        Some(match key {
            "count" => Self::Count(which, group.count),
            "batch" => Self::GroupBatch(which, group.batch),
            "speed" => Self::Speed(which, group.speed),
            "efficiency" => Self::Efficiency(which, group.efficiency),
            "bandwidth" => Self::Port(which, group.bandwidth),
            "price" => Self::Price(which, group.price),
            // Whether a fitted device goes with other keys of its group is checked as the document is resolved.
            "device" if group.device.fitted.is_none() => Self::Device(which, Box::new(group.device.clone())),
            _ => return None,
        })
    }

    fn of_network(key: &str, network: &Network) -> Option<Self> {
        Some(match key {
            "bandwidth" => Self::Bandwidth(network.bandwidth),
            "latency" => Self::Latency(network.latency),
            "efficiency" => Self::Payload(network.efficiency),
            "startup" => Self::Startup(network.startup),
            "host-rate" => Self::HostRate(network.host_rate),
            _ => return None,
        })
    }

    fn of_strategy(keys: &[&str], scenario: &Scenario) -> Option<Self> {
        let strategy = &scenario.strategy;
        Some(match keys {
            ["architecture"] => Self::Architecture(strategy.architecture),
            ["synchronisation"] => Self::Synchronisation(strategy.synchronisation),
            ["batch"] => Self::Batch(strategy.batch),
            ["precision"] => Self::Precision(strategy.precision),
            ["all-reduce", "algorithm"] => Self::Algorithm(strategy.exchange.algorithm),
            ["all-reduce", "channels"] => Self::Channels(strategy.exchange.channels),
            ["all-reduce", "overhead"] => Self::Overhead(strategy.exchange.overhead),
            ["all-reduce", "interference"] => Self::Interference(strategy.exchange.interference),
            _ => return None,
        })
    }

    /// The same with another whole number; none where the value is not one.
    pub(crate) fn with_number(&self, number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        Some(match self {
            Self::Count(which, _) => Self::Count(*which, number),
            Self::GroupBatch(which, _) => Self::GroupBatch(*which, Some(number)),
            Self::Servers(_) => Self::Servers(number),
            Self::Batch(_) => Self::Batch(number),
            Self::Channels(_) => Self::Channels(number),
            _ => return None,
        })
    }

    /// Puts the value where it belongs.
    pub(crate) fn apply(&self, scenario: &mut Scenario) {
        let Scenario { cluster, strategy, .. } = scenario;
        let groups = &mut cluster.groups;
        let exchange = &mut strategy.exchange;
        match self {
            Self::Count(which, count) => each(groups, *which, |group| group.count = *count),
            Self::GroupBatch(which, batch) => each(groups, *which, |group| group.batch = *batch),
            Self::Speed(which, speed) => each(groups, *which, |group| group.speed = *speed),
            Self::Efficiency(which, share) => each(groups, *which, |group| group.efficiency = *share),
            Self::Port(which, rate) => each(groups, *which, |group| group.bandwidth = *rate),
            Self::Price(which, price) => each(groups, *which, |group| group.price = *price),
            Self::Device(which, device) => each(groups, *which, |group| group.device.clone_from(device)),
            Self::Network(network) => cluster.network.clone_from(network),
            Self::Bandwidth(rate) => cluster.network.bandwidth = *rate,
            Self::Latency(time) => cluster.network.latency = *time,
            Self::Payload(share) => cluster.network.efficiency = *share,
            Self::Startup(time) => cluster.network.startup = *time,
            Self::HostRate(rate) => cluster.network.host_rate = *rate,
            Self::Servers(count) => cluster.servers.count = *count,
            Self::Placement(placement) => cluster.servers.placement = *placement,
            Self::ServerPort(rate) => cluster.servers.bandwidth = *rate,
            Self::Architecture(architecture) => strategy.architecture = *architecture,
            Self::Synchronisation(synchronisation) => strategy.synchronisation = *synchronisation,
            Self::Batch(batch) => strategy.batch = *batch,
            Self::Precision(precision) => strategy.precision = *precision,
            Self::Algorithm(algorithm) => exchange.algorithm = *algorithm,
            Self::Channels(channels) => exchange.channels = *channels,
            Self::Overhead(time) => exchange.overhead = *time,
            Self::Interference(share) => exchange.interference = *share,
            Self::Fusion(fusion) => exchange.fusion.clone_from(fusion),
        }
    }
}

fn each(groups: &mut [WorkerGroup], which: Groups, change: impl Fn(&mut WorkerGroup)) {
    match which {
        Groups::All => groups.iter_mut().for_each(change),
        Groups::One(index) => groups.get_mut(index).into_iter().for_each(change),
    }
}
