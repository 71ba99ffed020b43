//! Figures of a scenario that are given as ranges: where they stand, and the scenario at either end of one.

use super::resolve::positive;
use super::sections::{ClusterSection, DeviceSection, NameOr, NetworkSection, WorkersSection};
use super::{Scenario, ScenarioFile};
use crate::fault::{Fault, KeyPath};
use crate::machine::Network;
use crate::quantity::{BitsPerSec, BytesPerSec, Seconds};
use crate::uncertain::{Measure, Uncertain};

/// A figure that is known only to lie within a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UncertainInput {
    place: Place,
    /// In base units.
    ends: [f64; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Network(Link),
    /// Within a node.
    Nodes(Link),
    Servers,
    Workers(usize, Figure),
}

/// Figures of a network.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Link {
    Bandwidth,
    Latency,
    Efficiency,
    HostRate,
}

/// Figures of a group of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Efficiency,
    Speed,
    Bandwidth,
    DeviceEfficiency,
    DeviceMemoryEfficiency,
}

impl UncertainInput {
    /// Where it stands: `cluster.workers[0].efficiency`.
    pub fn key(&self) -> KeyPath {
        match self.place {
            Place::Network(link) => KeyPath::of("cluster.network").key(link.key()),
            Place::Nodes(link) => KeyPath::of("cluster.nodes.network").key(link.key()),
            Place::Servers => KeyPath::of("cluster.servers.bandwidth"),
            Place::Workers(index, figure) => {
                KeyPath::of(figure.key()).below(KeyPath::of("cluster.workers").index(index))
            }
        }
    }

    fn range<T: Measure>(&self) -> Option<Uncertain<T>> {
        Uncertain::between(T::of(self.ends[0]), T::of(self.ends[1]))
    }
}

impl Link {
    fn key(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Latency => "latency",
            Self::Efficiency => "efficiency",
            Self::HostRate => "host-rate",
        }
    }

    fn set(self, network: &mut Network, value: f64) {
        match self {
            Self::Bandwidth => network.bandwidth = BitsPerSec::new(value),
            Self::Latency => network.latency = Seconds::new(value),
            Self::Efficiency => network.efficiency = value,
            Self::HostRate => network.host_rate = Some(BytesPerSec::new(value)),
        }
    }
}

impl Figure {
    fn key(self) -> &'static str {
        match self {
            Self::Efficiency => "efficiency",
            Self::Speed => "speed",
            Self::Bandwidth => "bandwidth",
            Self::DeviceEfficiency => "device.efficiency",
            Self::DeviceMemoryEfficiency => "device.memory-efficiency",
        }
    }
}

/// All ranges of a cluster, in the order in which they are resolved.
pub(super) fn of(section: &ClusterSection) -> Result<Vec<UncertainInput>, Fault> {
    let mut found = Vec::new();
    network(section.network.as_ref(), Place::Network, &mut found);
    if let Some(nodes) = &section.nodes {
        network(nodes.network.as_ref(), Place::Nodes, &mut found);
    }
    if let Some(servers) = &section.servers {
        note(servers.bandwidth, Place::Servers, &mut found);
    }
    for (index, section) in section.workers.iter().flatten().enumerate() {
        workers(section, index, &mut found);
    }
    for input in &found {
        input.check()?;
    }
    Ok(found)
}

impl UncertainInput {
    /// Both ends must be figures that could stand by themselves.
    fn check(&self) -> Result<(), Fault> {
        for end in self.ends {
            positive("", end, "a range of plausible figures")
                .map_err(|fault| Fault { key: self.key(), ..fault })?;
        }
        let is_share =
            matches!(self.place, Place::Network(Link::Efficiency) | Place::Nodes(Link::Efficiency));
        if is_share && self.ends[1] > 1.0 {
            let reason = format!("{} is more than the whole of the bandwidth", self.ends[1]);
            return Err(Fault::in_key(self.key(), reason, "use shares of at most 1"));
        }
        Ok(())
    }
}

fn note<T: Measure>(given: Option<Uncertain<T>>, place: Place, found: &mut Vec<UncertainInput>) {
    if let Some(range) = given.filter(|given| given.is_range()) {
        found.push(UncertainInput { place, ends: range.ends().map(T::value) });
    }
}

fn network(
    given: Option<&NameOr<NetworkSection>>,
    place: fn(Link) -> Place,
    found: &mut Vec<UncertainInput>,
) {
    if let Some(NameOr::Table(section)) = given {
        note(section.bandwidth, place(Link::Bandwidth), found);
        note(section.latency, place(Link::Latency), found);
        note(section.efficiency, place(Link::Efficiency), found);
        note(section.host_rate, place(Link::HostRate), found);
    }
}

fn workers(section: &WorkersSection, index: usize, found: &mut Vec<UncertainInput>) {
    let place = |figure| Place::Workers(index, figure);
    note(section.efficiency, place(Figure::Efficiency), found);
    note(section.speed, place(Figure::Speed), found);
    note(section.bandwidth, place(Figure::Bandwidth), found);
    if let Some(NameOr::Table(device)) = &section.device {
        note(device.efficiency, place(Figure::DeviceEfficiency), found);
        note(device.memory_efficiency, place(Figure::DeviceMemoryEfficiency), found);
    }
}

