//! Access to keys of a scenario by their paths, for sweeps, searches and ranges.

use super::{Input, InputSection, Scenario, ScenarioFile};
use crate::fault::KeyPath;
use crate::keys::{Check, Effect, Figure, Key, NameOr, Value};
use crate::machine::{
    Device, DeviceSection, Network, NetworkSection, Servers, ServersSection, WorkerGroup, WorkersSection,
};
use crate::strategy::{AllReduceSection, Exchange, Strategy, StrategySection};

/// A selection of groups of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// All of them.
    All,
    /// The group at this index.
    One(usize),
}

/// A key at a place in a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field(Place);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Workers(Groups, &'static Key<WorkerGroup, WorkersSection>),
    Device(Groups, &'static Key<Device, DeviceSection>),
    /// The whole network.
    WholeNetwork,
    Network(&'static Key<Network, NetworkSection>),
    /// The network within a node.
    NodesNetwork(&'static Key<Network, NetworkSection>),
    Servers(&'static Key<Servers, ServersSection>),
    Input(&'static Key<Input, InputSection>),
    Strategy(&'static Key<Strategy, StrategySection>),
    AllReduce(&'static Key<Exchange, AllReduceSection>),
    /// The whole fusion rule, because its sizes depend on the rule.
    Fusion,
}

fn named<T, S>(keys: &'static [Key<T, S>], name: &str) -> Option<&'static Key<T, S>> {
    keys.iter().find(|key| key.is(name))
}

impl Field {
    /// The key at this path, such as `["cluster", "workers", "0", "count"]`; none for keys that only a document can
    /// set.
    pub fn find(path: &[&str]) -> Option<Self> {
        Some(Self(match *path {
            ["cluster", "workers", key] => Place::Workers(Groups::All, named(WorkerGroup::KEYS, key)?),
            ["cluster", "workers", index, key] if index.parse::<usize>().is_ok() => {
                Place::Workers(Groups::One(index.parse().ok()?), named(WorkerGroup::KEYS, key)?)
            }
            ["cluster", "network"] => Place::WholeNetwork,
            ["cluster", "network", key] => Place::Network(named(Network::KEYS, key)?),
            ["cluster", "servers", key] => Place::Servers(named(Servers::KEYS, key)?),
            ["strategy", "fusion", ..] => Place::Fusion,
            ["strategy", "all-reduce", key] => Place::AllReduce(named(Exchange::KEYS, key)?),
            ["strategy", key] => Place::Strategy(named(Strategy::KEYS, key)?),
            _ => return None,
        }))
    }

    /// Every value of a file that is a range, with its ends in base units.
    pub(super) fn ranges(file: &ScenarioFile) -> Vec<(Self, [f64; 2])> {
        let cluster = &file.cluster;
        let mut found = Vec::new();
        if let Some(NameOr::Table(network)) = &cluster.network {
            collect(Network::KEYS, network, Place::Network, &mut found);
        }
        if let Some(NameOr::Table(network)) = cluster.nodes.as_ref().and_then(|nodes| nodes.network.as_ref())
        {
            collect(Network::KEYS, network, Place::NodesNetwork, &mut found);
        }
        if let Some(servers) = &cluster.servers {
            collect(Servers::KEYS, servers, Place::Servers, &mut found);
        }
        for (index, group) in cluster.workers.iter().flatten().enumerate() {
            let group_of = Groups::One(index);
            collect(WorkerGroup::KEYS, group, |key| Place::Workers(group_of, key), &mut found);
            if let Some(NameOr::Table(device)) = &group.device {
                collect(Device::KEYS, device, |key| Place::Device(group_of, key), &mut found);
            }
        }
        if let Some(input) = &file.input {
            collect(Input::KEYS, input, Place::Input, &mut found);
        }
        found
    }

    /// Effect of larger values on a step.
    pub fn effect(&self) -> Effect {
        match self.0 {
            Place::Workers(_, key) => key.effect,
            Place::Device(_, key) => key.effect,
            Place::Network(key) | Place::NodesNetwork(key) => key.effect,
            Place::Servers(key) => key.effect,
            Place::Input(key) => key.effect,
            Place::Strategy(key) => key.effect,
            Place::AllReduce(key) => key.effect,
            Place::WholeNetwork | Place::Fusion => Effect::Exchange,
        }
    }

    /// Checks a value.
    pub(super) fn check(&self, value: &Value) -> Result<(), crate::fault::Fault> {
        let (check, field): (Check, &str) = match self.0 {
            Place::Workers(_, key) => (key.check, key.field),
            Place::Device(_, key) => (key.check, key.field),
            Place::Network(key) | Place::NodesNetwork(key) => (key.check, key.field),
            Place::Servers(key) => (key.check, key.field),
            Place::Input(key) => (key.check, key.field),
            Place::Strategy(key) => (key.check, key.field),
            Place::AllReduce(key) => (key.check, key.field),
            Place::WholeNetwork | Place::Fusion => return Ok(()),
        };
        check.apply(field, value)
    }

    /// Path, such as `cluster.workers[0].efficiency`.
    pub fn key(&self) -> KeyPath {
        let workers = |groups: Groups| match groups {
            Groups::All => KeyPath::of("cluster.workers"),
            Groups::One(index) => KeyPath::of("cluster.workers").index(index),
        };
        match self.0 {
            Place::Workers(groups, key) => workers(groups).key(&key.name()),
            Place::Device(groups, key) => workers(groups).key("device").key(&key.name()),
            Place::WholeNetwork => KeyPath::of("cluster.network"),
            Place::Network(key) => KeyPath::of("cluster.network").key(&key.name()),
            Place::NodesNetwork(key) => KeyPath::of("cluster.nodes.network").key(&key.name()),
            Place::Servers(key) => KeyPath::of("cluster.servers").key(&key.name()),
            Place::Input(key) => KeyPath::of("input").key(&key.name()),
            Place::Strategy(key) => KeyPath::of("strategy").key(&key.name()),
            Place::AllReduce(key) => KeyPath::of("strategy.all-reduce").key(&key.name()),
            Place::Fusion => KeyPath::of("strategy.fusion"),
        }
    }

    /// The value in a scenario, that of the first group if all are selected; none if there is no such group.
    pub fn get(&self, scenario: &Scenario) -> Option<Value> {
        let Scenario { cluster, strategy, input, .. } = scenario;
        let group = |groups: Groups| match groups {
            Groups::All => cluster.groups.first(),
            Groups::One(index) => cluster.groups.get(index),
        };
        Some(match self.0 {
            Place::Workers(groups, key) => (key.get)(group(groups)?),
            Place::Device(groups, key) => (key.get)(&group(groups)?.device),
            Place::WholeNetwork => cluster.network.value(),
            Place::Network(key) => (key.get)(&cluster.network),
            Place::NodesNetwork(key) => (key.get)(&cluster.nodes.as_ref()?.network),
            Place::Servers(key) => (key.get)(&cluster.servers),
            Place::Input(key) => (key.get)(input),
            Place::Strategy(key) => (key.get)(strategy),
            Place::AllReduce(key) => (key.get)(&strategy.exchange),
            Place::Fusion => strategy.exchange.fusion.value(),
        })
    }

    /// Sets the value in a scenario. [`Scenario::check_together`] checks whether it is consistent with the others.
    pub fn set(&self, scenario: &mut Scenario, value: &Value) {
        let Scenario { cluster, strategy, input, .. } = scenario;
        let groups = |groups: Groups| match groups {
            Groups::All => 0..usize::MAX,
            Groups::One(index) => index..index + 1,
        };
        match self.0 {
            Place::Workers(which, key) => {
                let which = groups(which);
                let chosen = cluster.groups.iter_mut().enumerate().filter(|(index, _)| which.contains(index));
                chosen.for_each(|(_, group)| (key.set)(group, value));
            }
            Place::Device(which, key) => {
                let which = groups(which);
                let chosen = cluster.groups.iter_mut().enumerate().filter(|(index, _)| which.contains(index));
                chosen.for_each(|(_, group)| (key.set)(&mut group.device, value));
            }
            Place::WholeNetwork => cluster.network.assign(value),
            Place::Network(key) => (key.set)(&mut cluster.network, value),
            Place::NodesNetwork(key) => {
                if let Some(nodes) = &mut cluster.nodes {
                    (key.set)(&mut nodes.network, value);
                }
            }
            Place::Servers(key) => (key.set)(&mut cluster.servers, value),
            Place::Input(key) => (key.set)(input, value),
            Place::Strategy(key) => (key.set)(strategy, value),
            Place::AllReduce(key) => (key.set)(&mut strategy.exchange, value),
            Place::Fusion => strategy.exchange.fusion.assign(value),
        }
    }

    /// Writes a range into a file, if the file has the section.
    pub(super) fn write_range(&self, ends: [f64; 2], file: &mut ScenarioFile) {
        let cluster = &mut file.cluster;
        let group = |groups: Groups| match groups {
            Groups::All => 0,
            Groups::One(index) => index,
        };
        match self.0 {
            Place::Network(key) => {
                if let Some(NameOr::Table(network)) = &mut cluster.network {
                    (key.set_range)(network, ends);
                }
            }
            Place::NodesNetwork(key) => {
                let nodes = cluster.nodes.as_mut();
                if let Some(NameOr::Table(network)) = nodes.and_then(|nodes| nodes.network.as_mut()) {
                    (key.set_range)(network, ends);
                }
            }
            Place::Servers(key) => {
                if let Some(servers) = &mut cluster.servers {
                    (key.set_range)(servers, ends);
                }
            }
            Place::Workers(groups, key) => {
                let sections = cluster.workers.as_mut();
                if let Some(section) = sections.and_then(|sections| sections.get_mut(group(groups))) {
                    (key.set_range)(section, ends);
                }
            }
            Place::Device(groups, key) => {
                let sections = cluster.workers.as_mut();
                let section = sections.and_then(|sections| sections.get_mut(group(groups)));
                if let Some(NameOr::Table(device)) = section.and_then(|section| section.device.as_mut()) {
                    (key.set_range)(device, ends);
                }
            }
            Place::Input(key) => {
                if let Some(input) = &mut file.input {
                    (key.set_range)(input, ends);
                }
            }
            Place::WholeNetwork | Place::Strategy(_) | Place::AllReduce(_) | Place::Fusion => {}
        }
    }
}

fn collect<T, S>(
    keys: &'static [Key<T, S>],
    section: &S,
    place: impl Fn(&'static Key<T, S>) -> Place,
    found: &mut Vec<(Field, [f64; 2])>,
) {
    found.extend(keys.iter().filter_map(|key| Some((Field(place(key)), (key.range)(section)?))));
}
