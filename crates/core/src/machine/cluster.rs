//! The machines that train a model: groups of workers, servers, and the network between them.

use super::device::{DEFAULT_DEVICE, Device, DeviceSection};
use super::network::{Network, NetworkSection};
use crate::fault::Fault;
use crate::keys::{Check, NameOr, keys, plain};
use crate::precision::Precision;
use crate::quantity::{BitsPerSec, Bytes, SamplesPerSec, Seconds};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DEFAULT_WORKERS: u32 = 4;

/// Default link between the workers of a machine.
const DEFAULT_WITHIN: &str = "pcie3-x16";

/// Largest number of samples per worker and step.
pub(crate) const MAX_BATCH: u64 = 100_000_000;

/// Distribution of the parameters over the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Layer by layer, in forward order, to the server that holds the fewest bytes (TensorFlow's greedy strategy, Li
    /// 2020, section 5).
    #[default]
    Greedy,
    /// Every tensor is split into equal slices.
    Even,
}

plain!(Placement, "`\"greedy\"` or `\"even\"`");

/// Software that moves parameters and gradients between workers and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerSoftware {
    /// gRPC, as in TensorFlow of any generation.
    Grpc,
    /// gRPC as in TensorFlow 1.0 to 1.4.
    #[serde(rename = "grpc-1.0")]
    Grpc10,
    /// gRPC as in TensorFlow 1.5 to 1.15.
    #[serde(rename = "grpc-1.5")]
    Grpc15,
    /// gRPC as in TensorFlow 2.
    #[serde(rename = "grpc-2")]
    Grpc2,
    /// gRPC with MPI as the transport of tensors.
    GrpcMpi,
    /// gRPC with InfiniBand verbs as the transport of tensors.
    GrpcVerbs,
    /// ps-lite, as in MXNet.
    PsLite,
    /// `torch.distributed.rpc`.
    TorchRpc,
    /// BytePS.
    Byteps,
    /// Software that costs nothing beside the wire, `startup` and `host-rate`.
    None,
}

plain!(
    ServerSoftware,
    "`\"grpc\"`, `\"grpc-1.0\"`, `\"grpc-1.5\"`, `\"grpc-2\"`, `\"grpc-mpi\"`, `\"grpc-verbs\"`, `\"ps-lite\"`, `\"torch-rpc\"`, `\"byteps\"` or `\"none\"`"
);

keys! {
    /// Workers that are all alike.
    #[derive(Debug, Clone, PartialEq)]
    struct WorkerGroup;
    /// `[[cluster.workers]]`: workers that are all alike.
    section WorkersSection;
    keys {
        /// How many; 1,000,000 in the whole cluster at most.
        count: u32 => u32, default(DEFAULT_WORKERS), Check::Between(1, u64::MAX, "at least 1, or remove the group"), Load;
        /// Their device: a name from `stepcast devices`, or a table. Transformers have an H100 unless one is given.
        device: NameOr<DeviceSection> => Device, default(DEFAULT_DEVICE), Check::Any, Choice;
        /// GPUs of one worker of a parameter server: they compute side by side, each on its own batch, and share what the
        /// worker pulls and pushes. With all-reduce every GPU is a worker.
        gpus: u32 => u32, default(1_u32), Check::Between(1, 64, "a number such as 8"), Resolved;
        /// Samples per worker and step, of each GPU where it has several.
        batch: u32 => u32, optional("`strategy.batch`"), Check::Between(1, MAX_BATCH, "the number of samples per worker and step"), Load;
        /// Share of the device's rate that they reach; above 1 is allowed, because fast convolution algorithms do less work
        /// than is counted.
        efficiency: Uncertain<f64> => f64, optional("the device's"), Check::Positive("a share such as 0.5"), Computing;
        /// Computing speed relative to the device or the profile: 0.5 is half as fast.
        speed: Uncertain<f64> => f64, default(1.0), Check::Positive("a factor such as 0.5"), Computing;
        /// Measured throughput of one worker alone, in place of an efficiency or a fit of its device.
        throughput: Uncertain<SamplesPerSec> => SamplesPerSec, optional("assumed of the device"), Check::Positive("a rate such as \"2500 samples/s\""), Computing;
        /// Measured step of one worker alone: another way to give `throughput`.
        step_time: Uncertain<Seconds> => Seconds, optional("assumed of the device"), Check::Positive("a time such as \"12 ms\""), Resolved;
        /// Samples per step of that measurement.
        measured_batch: u32 => u32, optional("the workers' batch"), Check::Between(1, MAX_BATCH, "the number of samples per step"), Resolved;
        /// Number format of that measurement.
        measured_precision: Precision => Precision, optional("the strategy's"), Check::Any, Resolved;
        /// Rate of their network port.
        bandwidth: Uncertain<BitsPerSec> => BitsPerSec, optional("the network's"), Check::Positive("a rate such as \"10 Gbit/s\""), Transfer;
        /// One of them for one hour.
        price: f64 => f64, optional("`[price]`'s `worker-hour`"), Check::NotNegative("a price such as 0.9"), Choice;
    }
}

