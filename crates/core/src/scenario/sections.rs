//! The tables of a scenario file. Structs stay plain, without flattening or tagged enums, because
//! those lose the place of an error.

use crate::machine::{DeviceKind, Placement};
use crate::model::{Activation, ModelFile};
use crate::precision::Precision;
use crate::quantity::{BitsPerSec, Bytes, BytesPerSec, FlopsPerSec, Hertz, Seconds};
use crate::scenario::oyama2016::OyamaSection;
use crate::scenario::{TransferOrder, Transport};
use crate::strategy::{Algorithm, Architecture, Synchronisation};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The name of a catalog entry, or a table that overrides or defines one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NameOr<T> {
    /// `device = "tesla-v100"`.
    Name(String),
    /// `device = { base = "tesla-v100", efficiency = 0.5 }`.
    Table(Box<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NameOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = NameOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a catalog entry, or a table")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(NameOr::Name(name.to_owned()))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|table| NameOr::Table(Box::new(table)))
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

/// Defines a table of optional keys.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }
    };
}

pub(super) use section;

section!(
    /// `[model]`: what is trained.
    ModelSection {
        /// Name of a model in the zoo.
        zoo: String,
        /// Layers of an own model.
        custom: ModelFile,
        /// File with measured steps of one worker, beside the scenario.
        profile: String,
        /// ONNX file of a model, beside the scenario.
        onnx: String,
        /// Lengths of dimensions that the ONNX file leaves open, by their names there.
        sizes: BTreeMap<String, u64>,
        /// What counts as work beside multiply-adds: "bias", "activation", "pooling", "normalisation",
        /// "elementwise".
        count: Vec<String>,
    }
);

section!(
    /// `[cluster]`: on what.
    ClusterSection {
        /// Groups of workers.
        workers: Vec<WorkersSection>,
        /// The network between all machines.
        network: NameOr<NetworkSection>,
        /// The parameter servers.
        servers: ServersSection,
        /// Machines with several workers each.
        nodes: NodesSection,
    }
);

section!(
    /// `[cluster.nodes]`: machines with several workers each.
    NodesSection {
        /// Workers of one machine.
        workers: u32,
        /// What joins them.
        network: NameOr<NetworkSection>,
    }
);

section!(
    /// `[[cluster.workers]]`: workers that are all alike.
    WorkersSection {
        /// How many.
        count: u32,
        /// What they compute with.
        device: NameOr<DeviceSection>,
        /// Samples per worker and step, if not the strategy's.
        batch: u32,
        /// Share of the device's rate that they reach.
        efficiency: Uncertain<f64>,
        /// Computing speed against what the device, or the profile, says: 0.5 is half as fast.
        speed: Uncertain<f64>,
        /// Rate of their network port, if not the network's.
        bandwidth: Uncertain<BitsPerSec>,
        /// One of them for one hour, if not `[price]`'s `worker-hour`.
        price: f64,
    }
);

section!(
    /// A device that overrides a catalog entry (`base`) or defines an own one.
    DeviceSection {
        /// Catalog entry to start from.
        base: String,
        /// Full name.
        name: String,
        /// CPU or GPU.
        kind: DeviceKind,
        /// Clock rate.
        clock: Hertz,
        /// Cores or stream processors.
        units: u32,
        /// Single-precision operations of one unit in one cycle.
        flops_per_cycle: f64,
        /// Peak TF32 rate.
        tf32: FlopsPerSec,
        /// Peak FP16 rate.
        fp16: FlopsPerSec,
        /// Peak BF16 rate.
        bf16: FlopsPerSec,
        /// Device memory.
        memory: Bytes,
        /// Rate of the device memory.
        memory_rate: BytesPerSec,
        /// Rate of the link to the host.
        host_link: BytesPerSec,
        /// Share of the peak rate that training reaches.
        efficiency: Uncertain<f64>,
        /// Share of the memory rate that the work on every weight reaches.
        memory_efficiency: Uncertain<f64>,
        /// File with what was fitted to measured steps, beside the scenario.
        fitted: String,
        /// Where the figures come from.
        source: String,
    }
);

section!(
    /// `[cluster.network]`: overrides a catalog entry (`base`) or defines an own network.
    NetworkSection {
        /// Catalog entry to start from.
        base: String,
        /// What it is called.
        name: String,
        /// Nominal rate in one direction.
        bandwidth: Uncertain<BitsPerSec>,
        /// One-way latency.
        latency: Uncertain<Seconds>,
        /// Share of the rate left for payload.
        efficiency: Uncertain<f64>,
        /// Software start-up cost of every transfer.
        startup: Seconds,
        /// Rate at which hosts copy and serialise payload.
        host_rate: Uncertain<BytesPerSec>,
        /// Where the figures come from.
        source: String,
    }
);

section!(
    /// `[cluster.servers]`: the parameter servers.
    ServersSection {
        /// How many.
        count: u32,
        /// What each of them holds.
        placement: Placement,
        /// Rate of their network port, if not the network's.
        bandwidth: Uncertain<BitsPerSec>,
    }
);

