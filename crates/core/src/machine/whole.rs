//! Whole machines: devices, the links between them, and network ports.

use super::catalog;
use super::{Device, Network, Nodes};
use crate::fault::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine of the catalog; parts are names of other entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// What it is called in the output.
    pub name: String,
    /// Its devices.
    pub device: String,
    /// How many devices it has.
    pub gpus: u32,
    /// What joins its devices.
    pub within: String,
    /// The network that joins machines.
    pub network: String,
    /// Its ports to that network.
    pub ports: u32,
    /// Where the figures come from.
    pub source: String,
}

impl Machine {
    /// One of its devices.
    pub fn device(&self) -> Result<Device, Fault> {
        catalog::device(&self.device)
    }

    /// The network that joins machines.
    pub fn network(&self) -> Result<Network, Fault> {
        catalog::network(&self.network)
    }

    /// Its devices as workers of one node.
    pub fn nodes(&self) -> Result<Nodes, Fault> {
        let network = catalog::network(&self.within)?;
        Ok(Nodes { workers: self.gpus, network, ports: Some(self.ports) })
    }
}