keys! {
    /// The parameter servers.
    #[derive(Debug, Clone, PartialEq)]
    struct Servers;
    /// `[cluster.servers]`: the parameter servers.
    section ServersSection;
    keys {
        /// How many.
        count: u32 => u32, default(1_u32), Check::Between(1, 100_000, "1 to 100000 servers"), Servers;
        /// How parameters are distributed. Greedy: layer by layer to the server that holds least; even: every tensor in equal slices.
        placement: Placement => Placement, default(Placement::default()), Check::Any, Exchange;
        /// Rate of their network port.
        bandwidth: Uncertain<BitsPerSec> => BitsPerSec, optional("the network's"), Check::Positive("a rate such as \"25 Gbit/s\""), Transfer;
        /// Software that moves parameters and gradients and costs server time for every byte and tensor: TensorFlow's `"grpc"`, or of
        /// its generations `"grpc-1.0"` (1.0 to 1.4), `"grpc-1.5"` (1.5 to 1.15) and `"grpc-2"`, `"grpc-mpi"` and
        /// `"grpc-verbs"` (tensors over MPI or InfiniBand verbs), `"ps-lite"` (MXNet), `"torch-rpc"`, `"byteps"`, or
        /// `"none"` for no more than `startup` and `host-rate` of the network.
        software: ServerSoftware => ServerSoftware, optional("any of them; `\"none\"` where `startup`, `host-rate` or a profile with server operations was measured"), Check::Any, Exchange;
        /// The processor of a server, whose cores, clock and memory rate bound its software: a name from `stepcast devices`, or
        /// a table.
        device: NameOr<DeviceSection> => Device, optional("the workers', if they are CPUs, else `xeon-e5-2690-v3`"), Check::Any, Resolved;
        /// Copies of the parameters that a worker pulls in each step: one for each of its GPUs in TensorFlow's
        /// `parameter_server` mode, otherwise 1.
        copies: u32 => u32, default(1_u32), Check::Between(1, 64, "a number such as 4"), Delay;
        /// Whether gradients are pushed while the backward pass goes on.
        overlap: bool => bool, optional("unless workers pull several copies"), Check::Any, Exchange;
        /// Whether servers run on the machines of the workers and share their ports.
        colocated: bool => bool, default(false), Check::Any, Exchange;
    }
}

keys! {
    /// Machines with several workers each.
    #[derive(Debug, Clone, PartialEq)]
    struct Nodes;
    /// `[cluster.nodes]`: machines with several workers each.
    section NodesSection, missing |_| {
        let remedy = "add `workers = 8`, the number of workers on one machine";
        Fault::new("the nodes have no number of workers", remedy)
    };
    keys {
        /// Workers of one machine, such as its GPUs.
        workers: u32 => u32, required, Check::Between(1, 512, "a number such as 8"), Resolved;
        /// Network between them: a name from `stepcast networks`, or a table. Between GPUs whose host link is faster, PCI Express of that
        /// rate.
        network: NameOr<NetworkSection> => Network, default(DEFAULT_WITHIN), Check::Any, Resolved;
        /// Workers that these links join, where they reach beyond one machine: 72 of an NVL72, the chips of a TPU slice.
        domain: u32 => u32, optional("`workers`"), Check::Between(1, 1_000_000, "a number such as 72"), Resolved;
        /// Network ports of one machine, each of the network's rate; traffic between machines uses all of them.
        ports: u32 => u32, optional("1"), Check::Between(1, 512, "a number such as 8"), Resolved;
    }
}

