//! The machines that train a model: devices, networks, clusters, and a catalog of named entries.

pub mod catalog;
mod cluster;
mod device;
mod network;

pub use catalog::{Assumed, CatalogError, Machine, MachinePrice, Reliability, SpotPrice};
pub(crate) use cluster::MAX_BATCH;
pub use cluster::{
    Beside, BesideSection, Cluster, Nodes, NodesSection, Placement, ServerSoftware, Servers, ServersSection,
    WorkerGroup, WorkersSection,
};
pub(crate) use device::TRANSFORMER_DEVICE;
pub use device::{Device, DeviceKind, DeviceSection, FittedDevice, FittedModel, Generation};
pub use network::{FabricLevel, MAX_LEVELS, Network, NetworkSection, Transport, WORKERS_OF_SWITCH_SUMS};
