//! Access to keys of a scenario by their paths, for sweeps, searches and ranges; values that are given as ranges, and the
//! scenario at either end of a range.

use super::{Input, InputSection, Scenario, ScenarioFile};
use crate::fault::{Fault, KeyPath};
use crate::keys::{Effect, Figure, Key, NameOr, Value};
use crate::machine::{
    Device, DeviceSection, Network, NetworkSection, Servers, ServersSection, WorkerGroup, WorkersSection,
};
use crate::strategy::{AllReduceSection, Exchange, Strategy, StrategySection};

/// A selection of groups of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    All,
    One(usize),
}

impl Groups {
    fn among<T>(self, groups: &mut [T]) -> &mut [T] {
        match self {
            Self::All => groups,
            Self::One(index) => groups.get_mut(index..=index).unwrap_or_default(),
        }
    }

    fn first<T>(self, groups: &mut Option<Vec<T>>) -> Option<&mut T> {
        self.among(groups.as_deref_mut()?).first_mut()
    }
}

/// A key at a place in a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field(KeyPlace);

#[derive(Debug, Clone, Copy, PartialEq)]
enum KeyPlace {
    Workers(Groups, &'static Key<WorkerGroup, WorkersSection>),
    Device(Groups, &'static Key<Device, DeviceSection>),
    WholeNetwork,
    Network(&'static Key<Network, NetworkSection>),
    NodesNetwork(&'static Key<Network, NetworkSection>),
    Servers(&'static Key<Servers, ServersSection>),
    Input(&'static Key<Input, InputSection>),
    Strategy(&'static Key<Strategy, StrategySection>),
    AllReduce(&'static Key<Exchange, AllReduceSection>),
    /// The whole fusion rule, because its sizes depend on the rule.
    Fusion,
}

/// Evaluates an expression with the key of a place, of any type, and another one for places without a key.
macro_rules! on_key {
    ($place:expr, $key:ident => $with:expr, $without:expr) => {
        match $place {
            KeyPlace::Workers(_, $key) => $with,
            KeyPlace::Device(_, $key) => $with,
            KeyPlace::Network($key) | KeyPlace::NodesNetwork($key) => $with,
            KeyPlace::Servers($key) => $with,
            KeyPlace::Input($key) => $with,
            KeyPlace::Strategy($key) => $with,
            KeyPlace::AllReduce($key) => $with,
            KeyPlace::WholeNetwork | KeyPlace::Fusion => $without,
        }
    };
}

fn named<T, S>(keys: &'static [Key<T, S>], name: &str) -> Option<&'static Key<T, S>> {
    keys.iter().find(|key| key.is(name))
}

impl Field {
    /// The key at this path, such as `["cluster", "workers", "0", "count"]`; none for keys that only a document can
    /// set.
    pub fn find(path: &[&str]) -> Option<Self> {
        Some(Self(match *path {
            ["cluster", "workers", key] => KeyPlace::Workers(Groups::All, named(WorkerGroup::KEYS, key)?),
            ["cluster", "workers", index, key] if index.parse::<usize>().is_ok() => {
                KeyPlace::Workers(Groups::One(index.parse().ok()?), named(WorkerGroup::KEYS, key)?)
            }
            ["cluster", "network"] => KeyPlace::WholeNetwork,
            ["cluster", "network", key] => KeyPlace::Network(named(Network::KEYS, key)?),
            ["cluster", "servers", key] => KeyPlace::Servers(named(Servers::KEYS, key)?),
            ["strategy", "fusion", ..] => KeyPlace::Fusion,
            ["strategy", "all-reduce", key] => KeyPlace::AllReduce(named(Exchange::KEYS, key)?),
            ["strategy", key] => KeyPlace::Strategy(named(Strategy::KEYS, key)?),
            _ => return None,
        }))
    }

    /// Every value of a file that is a range, with its ends in base units.
    pub(super) fn ranges(file: &ScenarioFile) -> Vec<(Self, [f64; 2])> {
        let cluster = &file.cluster;
        let mut found = Vec::new();
        if let Some(NameOr::Table(network)) = &cluster.network {
            collect(Network::KEYS, network, KeyPlace::Network, &mut found);
        }
        if let Some(NameOr::Table(network)) = cluster.nodes.as_ref().and_then(|nodes| nodes.network.as_ref())
        {
            collect(Network::KEYS, network, KeyPlace::NodesNetwork, &mut found);
        }
        if let Some(servers) = &cluster.servers {
            collect(Servers::KEYS, servers, KeyPlace::Servers, &mut found);
        }
        for (index, group) in cluster.workers.iter().flatten().enumerate() {
            let group_of = Groups::One(index);
            collect(WorkerGroup::KEYS, group, |key| KeyPlace::Workers(group_of, key), &mut found);
            if let Some(NameOr::Table(device)) = &group.device {
                collect(Device::KEYS, device, |key| KeyPlace::Device(group_of, key), &mut found);
            }
        }
        if let Some(input) = &file.input {
            collect(Input::KEYS, input, KeyPlace::Input, &mut found);
        }
        found
    }

    /// Effect of larger values on a step.
    pub fn effect(&self) -> Effect {
        on_key!(self.0, key => key.effect, Effect::Exchange)
    }

    pub(super) fn check(&self, value: &Value) -> Result<(), crate::fault::Fault> {
        on_key!(self.0, key => key.check.apply(key.field, value), Ok(()))
    }

    /// Path, such as `cluster.workers[0].efficiency`.
    pub fn key(&self) -> KeyPath {
        let workers = |groups: Groups| match groups {
            Groups::All => KeyPath::of("cluster.workers"),
            Groups::One(index) => KeyPath::of("cluster.workers").index(index),
        };
        let section = match self.0 {
            KeyPlace::Workers(groups, _) => workers(groups),
            KeyPlace::Device(groups, _) => workers(groups).key("device"),
            KeyPlace::WholeNetwork | KeyPlace::Network(_) => KeyPath::of("cluster.network"),
            KeyPlace::NodesNetwork(_) => KeyPath::of("cluster.nodes.network"),
            KeyPlace::Servers(_) => KeyPath::of("cluster.servers"),
            KeyPlace::Input(_) => KeyPath::of("input"),
            KeyPlace::Strategy(_) => KeyPath::of("strategy"),
            KeyPlace::AllReduce(_) => KeyPath::of("strategy.all-reduce"),
            KeyPlace::Fusion => KeyPath::of("strategy.fusion"),
        };
        on_key!(self.0, key => section.key(&key.name()), section)
    }

    /// The value in a scenario, that of the first group if all are selected; none if there is no such group.
    pub fn get(&self, scenario: &Scenario) -> Option<Value> {
        let Scenario { cluster, strategy, input, .. } = scenario;
        let group = |groups: Groups| match groups {
            Groups::All => cluster.groups.first(),
            Groups::One(index) => cluster.groups.get(index),
        };
        Some(match self.0 {
            KeyPlace::Workers(groups, key) => (key.get)(group(groups)?),
            KeyPlace::Device(groups, key) => (key.get)(&group(groups)?.device),
            KeyPlace::WholeNetwork => cluster.network.value(),
            KeyPlace::Network(key) => (key.get)(&cluster.network),
            KeyPlace::NodesNetwork(key) => (key.get)(&cluster.nodes.as_ref()?.network),
            KeyPlace::Servers(key) => (key.get)(&cluster.servers),
            KeyPlace::Input(key) => (key.get)(input),
            KeyPlace::Strategy(key) => (key.get)(strategy),
            KeyPlace::AllReduce(key) => (key.get)(&strategy.exchange),
            KeyPlace::Fusion => strategy.exchange.fusion.value(),
        })
    }

    /// Sets the value in a scenario. [`Scenario::check_together`] checks whether it is consistent with the others.
    pub fn set(&self, scenario: &mut Scenario, value: &Value) {
        let Scenario { cluster, strategy, input, .. } = scenario;
        match self.0 {
            KeyPlace::Workers(which, key) => {
                which.among(&mut cluster.groups).iter_mut().for_each(|group| (key.set)(group, value));
            }
            KeyPlace::Device(which, key) => {
                let groups = which.among(&mut cluster.groups).iter_mut();
                groups.for_each(|group| (key.set)(&mut group.device, value));
            }
            KeyPlace::WholeNetwork => cluster.network.assign(value),
            KeyPlace::Network(key) => (key.set)(&mut cluster.network, value),
            KeyPlace::NodesNetwork(key) => {
                if let Some(nodes) = &mut cluster.nodes {
                    (key.set)(&mut nodes.network, value);
                }
            }
            KeyPlace::Servers(key) => (key.set)(&mut cluster.servers, value),
            KeyPlace::Input(key) => (key.set)(input, value),
            KeyPlace::Strategy(key) => (key.set)(strategy, value),
            KeyPlace::AllReduce(key) => (key.set)(&mut strategy.exchange, value),
            KeyPlace::Fusion => strategy.exchange.fusion.assign(value),
        }
    }

    pub(super) fn write_range(&self, ends: [f64; 2], file: &mut ScenarioFile) {
        let cluster = &mut file.cluster;
        match self.0 {
            KeyPlace::Network(key) => set_range(key, table(&mut cluster.network), ends),
            KeyPlace::NodesNetwork(key) => {
                let nodes = cluster.nodes.as_mut();
                set_range(key, nodes.and_then(|nodes| table(&mut nodes.network)), ends);
            }
            KeyPlace::Servers(key) => set_range(key, cluster.servers.as_mut(), ends),
            KeyPlace::Workers(groups, key) => set_range(key, groups.first(&mut cluster.workers), ends),
            KeyPlace::Device(groups, key) => {
                let section = groups.first(&mut cluster.workers);
                set_range(key, section.and_then(|section| table(&mut section.device)), ends);
            }
            KeyPlace::Input(key) => set_range(key, file.input.as_mut(), ends),
            KeyPlace::WholeNetwork | KeyPlace::Strategy(_) | KeyPlace::AllReduce(_) | KeyPlace::Fusion => {}
        }
    }
}

fn set_range<T, S>(key: &Key<T, S>, section: Option<&mut S>, ends: [f64; 2]) {
    if let Some(section) = section {
        (key.set_range)(section, ends);
    }
}

fn table<T>(value: &mut Option<NameOr<T>>) -> Option<&mut T> {
    match value {
        Some(NameOr::Table(table)) => Some(table),
        _ => None,
    }
}

fn collect<T, S>(
    keys: &'static [Key<T, S>],
    section: &S,
    place: impl Fn(&'static Key<T, S>) -> KeyPlace,
    found: &mut Vec<(Field, [f64; 2])>,
) {
    found.extend(keys.iter().filter_map(|key| Some((Field(place(key)), (key.range)(section)?))));
}

/// A value that is only known to lie within a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UncertainInput {
    field: Field,
    /// Lower and upper end in base units.
    ends: [f64; 2],
}

impl UncertainInput {
    /// Path, such as `cluster.workers[0].efficiency`.
    pub fn key(&self) -> KeyPath {
        self.field.key()
    }

    /// Both ends must be valid values of the key.
    fn check(&self) -> Result<(), Fault> {
        let sound = |end: f64| self.field.check(&Value::Real(end));
        let ends = self.ends.into_iter().try_for_each(sound);
        ends.map_err(|fault| Fault { key: self.key(), ..fault })
    }
}

pub(super) fn ranges(file: &ScenarioFile) -> Result<Vec<UncertainInput>, Fault> {
    let inputs = Field::ranges(file).into_iter().map(|(field, ends)| UncertainInput { field, ends });
    inputs.map(|input| input.check().map(|()| input)).collect()
}

impl Scenario {
    /// The scenario with the uncertain value at the lower and at the upper end of its range.
    pub fn at_ends(&self, input: &UncertainInput) -> [Self; 2] {
        input.ends.map(|value| {
            let mut scenario = self.clone();
            input.field.set(&mut scenario, &Value::Real(value));
            scenario
        })
    }
}

pub(super) fn write_ranges(inputs: &[UncertainInput], file: &mut ScenarioFile) {
    for input in inputs {
        input.field.write_range(input.ends, file);
    }
}