keys! {
    /// Machines of another kind that work in the same job.
    #[derive(Debug, Clone, PartialEq)]
    struct Beside;
    /// `[cluster.beside]`: machines of another kind in the same job.
    section BesideSection, missing |key| Fault::new(format!("the other machines have no `{key}`"), format!("add `{key}`"));
    keys {
        /// The machine: a name from `stepcast machines`, with as many devices as `cluster.machine`. The slower links of
        /// both kinds count.
        machine: String => String, required, Check::Any, Resolved;
        /// How many of them.
        machines: u32 => u32, default(1_u32), Check::Between(1, 1_000_000, "a number such as 8"), Resolved;
        /// Rate of the link between both kinds, each direction, such as a link between zones.
        link: BitsPerSec => BitsPerSec, optional("the network's"), Check::Positive("a rate such as \"400 Gbit/s\""), Resolved;
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub groups: Vec<WorkerGroup>,
    pub network: Network,
    pub servers: Servers,
    /// Machines with several workers each, if this matters.
    pub nodes: Option<Nodes>,
}

impl Cluster {
    /// Memory that frameworks see on the smallest device.
    pub fn smallest_memory(&self) -> Bytes {
        self.groups
            .iter()
            .map(|group| group.device.visible_memory())
            .reduce(Bytes::min)
            .unwrap_or(Bytes::ZERO)
    }

    pub fn workers_per_node(&self) -> u32 {
        self.nodes.as_ref().map_or(1, |nodes| nodes.workers)
    }

    /// Number of workers that the links inside machines join: those of a machine, or of several.
    pub fn workers_per_domain(&self) -> u32 {
        self.nodes.as_ref().map_or(1, |nodes| nodes.domain.unwrap_or(nodes.workers))
    }

    /// Number of workers on the machine that has the fewest: the last one, if workers do not fill all machines.
    pub fn workers_on_last_node(&self) -> u32 {
        self.on_last(self.workers_per_node())
    }

    pub fn workers_on_last_domain(&self) -> u32 {
        self.on_last(self.workers_per_domain())
    }

    fn on_last(&self, each: u32) -> u32 {
        let left = u32::try_from(self.workers() % u64::from(each)).unwrap_or(0);
        if left == 0 { each } else { left }
    }

    /// Ports in use of the domain that can use the fewest: workers send through the ports beside them, so that the ports of
    /// empty places are idle.
    pub fn ports_in_use(&self) -> u32 {
        let ports = self.nodes.as_ref().and_then(|nodes| nodes.ports).unwrap_or(1);
        let share = u64::from(ports) * u64::from(self.workers_on_last_domain());
        u32::try_from(share.div_ceil(u64::from(self.workers_per_node()))).unwrap_or(ports)
    }

    pub fn workers(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }

    /// `workers` workers divided among the groups in their proportions: whole shares first, then one more for each of the
    /// groups with the largest remainders; ties go to earlier groups.
    pub fn shares(&self, workers: u32) -> Vec<u32> {
        let total = self.workers() as f64;
        let share = |group: &WorkerGroup| f64::from(group.count) / total * f64::from(workers);
        let mut counts: Vec<u32> = self.groups.iter().map(|group| share(group).floor() as u32).collect();
        let missing = workers - counts.iter().sum::<u32>().min(workers);
        let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
        by_remainder
            .sort_by(|&a, &b| share(&self.groups[b]).fract().total_cmp(&share(&self.groups[a]).fract()));
        for &index in by_remainder.iter().take(missing as usize) {
            counts[index] += 1;
        }
        counts
    }

    /// A cluster of `workers` workers with the same groups in the same [proportions](Self::shares).
    #[must_use]
    pub fn resized(&self, workers: u32) -> Self {
        let groups = self.groups.iter().zip(self.shares(workers)).filter(|(_, count)| *count > 0);
        let groups = groups.map(|(group, count)| WorkerGroup { count, ..group.clone() }).collect();
        Self { groups, ..self.clone() }
    }
}
