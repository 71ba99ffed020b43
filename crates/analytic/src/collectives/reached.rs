//! Rates that collectives reach on links, and what it takes to start one.
//!
//! Nominal rates are not reached: TCP is bound by what one host can push through its sockets, PCIe by copies through
//! host memory where devices have no peer-to-peer access, NVLink and RDMA by messages of finite size. The shares and
//! rates are priors fitted to published runs (docs/priors.md, section 1); a rate that was measured replaces them.

use super::slowest_port;
use stepcast_core::machine::{Cluster, Network, Transport};
use stepcast_core::prior::{AllReduce, GigabytesPerSec};
use stepcast_core::quantity::{BitsPerSec, BytesPerSec, Seconds};

/// Share of an Ethernet rate that framing, headers and acknowledgements leave for payload.
const ETHERNET_PAYLOAD: f64 = 0.92;

/// Exponent with which the smaller of two limits is rounded where they are close.
const SHARPNESS: f64 = 4.0;

/// The machines of a cluster as collectives see them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Machines {
    pub(crate) count: f64,
    /// Workers on a full machine.
    pub(crate) workers: f64,
}

impl Machines {
    /// The machines of `cluster`. Workers that are joined by a link of the inside of a machine are on one machine.
    pub(crate) fn from_cluster(cluster: &Cluster) -> Self {
        let workers = cluster.workers() as f64;
        let inside = matches!(cluster.network.transport, Transport::Pcie | Transport::Nvlink);
        match &cluster.nodes {
            Some(_) => {
                let each = f64::from(cluster.workers_per_domain());
                Self { count: (workers / each).ceil(), workers: each.min(workers) }
            }
            None if inside => Self { count: 1.0, workers },
            None => Self { count: workers, workers: 1.0 },
        }
    }
}

/// The rates and start-up times of a collective over all workers of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AchievedRates {
    /// Rate inside a machine; none if every machine has one worker.
    pub(crate) inside: Option<BytesPerSec>,
    /// Rate between machines; none if there is one machine.
    pub(crate) between: Option<BytesPerSec>,
    /// Start-up of a collective inside a machine.
    pub(crate) start_inside: Seconds,
    /// Start-up of a collective between machines.
    pub(crate) start_between: Seconds,
}

impl AchievedRates {
    /// The achieved rates on `cluster`; none if its network is ideal.
    pub(crate) fn from_cluster(cluster: &Cluster, priors: &AllReduce) -> Option<Self> {
        if cluster.network.transport == Transport::Ideal {
            return None;
        }
        let machines = Machines::from_cluster(cluster);
        let nodes = cluster.nodes.as_ref();
        let link = nodes.map_or(&cluster.network, |nodes| &nodes.network);
        let ports = f64::from(cluster.ports_in_use());
        let transport = cluster.network.transport;
        let inside = (machines.workers > 1.0).then(|| match transport {
            Transport::HostMpi => priors.mpi.into(),
            Transport::Gloo => priors.gloo.into(),
            _ => {
                let ring = reached(link, link.bandwidth, machines.workers, peer_to_peer(cluster), priors);
                ring * if machines.count <= 1.0 { link.all_reduce_gain(machines.workers as u64) } else { 1.0 }
            }
        });
        let between = (machines.count > 1.0).then(|| {
            let network = &cluster.network;
            let rate = reached(network, slowest_port(cluster), 1.0, true, priors);
            if network.reached.is_some() { rate } else { rate * ports }
        });
        let start = |hop: Seconds, link: &Network, among: f64| {
            hop.max(link.latency + link.startup) * (2.0 * among.log2())
        };
        let [hop_in, hop_x] = match transport {
            Transport::Gloo => [priors.gloo_hop; 2],
            _ => [priors.hop_in, priors.hop_x],
        };
        Some(Self {
            inside,
            between,
            start_inside: start(hop_in, link, machines.workers.max(1.0)),
            start_between: start(hop_x, &cluster.network, machines.count.max(1.0)),
        })
    }

    /// Rate of a ring through all workers: it crosses the links inside machines and between them at the same time.
    pub(crate) fn ring(&self) -> BytesPerSec {
        match (self.inside, self.between) {
            (Some(inside), Some(between)) => smaller(inside, between),
            (Some(rate), None) | (None, Some(rate)) => rate,
            (None, None) => BytesPerSec::new(f64::INFINITY),
        }
    }

    /// Start-up of a collective over all workers.
    pub(crate) fn start(&self) -> Seconds {
        self.start_inside + self.start_between
    }
}

/// Achieved rate over `link` when `among` devices share the host path.
fn reached(
    link: &Network,
    port: BitsPerSec,
    among: f64,
    peer_to_peer: bool,
    priors: &AllReduce,
) -> BytesPerSec {
    if let Some(rate) = link.reached {
        return rate;
    }
    if link.host_rate.is_some() {
        return link.payload_rate(port);
    }
    let nominal = port.to_bytes_per_sec();
    match link.transport {
        Transport::Ideal => link.payload_rate(port),
        Transport::Tcp => {
            let host = match link.rented {
                Some(false) => priors.tcp_flow,
                Some(true) => priors.tcp_vm,
                None => GigabytesPerSec::mean([priors.tcp_flow, priors.tcp_vm]) * priors.either,
            };
            smaller(nominal * link.efficiency.min(ETHERNET_PAYLOAD), host.into())
        }
        Transport::Rdma => nominal * priors.rdma,
        Transport::HostMpi => smaller(nominal * link.efficiency, priors.mpi.into()),
        Transport::Gloo => smaller(nominal * link.efficiency.min(ETHERNET_PAYLOAD), priors.gloo.into()),
        Transport::Nvlink => nominal * priors.nv,
        Transport::Pcie if peer_to_peer => nominal * priors.p2p,
        Transport::Pcie => smaller(priors.bounce.into(), (priors.shared / among.max(2.0)).into()),
    }
}

/// The rate that software reaches between the workers of a machine of `cluster`, all of which use the path through
/// the host, or between its machines.
pub(crate) fn reached_rate(cluster: &Cluster, inside: bool, priors: &AllReduce) -> BytesPerSec {
    match cluster.nodes.as_ref().filter(|_| inside) {
        Some(nodes) => {
            let among = Machines::from_cluster(cluster).workers;
            reached(&nodes.network, nodes.network.bandwidth, among, peer_to_peer(cluster), priors)
        }
        None => reached(&cluster.network, slowest_port(cluster), 1.0, peer_to_peer(cluster), priors),
    }
}

/// Whether the devices of all groups read each other's memory over PCIe.
fn peer_to_peer(cluster: &Cluster) -> bool {
    cluster.groups.iter().all(|group| group.device.peer_to_peer())
}

/// The smaller of two rates, rounded where they are close.
fn smaller(a: BytesPerSec, b: BytesPerSec) -> BytesPerSec {
    let (low, high) = (a.min(b), a.max(b));
    low * (1.0 + (low / high).powf(SHARPNESS)).powf(-1.0 / SHARPNESS)
}
