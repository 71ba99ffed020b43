//! The devices, networks and machines that a scenario can refer to by name.
//!
//! The lists are compiled into the program (`catalog/*.toml`) and parsed on first use. They contain data sheets, not
//! measurements: the scenario gives the share of them that software reaches. An entry is found by any spelling of its
//! name (`A100-SXM4-80GB`), with the name of its maker (`NVIDIA GeForce RTX 3090`), or by a short name (`a100`).

use crate::fault::{Fault, NameList, Remedies, Remedy, shown};
use crate::machine::{Device, Network, Nodes, Transport};
use crate::quantity::BitsPerSec;
use crate::suggest;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::sync::LazyLock;

/// Entries by name, in the order of the file.
pub type Entries<T> = IndexMap<String, T>;

/// A built-in list that cannot be parsed. Tests prevent such a list from being released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in catalog {file} cannot be read: {reason}")]
pub struct CatalogError {
    pub file: &'static str,
    pub reason: String,
}

impl From<CatalogError> for Fault {
    fn from(error: CatalogError) -> Self {
        Self::new(error.to_string(), "this copy of stepcast is damaged; build it again")
    }
}

static DEVICES: LazyLock<Result<Entries<Device>, CatalogError>> =
    LazyLock::new(|| read("devices.toml", stepcast_catalog::DEVICES));

static NETWORKS: LazyLock<Result<Entries<Network>, CatalogError>> =
    LazyLock::new(|| read("networks.toml", stepcast_catalog::NETWORKS));

static MACHINES: LazyLock<Result<Entries<Machine>, CatalogError>> = LazyLock::new(|| {
    let mut machines: Entries<Machine> = read("machines.toml", stepcast_catalog::MACHINES)?;
    for (name, price) in prices()? {
        match machines.get_mut(name) {
            Some(machine) => machine.price = Some(price.clone()),
            None if devices()?.contains_key(name) => {}
            None => {
                let reason = format!("there is no machine or device {name}");
                return Err(CatalogError { file: "prices.toml", reason });
            }
        }
    }
    Ok(machines)
});

static PRICES: LazyLock<Result<Entries<MachinePrice>, CatalogError>> =
    LazyLock::new(|| read("prices.toml", stepcast_catalog::PRICES));

static ALIASES: LazyLock<Result<Aliases, CatalogError>> =
    LazyLock::new(|| read("aliases.toml", stepcast_catalog::ALIASES));

/// Short names, and the names of the entries that they stand for.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aliases {
    pub devices: IndexMap<String, String>,
    pub networks: IndexMap<String, String>,
    pub machines: IndexMap<String, String>,
}

/// The device from which a description starts if no name is similar.
const TEMPLATE: &str = "h100-sxm5";

/// Words that makers put before the names of their products.
const MAKERS: [&str; 11] = [
    "nvidia", "amd", "intel", "geforce", "instinct", "amazon", "azure", "google", "oracle", "standard",
    "superpod",
];

pub fn devices() -> Result<&'static Entries<Device>, CatalogError> {
    DEVICES.as_ref().map_err(Clone::clone)
}

pub fn networks() -> Result<&'static Entries<Network>, CatalogError> {
    NETWORKS.as_ref().map_err(Clone::clone)
}

pub fn machines() -> Result<&'static Entries<Machine>, CatalogError> {
    MACHINES.as_ref().map_err(Clone::clone)
}

/// The device called `id`. Errors have the root as their path; the caller sets the key.
pub fn device(id: &str) -> Result<Device, Fault> {
    let aliases = &aliases()?.devices;
    find(devices(), aliases, "device", id, || {
        let describe = Remedy::DescribeDevice { name: id.to_owned() };
        [Remedy::ListNames { list: NameList::Devices }, describe].into()
    })
}

/// The entry with the name most similar to an unknown device, from which to start its description: one of the same family
/// if it names one (`tpu-v8`), else the newest GPU with 8-bit units.
pub fn device_like(id: &str) -> Result<(&'static str, &'static Device), Fault> {
    let wanted = without_maker(id);
    let shared = |name: &str| {
        let name = suggest::normal(name);
        name.chars().zip(wanted.chars()).take_while(|(own, other)| own == other).count()
    };
    let all = devices()?.iter().filter(|(_, device)| device.float8.is_some() || device.bf16.is_some());
    let like = all.map(|(name, device)| (name.as_str(), device)).max_by_key(|(name, _)| shared(name));
    let missing = || CatalogError { file: "devices.toml", reason: "it has no GPU".to_owned() };
    let known = like.filter(|(name, _)| shared(name) > 1);
    Ok(known
        .or_else(|| devices().ok()?.get_key_value(TEMPLATE).map(|(name, device)| (name.as_str(), device)))
        .ok_or_else(missing)?)
}