impl Scenario {
    /// The same question with an uncertain figure at the lower and at the upper end of its range.
    pub fn at_ends(&self, input: &UncertainInput) -> [Self; 2] {
        input.ends.map(|value| {
            let mut scenario = self.clone();
            let cluster = &mut scenario.cluster;
            match input.place {
                Place::Network(link) => link.set(&mut cluster.network, value),
                Place::Nodes(link) => {
                    if let Some(nodes) = &mut cluster.nodes {
                        link.set(&mut nodes.network, value);
                    }
                }
                Place::Servers => cluster.servers.bandwidth = Some(BitsPerSec::new(value)),
                Place::Workers(index, figure) => {
                    if let Some(group) = cluster.groups.get_mut(index) {
                        match figure {
                            Figure::Efficiency => group.efficiency = Some(value),
                            Figure::Speed => group.speed = value,
                            Figure::Bandwidth => group.bandwidth = Some(BitsPerSec::new(value)),
                            Figure::DeviceEfficiency => group.device.efficiency = Some(value),
                            Figure::DeviceMemoryEfficiency => group.device.memory_efficiency = Some(value),
                        }
                    }
                }
            }
            scenario
        })
    }
}

/// Puts ranges back where they came from.
pub(super) fn write(inputs: &[UncertainInput], file: &mut ScenarioFile) {
    let cluster = &mut file.cluster;
    for input in inputs {
        match input.place {
            Place::Network(link) => write_network(input, link, cluster.network.as_mut()),
            Place::Nodes(link) => {
                let nodes = cluster.nodes.as_mut();
                write_network(input, link, nodes.and_then(|nodes| nodes.network.as_mut()));
            }
            Place::Servers => {
                if let Some(servers) = &mut cluster.servers {
                    servers.bandwidth = input.range();
                }
            }
            Place::Workers(index, figure) => {
                let groups = cluster.workers.as_mut();
                if let Some(section) = groups.and_then(|groups| groups.get_mut(index)) {
                    write_workers(input, figure, section);
                }
            }
        }
    }
}

fn write_network(input: &UncertainInput, link: Link, section: Option<&mut NameOr<NetworkSection>>) {
    let Some(NameOr::Table(section)) = section else { return };
    match link {
        Link::Bandwidth => section.bandwidth = input.range(),
        Link::Latency => section.latency = input.range(),
        Link::Efficiency => section.efficiency = input.range(),
        Link::HostRate => section.host_rate = input.range(),
    }
}

fn write_workers(input: &UncertainInput, figure: Figure, section: &mut WorkersSection) {
    let device: Option<&mut DeviceSection> = match &mut section.device {
        Some(NameOr::Table(device)) => Some(device),
        _ => None,
    };
    match (figure, device) {
        (Figure::Efficiency, _) => section.efficiency = input.range(),
        (Figure::Speed, _) => section.speed = input.range(),
        (Figure::Bandwidth, _) => section.bandwidth = input.range(),
        (Figure::DeviceEfficiency, Some(device)) => device.efficiency = input.range(),
        (Figure::DeviceMemoryEfficiency, Some(device)) => device.memory_efficiency = input.range(),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(cluster: &str) -> Result<Scenario, Fault> {
        let file: ScenarioFile = toml::from_str(&format!("[model]\nzoo = \"vgg16\"\n{cluster}")).unwrap();
        file.resolve()
    }

    const RANGES: &str = "
        [cluster.network]
        base = \"10gbe\"
        bandwidth = \"9..10 Gbit/s\"
        efficiency = \"0.9..0.94\"
        [cluster.servers]
        bandwidth = \"18..20 Gbit/s\"
        [[cluster.workers]]
        device = { base = \"tesla-v100-sxm2-16gb\", efficiency = [0.4, 0.5] }
        [[cluster.workers]]
        speed = \"0.5..0.6\"";

    #[test]
    fn ranges_are_found_and_the_centre_is_asked() {
        let scenario = scenario(RANGES).unwrap();
        let keys: Vec<String> = scenario.uncertain.iter().map(|input| input.key().to_string()).collect();
        assert_eq!(
            keys,
            [
                "cluster.network.bandwidth",
                "cluster.network.efficiency",
                "cluster.servers.bandwidth",
                "cluster.workers[0].device.efficiency",
                "cluster.workers[1].speed",
            ]
        );
        assert!((scenario.cluster.network.bandwidth.get() / 90e18_f64.sqrt() - 1.0).abs() < 1e-12);
        let [low, high] = scenario.at_ends(&scenario.uncertain[3]);
        assert_eq!(low.cluster.groups[0].device.efficiency, Some(0.4));
        assert_eq!(high.cluster.groups[0].device.efficiency, Some(0.5));
        assert_eq!(high.cluster.groups[1], scenario.cluster.groups[1]);
    }

    #[test]
    fn ranges_are_written_back() {
        let first = scenario(RANGES).unwrap();
        let again = first.to_file().resolve().unwrap();
        assert_eq!(again.uncertain, first.uncertain);
        assert_eq!(again.to_file(), first.to_file());
    }

    #[test]
    fn every_end_must_be_possible() {
        let network = |keys: &str| format!("[cluster.network]\nbase = \"10gbe\"\n{keys}");
        let wrong = scenario(&network("efficiency = \"0.9..1.1\"")).unwrap_err();
        assert_eq!(wrong.key.to_string(), "cluster.network.efficiency");
        let wrong = scenario(&network("bandwidth = \"1e-90..1e90 Gbit/s\"")).unwrap_err();
        assert!(wrong.reason.contains("too small to be meant"), "{wrong:?}");
    }
}
