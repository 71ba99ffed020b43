//! The question: a model, a cluster and a strategy, with all names resolved and all values checked.
//!
//! [`ScenarioFile`] is what a user writes, nearly everything optional; [`ScenarioFile::resolve`] makes a
//! [`Scenario`] of it or says what is wrong and where; [`Scenario::to_file`] writes it back with every
//! default filled in, so that a result can be reproduced.

mod document;
mod echo;
mod file;
mod oyama2016;
mod resolve;
mod sections;
mod uncertain;

pub use document::{Document, Override};
pub use file::ScenarioFile;
pub use oyama2016::{
    ASSUMED_HOST_MEMORY_RATE, KernelTime, KernelTimes, KernelsSection, Line, LineSection, OyamaOptions,
    OyamaSection, PerParameter, PerParameterSection, Products, SgemmSection, SgemmTable,
};
pub use sections::{
    AllReduceSection, BucketList, ClusterSection, CurveSection, DataSection, DeviceSection, FusionRule,
    FusionSection, MethodsSection, ModelSection, NameOr, NetworkSection, NodesSection, PriceSection,
    ServersSection, SimulateSection, StrategySection, WorkersSection, ZengSection,
};
pub use uncertain::UncertainInput;

use crate::fault::Fault;
use crate::machine::Cluster;
use crate::model::{Activation, Counting, ModelFile};
use crate::pass::{Gradient, Recorded};
use crate::profile::Profile;
use crate::quantity::{Bytes, BytesPerSec, Seconds};
use crate::strategy::{Architecture, Strategy};
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most workers a scenario may have.
pub const MAX_WORKERS: u64 = 1_000_000;

/// The currency where none is named.
const USUAL_CURRENCY: &str = "USD";

/// Where the model came from, to be able to write it back.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSource {
    /// An entry of the zoo.
    Zoo(String),
    /// Layers given in the scenario.
    Custom(Arc<ModelFile>),
    /// Measured steps.
    Profile {
        /// The file they came from.
        path: String,
        /// The steps.
        profile: Arc<Profile>,
    },
    /// An ONNX file.
    Onnx {
        /// The file.
        path: String,
        /// Lengths of dimensions that it leaves open.
        sizes: BTreeMap<String, u64>,
        /// Its layers.
        file: Arc<ModelFile>,
    },
}

impl ModelSource {
    /// The measured steps, where there are any.
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Self::Profile { profile, .. } => Some(profile),
            Self::Zoo(_) | Self::Custom(_) | Self::Onnx { .. } => None,
        }
    }

    /// The gradients that workers sum, in the order in which they are ready: those of `workload` in the order of the
    /// backward pass, those of a profile as in its mean step.
    pub fn gradients(&self, workload: &Workload) -> Result<Vec<Gradient>, Fault> {
        match self.profile() {
            Some(profile) => Ok(Recorded::new(profile)?.gradients()),
            None => Ok(workload.gradients()),
        }
    }
}

/// Where the files that a scenario names come from. Reading them is for others: this crate does no input.
pub trait Files {
    /// The profile called `path` in the scenario.
    fn profile(&self, path: &str) -> Result<Profile, Fault>;

    /// The layers of the ONNX file called `path` in the scenario, open dimensions having these lengths.
    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Fault> {
        let _ = sizes;
        let reason = format!("the ONNX file \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }

    /// The text of the fitted artefact called `path` in the scenario.
    fn text(&self, path: &str) -> Result<String, Fault> {
        let reason = format!("the artefact \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }
}

/// No files can be had.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        let reason = format!("the profile \"{path}\" cannot be read from here");
        Err(Fault::new(reason, "give the scenario as a file"))
    }
}

/// The data set: gives the epoch time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSet {
    /// Samples in one epoch.
    pub samples: u64,
    /// Epochs to train.
    pub epochs: u64,
}

/// What machines cost: gives the cost of training.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// One worker for one hour.
    pub worker_hour: f64,
    /// One server for one hour.
    pub server_hour: f64,
    /// The currency, as it is printed.
    pub currency: String,
}

/// What Zeng 2023 takes as inputs beside the scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZengOptions {
    /// Backward operations per weight and iteration. Eqs. 23 and 26 as printed give 89; the tables
    /// use 85 (errata 1.1).
    pub flops_per_weight: f64,
    /// Operations of a CPU in one cycle (eq. 28).
    pub simd: f64,
    /// Operations of one GPU stream processor in one cycle (eq. 33, called fc there).
    pub fc: f64,
    /// Whether workers copy each batch from the host to the GPU before they compute.
    pub host_copy: bool,
}

impl ZengOptions {
    /// Backward operations per weight for an activation: two for the update of the weight (eq. 18)
    /// and the activation's own, which is 83 for the sigmoid and gives the 85 of Table 1.
    pub fn flops_per_weight_of(activation: Activation) -> f64 {
        2.0 + activation.operations() as f64
    }
}

impl Default for ZengOptions {
    fn default() -> Self {
        let flops_per_weight = Self::flops_per_weight_of(Activation::Sigmoid);
        Self { flops_per_weight, simd: 2.0, fc: 1.0, host_copy: false }
    }
}