section!(
    /// `[strategy]`: how.
    StrategySection {
        /// Who combines the gradients.
        architecture: Architecture,
        /// When workers wait for each other.
        synchronisation: Synchronisation,
        /// Samples per worker and step.
        batch: u32,
        /// Number format of the arithmetic.
        precision: Precision,
        /// How workers sum their gradients among themselves.
        all_reduce: AllReduceSection,
        /// Which gradients travel together.
        fusion: FusionSection,
    }
);

section!(
    /// `[strategy.all-reduce]`: how workers sum their gradients among themselves.
    AllReduceSection {
        /// "ring", "halving-doubling", "tree", "double-tree" or "hierarchical".
        algorithm: Algorithm,
        /// All-reduces that may be under way at once.
        channels: u32,
        /// What every all-reduce costs whatever its size.
        overhead: Seconds,
        /// How much longer computing and all-reduces take while both are under way.
        interference: f64,
        /// Rate at which workers copy gradients into messages, and out of them.
        copy_rate: BytesPerSec,
        /// Measured sizes and times of whole all-reduces.
        measured: Vec<(Bytes, Seconds)>,
        /// A curve of whole all-reduces.
        curve: CurveSection,
        /// File with a fitted curve of whole all-reduces, beside the scenario.
        fitted: String,
    }
);

section!(
    /// `[strategy.all-reduce.curve]`: a logarithm up to a threshold, a line from there (Liu 2022, eq. 18).
    CurveSection {
        /// Where the line begins.
        threshold: Bytes,
        /// Below it: what doubling the size adds.
        per_doubling: Seconds,
        /// Below it: the time of one byte; otherwise such that the curve has no jump.
        one_byte: Seconds,
        /// Slope of the line.
        bandwidth: BytesPerSec,
        /// The line at size zero.
        overhead: Seconds,
    }
);

/// Names of the fusion rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FusionRule {
    /// Every gradient by itself.
    None,
    /// All gradients together.
    All,
    /// A buffer of constant size.
    Buffer,
    /// PyTorch's buckets.
    Pytorch,
    /// Horovod's cycles.
    Horovod,
    /// adaFusion.
    Adaptive,
    /// MG-WFBP.
    MgWfbp,
    /// A given list.
    Buckets,
}

/// Messages, in the order in which their gradients are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BucketList {
    /// How many gradients each has.
    Counts(Vec<u32>),
    /// Which gradients each has.
    Names(Vec<Vec<String>>),
}

section!(
    /// `[strategy.fusion]`: which gradients travel together.
    FusionSection {
        /// By which rule.
        rule: FusionRule,
        /// Size of a buffer, a bucket, or most of a Horovod message.
        size: Bytes,
        /// Size of PyTorch's first bucket.
        first: Bytes,
        /// Longest wait of a buffer for the next gradient.
        timeout: Seconds,
        /// Shortest time between Horovod's cycles.
        cycle: Seconds,
        /// The messages themselves.
        buckets: BucketList,
    }
);

section!(
    /// `[data]`: gives the epoch time.
    DataSection {
        /// Samples in one epoch.
        samples: u64,
        /// Epochs to train.
        epochs: u64,
    }
);

section!(
    /// `[price]`: gives the cost.
    PriceSection {
        /// One worker for one hour.
        worker_hour: f64,
        /// One server for one hour.
        server_hour: f64,
        /// The currency, as it is printed.
        currency: String,
    }
);

section!(
    /// `[methods]`: inputs of single methods.
    MethodsSection {
        /// Zeng 2023.
        zeng2023: ZengSection,
        /// Oyama 2016.
        oyama2016: OyamaSection,
        /// The event engine.
        simulate: SimulateSection,
    }
);

section!(
    /// `[methods.simulate]`: how the event engine runs.
    SimulateSection {
        /// Independent runs.
        runs: u32,
        /// Steps of the slowest worker in each run.
        steps: u32,
        /// Steps of every worker that do not count.
        warm_up: u32,
        /// Where random numbers begin.
        seed: u64,
        /// Bytes after which a stream is preempted, once.
        window: Bytes,
        /// Whether streams are preempted at all.
        flow_control: bool,
        /// Parsing of what has arrived: cost of a transfer.
        parse_fixed: Seconds,
        /// Rate of parsing.
        parse_rate: BytesPerSec,
        /// Whether receivers parse on the unit that computes.
        parse_while_computing: bool,
        /// Spread of computing times where a single step has to stand for all.
        jitter: f64,
        /// In which order parameters are asked for: "profile", "tic", "tac", "reverse" or "random".
        order: TransferOrder,
        /// How transfers share the network: "fair" or "tcp".
        transport: Transport,
        /// Longest queue of a port, in time at its rate.
        queue: Seconds,
    }
);

section!(
    /// `[methods.zeng2023]`: what the paper takes as inputs beside the scenario.
    ZengSection {
        /// Activation whose cost stands in the backward count.
        activation: Activation,
        /// Backward operations per weight; overrides `activation`.
        flops_per_weight: f64,
        /// Operations of a CPU in one cycle.
        simd: f64,
        /// Operations of a stream processor in one cycle.
        fc: f64,
        /// Whether workers copy each batch from the host to the GPU before they compute.
        host_copy: bool,
    }
);