/// The network called `id`. Errors have the root as their path; the caller sets the key.
pub fn network(id: &str) -> Result<Network, Fault> {
    find(networks(), &aliases()?.networks, "network", id, || {
        let rate = Remedy::advice("write a rate such as \"100 Gbit/s\"");
        [rate, Remedy::ListNames { list: NameList::Networks }].into()
    })
}

fn prices() -> Result<&'static Entries<MachinePrice>, CatalogError> {
    PRICES.as_ref().map_err(Clone::clone)
}

/// The machine called `id`, several devices of one machine (`8xH100`), or one with a single device of this name. Errors have
/// the root as their path; the caller sets the key.
pub fn machine(id: &str) -> Result<Machine, Fault> {
    let aliases = &aliases()?.machines;
    let found =
        find(machines(), aliases, "machine", id, || Remedy::ListNames { list: NameList::Machines }.into());
    let found = found.or_else(|fault| several(id).ok_or(fault));
    found.or_else(|fault| device(id).map_err(|_| fault).and_then(|device| Machine::with_one(id, &device)))
}

/// The devices of `8xH100`, as a part of the first machine that has and joins them.
fn several(id: &str) -> Option<Machine> {
    let id = id.to_lowercase();
    let (count, name) = id.split_once(['x', '×'])?;
    let gpus = count.trim().parse().ok().filter(|gpus| *gpus > 0)?;
    let whole = machine_with(name).filter(|whole| whole.gpus >= gpus)?;
    let part = |name| Machine {
        name,
        gpus,
        ports: (whole.ports * gpus).div_ceil(whole.gpus),
        price: None,
        ..whole.clone()
    };
    Some(if gpus == whole.gpus { whole.clone() } else { part(format!("{gpus} of {}", whole.name)) })
}

/// Price of one device for an hour, alone or as a part of the first machine that has it and a price.
pub fn device_price(device: &Device) -> Option<MachinePrice> {
    // By exact name: most prices are those of machines, and `device` would also search for similar names.
    let is_same = |name: &str| devices().is_ok_and(|all| all.get(name) == Some(device));
    let alone = prices().ok()?.iter().find(|(name, _)| is_same(name)).map(|(_, price)| price.clone());
    let part = || {
        machines().ok()?.values().filter(|other| is_same(&other.device)).find_map(Machine::price_of_device)
    };
    alone.or_else(part)
}

/// The first machine that has this device and joins several by more than their slots.
pub fn machine_with(device: &str) -> Option<&'static Machine> {
    let device = self::device(device).ok()?;
    let joins = |machine: &&Machine| {
        let within = network(&machine.within);
        machine.gpus > 1 && within.is_ok_and(|within| within.transport != Transport::Pcie)
    };
    machines().ok()?.values().filter(joins).find(|machine| machine.device().is_ok_and(|own| own == device))
}

/// The Ethernet of this rate: the catalog's, or the next slower one set to this rate.
pub fn ethernet(rate: BitsPerSec) -> Result<Network, Fault> {
    let entries = networks()?.iter().filter(|(name, _)| name.ends_with("gbe")).map(|(_, network)| network);
    let slower = entries.clone().filter(|network| network.bandwidth <= rate);
    let base = slower.max_by(|a, b| a.bandwidth.get().total_cmp(&b.bandwidth.get()));
    let base = base.or_else(|| entries.clone().next());
    let missing = || CatalogError { file: "networks.toml", reason: "it has no Ethernet".to_owned() };
    base.ok_or_else(missing)?.at_rate(rate)
}

pub fn aliases() -> Result<&'static Aliases, CatalogError> {
    ALIASES.as_ref().map_err(Clone::clone)
}

fn read<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, CatalogError> {
    crate::text::parse(text).map_err(|error| CatalogError { file, reason: error.to_string() })
}

fn find<T: Clone>(
    entries: Result<&Entries<T>, CatalogError>,
    aliases: &IndexMap<String, String>,
    kind: &str,
    id: &str,
    list: impl FnOnce() -> Remedies,
) -> Result<T, Fault> {
    let entries = entries?;
    let wanted = without_maker(id);
    let alias = || aliases.iter().find(|(short, _)| without_maker(short) == wanted);
    let found = entries
        .get(id)
        .or_else(|| entries.iter().find(|(name, _)| without_maker(name) == wanted).map(|(_, entry)| entry))
        .or_else(|| alias().and_then(|(_, name)| entries.get(name)));
    found.cloned().ok_or_else(|| {
        let remedy = suggest::variants(&wanted, entries.keys().map(String::as_str), list());
        Fault::new(format!("\"{}\" is not a {kind} of the catalog", shown(id)), remedy)
    })
}

/// Letters and digits of a name, in lower case, without the words of its maker.
fn without_maker(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).map(suggest::normal);
    words.filter(|word| !MAKERS.contains(&word.as_str())).collect()
}