/// How simulated transfers share the network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Equally at all times (Li 2020, section 3.1).
    #[default]
    Fair,
    /// As TCP connections find their rates, with windows, round trips and queues.
    Tcp,
}

/// In which order simulated workers ask for parameters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TransferOrder {
    /// As the profile has it, step by step.
    #[default]
    Profile,
    /// What computing waits for first, by the number of operations before its first use (TicTac's timing-independent
    /// order).
    Tic,
    /// The same by the time of those operations (timing-aware).
    Tac,
    /// The profile's, backwards.
    Reverse,
    /// Another one for every step.
    Random,
}

/// How asynchronous and other training is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulateOptions {
    /// Independent runs.
    pub runs: u32,
    /// Steps of the slowest worker in each run.
    pub steps: u32,
    /// Steps of every worker that do not count (Li 2020: 50 of 1000).
    pub warm_up: u32,
    /// Where random numbers begin.
    pub seed: u64,
    /// Bytes after which a stream is preempted, once; none with flow control off (Li 2020, section 3.2.2).
    pub window: Option<Bytes>,
    /// Parsing of what has arrived: cost of a transfer (Li 2020, section 3.2.1).
    pub parse_fixed: Seconds,
    /// Rate of parsing; none: no cost.
    pub parse_rate: Option<BytesPerSec>,
    /// Whether receivers parse on the unit that computes.
    pub parse_while_computing: bool,
    /// Spread of computing times where a single step has to stand for all: standard deviation against the mean.
    pub jitter: f64,
    /// In which order parameters are asked for.
    pub order: TransferOrder,
    /// How transfers share the network.
    pub transport: Transport,
    /// Longest queue of a port, in time at its rate; for TCP.
    pub queue: Seconds,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self {
            runs: 8,
            steps: 1000,
            warm_up: 50,
            seed: 1,
            window: Some(Bytes::new(28e6)),
            parse_fixed: Seconds::ZERO,
            parse_rate: None,
            parse_while_computing: false,
            jitter: 0.05,
            order: TransferOrder::Profile,
            transport: Transport::Fair,
            queue: Seconds::new(0.05),
        }
    }
}

/// A resolved question.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What is trained, and where it came from.
    pub source: ModelSource,
    /// Which operations count as work.
    pub counting: Counting,
    /// What the model asks of the cluster.
    pub workload: Arc<Workload>,
    /// The machines.
    pub cluster: Cluster,
    /// What is known of the machines only within a range; the centre of each stands in `cluster`.
    pub uncertain: Vec<UncertainInput>,
    /// The way of training.
    pub strategy: Strategy,
    /// The data set, where one is given.
    pub data: Option<DataSet>,
    /// The prices, where they are given.
    pub price: Option<Price>,
    /// Inputs of Zeng 2023.
    pub zeng2023: ZengOptions,
    /// Inputs of Oyama 2016.
    pub oyama2016: OyamaOptions,
    /// Inputs of the simulation.
    pub simulate: SimulateOptions,
}

impl Scenario {
    /// The same question for another cluster.
    #[must_use]
    pub fn on(&self, cluster: Cluster) -> Self {
        Self { cluster, ..self.clone() }
    }

    /// What is trained, by name.
    pub fn name(&self) -> &str {
        match &self.source {
            ModelSource::Zoo(name) => name,
            ModelSource::Custom(file) | ModelSource::Onnx { file, .. } => &file.name,
            ModelSource::Profile { profile, .. } => &profile.name,
        }
    }

    /// The measured steps, where the scenario is made from them.
    pub fn profile(&self) -> Option<&Profile> {
        self.source.profile()
    }

    /// The gradients that workers sum, in the order in which they are ready.
    pub fn gradients(&self) -> Result<Vec<Gradient>, Fault> {
        self.source.gradients(&self.workload)
    }

    /// How many times as long as in the profile a step of the group at `index` computes: it has another batch, or another
    /// speed. One where there is no profile.
    pub fn slowness(&self, index: usize) -> f64 {
        self.profile().map_or(1.0, |profile| {
            let batch = f64::from(self.batch(index)) / f64::from(profile.batch);
            batch / self.cluster.groups[index].speed
        })
    }

    /// What all machines cost for one hour; none where some worker has no price.
    pub fn hourly_cost(&self) -> Option<f64> {
        let usual = self.price.as_ref().map(|price| price.worker_hour);
        let mut total = match (self.strategy.architecture, &self.price) {
            (Architecture::ParameterServer, Some(price)) => {
                price.server_hour * f64::from(self.cluster.servers.count)
            }
            _ => 0.0,
        };
        for group in &self.cluster.groups {
            total += group.price.or(usual)? * f64::from(group.count);
        }
        Some(total)
    }

    /// The currency of all prices, as it is printed.
    pub fn currency(&self) -> &str {
        self.price.as_ref().map_or(USUAL_CURRENCY, |price| &price.currency)
    }

    /// Samples per worker and step in the group at `index`.
    pub fn batch(&self, index: usize) -> u32 {
        self.cluster.groups[index].batch.unwrap_or(self.strategy.batch)
    }
}
