//! The devices, networks and machines that a scenario can refer to by name.
//!
//! The lists are compiled into the program (`catalog/*.toml`) and parsed on first use. They contain data sheets, not
//! measurements: the scenario states how much of them software reaches. An entry is found by its name however it is
//! written (`A100-SXM4-80GB`), with the name of its maker (`NVIDIA GeForce RTX 3090`), or by a short name (`a100`).

use crate::fault::{Fault, NameList, Remedies, Remedy};
use crate::machine::{Device, Machine, Network};
use crate::suggest;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

/// Entries by name, in the order of the file.
pub type Entries<T> = IndexMap<String, T>;

/// A built-in list that cannot be parsed. Tests prevent such a list from being released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in catalog {file} cannot be read: {reason}")]
pub struct CatalogError {
    /// File name of the list.
    pub file: &'static str,
    /// Message of the parser.
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

static MACHINES: LazyLock<Result<Entries<Machine>, CatalogError>> =
    LazyLock::new(|| read("machines.toml", stepcast_catalog::MACHINES));

static ALIASES: LazyLock<Result<Aliases, CatalogError>> =
    LazyLock::new(|| read("aliases.toml", stepcast_catalog::ALIASES));

/// Short names, and the names of the entries that they stand for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Aliases {
    devices: IndexMap<String, String>,
    networks: IndexMap<String, String>,
    machines: IndexMap<String, String>,
}

/// Words that makers put before the names of their products.
const MAKERS: [&str; 7] = ["nvidia", "amd", "intel", "geforce", "instinct", "amazon", "azure"];

/// All devices.
pub fn devices() -> Result<&'static Entries<Device>, CatalogError> {
    DEVICES.as_ref().map_err(Clone::clone)
}

/// All networks.
pub fn networks() -> Result<&'static Entries<Network>, CatalogError> {
    NETWORKS.as_ref().map_err(Clone::clone)
}

/// All machines.
pub fn machines() -> Result<&'static Entries<Machine>, CatalogError> {
    MACHINES.as_ref().map_err(Clone::clone)
}

/// The device called `id`. Errors have the root as their path; the caller sets the key.
pub fn device(id: &str) -> Result<Device, Fault> {
    let aliases = &aliases()?.devices;
    find(devices(), aliases, "device", id, |_| Remedy::ListNames { list: NameList::Devices }.into())
}

/// The network called `id`. Errors have the root as their path; the caller sets the key.
pub fn network(id: &str) -> Result<Network, Fault> {
    find(networks(), &aliases()?.networks, "network", id, |known| {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        format!("write a rate such as \"100 Gbit/s\", or one of {}", names.join(", ")).into()
    })
}

/// The machine called `id`. Errors have the root as their path; the caller sets the key.
pub fn machine(id: &str) -> Result<Machine, Fault> {
    let aliases = &aliases()?.machines;
    find(machines(), aliases, "machine", id, |_| Remedy::ListNames { list: NameList::Machines }.into())
}

fn aliases() -> Result<&'static Aliases, CatalogError> {
    ALIASES.as_ref().map_err(Clone::clone)
}

pub(super) fn read<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, CatalogError> {
    toml::from_str(text).map_err(|error| CatalogError { file, reason: error.to_string() })
}

fn find<T: Clone>(
    entries: Result<&Entries<T>, CatalogError>,
    aliases: &IndexMap<String, String>,
    kind: &str,
    id: &str,
    list: impl FnOnce(&Entries<T>) -> Remedies,
) -> Result<T, Fault> {
    let entries = entries?;
    let wanted = without_maker(id);
    let alias = || aliases.iter().find(|(short, _)| suggest::normal(short) == wanted);
    let found = entries
        .get(id)
        .or_else(|| entries.iter().find(|(name, _)| suggest::normal(name) == wanted).map(|(_, entry)| entry))
        .or_else(|| alias().and_then(|(_, name)| entries.get(name)));
    found.cloned().ok_or_else(|| {
        let remedy = suggest::variants(&wanted, entries.keys().map(String::as_str), list(entries));
        Fault::new(format!("\"{id}\" is not a {kind} of the catalog"), remedy)
    })
}

/// Letters and digits of a name, in lower case, without the words of its maker.
fn without_maker(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).map(suggest::normal);
    words.filter(|word| !MAKERS.contains(&word.as_str())).collect()
}

#[cfg(test)]
mod tests;
