//! On what a model is trained: devices, networks, clusters, and the catalog that names them.

pub mod catalog;
mod cluster;
mod device;
mod network;

pub use cluster::{Cluster, Nodes, Placement, Servers, WorkerGroup};
pub use device::{Device, DeviceKind, FittedDevice, FittedModel};
pub use network::Network;