/// Default price of a machine for an hour, in US dollars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MachinePrice {
    /// The price, with all devices.
    pub hour: f64,
    /// Range of prices on the market.
    pub range: [f64; 2],
    /// Date of the price: a year and a month.
    pub date: String,
    /// Source of the price.
    pub source: String,
    /// Price of the machine as a spot instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<SpotPrice>,
}

/// Price of a spot instance, which the provider may take back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SpotPrice {
    /// The price, with all devices.
    pub hour: f64,
    /// Range of prices on the market.
    pub range: [f64; 2],
    /// Mean number of times that a machine is taken back in an hour.
    pub node_rate: f64,
}

/// A machine of the catalog; parts are names of other entries.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// What it is called in the output.
    pub name: String,
    /// Its devices.
    pub device: String,
    /// How many devices it has.
    pub gpus: u32,
    /// Name of the network between its devices.
    pub within: String,
    /// Number of devices that this network joins, if it reaches beyond one machine.
    pub domain: Option<u32>,
    /// The network that joins machines.
    pub network: String,
    /// Its ports to that network.
    pub ports: u32,
    /// Where the figures come from.
    pub source: String,
    /// Its price, if known.
    #[serde(skip_deserializing)]
    pub price: Option<MachinePrice>,
}

impl Machine {
    /// A machine with one device, as they are rented by the hour.
    fn with_one(id: &str, device: &Device) -> Result<Self, Fault> {
        Ok(Self {
            name: format!("one {}", device.name),
            device: id.to_owned(),
            gpus: 1,
            within: "pcie4-x16".to_owned(),
            domain: None,
            network: "10gbe".to_owned(),
            ports: 1,
            source: "a device of the catalog in a machine of its own; its network is assumed".to_owned(),
            price: device_price(device),
        })
    }

    /// The part of its price for one device.
    fn price_of_device(&self) -> Option<MachinePrice> {
        let MachinePrice { hour, range, date, source, .. } = self.price.clone()?;
        let each = |price: f64| price / f64::from(self.gpus);
        Some(MachinePrice { hour: each(hour), range: range.map(each), date, source, spot: None })
    }

    pub fn device(&self) -> Result<Device, Fault> {
        device(&self.device)
    }

    /// The network that joins machines.
    pub fn network(&self) -> Result<Network, Fault> {
        network(&self.network)
    }

    /// Whether this many workers with its device are assumed to share such machines. They are, unless the scenario names a network
    /// for no more workers than one machine holds: that network then joins the workers one by one.
    pub fn holds(&self, workers: u64, network_given: bool) -> bool {
        !network_given || workers > u64::from(self.gpus)
    }

    /// This machine with the slower links of both, inside and between machines.
    pub fn joined(&self, other: &Self) -> Result<Self, Fault> {
        let inside = |machine: &Self| Ok::<_, Fault>(network(&machine.within)?.bandwidth);
        let between =
            |machine: &Self| Ok::<_, Fault>(machine.network()?.bandwidth * f64::from(machine.ports));
        let slower = if between(other)? < between(self)? { other } else { self };
        let within = if inside(other)? < inside(self)? { other } else { self };
        Ok(Self {
            within: within.within.clone(),
            domain: within.domain,
            network: slower.network.clone(),
            ports: slower.ports,
            ..self.clone()
        })
    }

    /// Its devices as workers of one node.
    pub fn nodes(&self) -> Result<Nodes, Fault> {
        let network = network(&self.within)?;
        Ok(Nodes { workers: self.gpus, network, domain: self.domain, ports: Some(self.ports) })
    }
}

/// An assumed figure of long runs with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumed {
    /// The figure.
    pub value: f64,
    /// Range that its source leaves open.
    pub range: [f64; 2],
    /// Its unit.
    pub unit: String,
    /// Where it is from.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reliability {
    /// Interruptions of one device in an hour.
    pub interruptions: Assumed,
    /// Seconds until an interruption is noticed and diagnosed.
    pub detection: Assumed,
    /// Seconds until training goes on.
    pub restart: Assumed,
    /// Bytes of a checkpoint that one machine writes in a second.
    pub storage: Assumed,
    /// Energy of the building relative to its machines.
    pub pue: Assumed,
    /// Power of a machine beside its devices, in watts.
    pub host_power: Assumed,
    /// Power from the mains relative to the power of devices, for supplies and fans.
    pub supply: Assumed,
}

static RELIABILITY: LazyLock<Result<Reliability, CatalogError>> =
    LazyLock::new(|| read("reliability.toml", stepcast_catalog::RELIABILITY));

impl Reliability {
    pub fn shipped() -> Result<&'static Self, CatalogError> {
        RELIABILITY.as_ref().map_err(Clone::clone)
    }
}
