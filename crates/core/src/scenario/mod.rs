//! Scenarios: a model, a cluster and a strategy, with all names resolved and all values checked.
//!
//! [`ScenarioFile`] is the user's input, in which nearly everything is optional. [`ScenarioFile::resolve`] converts
//! it to a [`Scenario`] or reports a located error. [`Scenario::to_file`] converts it back with all defaults filled
//! in, so that a result can be reproduced.

mod document;
mod documentation;
mod echo;
mod edit;
mod exchanged;
mod field;
mod methods;
mod offers;
mod planning;
mod resolve;
mod sections;
mod training;

pub use document::Document;
pub use documentation::{SectionDoc, documentation, full_key};
pub use edit::Edit;
pub use field::{Field, Groups, UncertainInput};
pub use methods::{
    ASSUMED_HOST_MEMORY_RATE, CudaKernel, KernelTime, KernelTimes, KernelsSection, Line, LineSection,
    Methods, MethodsSection, Oyama2016, Oyama2016Section, PerParameter, PerParameterSection, Products,
    SgemmSection, SgemmTable, SharingRule, Simulate, SimulateSection, TransferOrder, Zeng2023,
    Zeng2023Section,
};
pub use offers::{AssumedPrice, Offer, OfferSection};
pub use planning::{
    Energy, EnergySection, Failures, FailuresSection, ListCodes, PlanList, Planning, PlanningSection,
};
pub use sections::{ClusterSection, ModelSection, ScenarioFile, is_onnx};
pub use training::{DataSection, DataSet, Input, InputKind, InputSection, Price, PriceSection};

use crate::fault::Fault;
use crate::machine::{self, Cluster, ServerSoftware};
use crate::model::transformer::{Transformer, Tuning};
use crate::model::{Counting, ModelFile, zoo};
use crate::pass::Recorded;
use crate::prior::Priors;
use crate::profile::Profile;
use crate::quantity::Seconds;
use crate::strategy::{Architecture, Strategy};
use crate::workload::Gradient;
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;
use training::USUAL_CURRENCY;

pub const MAX_WORKERS: u64 = 1_000_000;

/// Largest number of groups of workers: each takes memory in every variant of a scenario.
pub const MAX_GROUPS: usize = 4096;

/// Largest product of groups of workers and layers: every method goes through all layers for every group.
const MAX_GROUP_LAYERS: usize = 2_000_000;

/// Origin of the model, needed to convert a scenario back to a file.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSource {
    Zoo {
        name: String,
        /// Tokens of one sample, if not the model's default.
        sequence: Option<u64>,
        tuning: Tuning,
    },
    Transformer {
        name: String,
        shape: Transformer,
    },
    Config {
        path: String,
        name: String,
        shape: Transformer,
    },
    Custom(Arc<ModelFile>),
    Profile {
        path: String,
        profile: Arc<Profile>,
    },
    Onnx {
        path: String,
        /// Lengths of its open dimensions.
        sizes: BTreeMap<String, u64>,
        file: Arc<ModelFile>,
    },
}

impl ModelSource {
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Self::Profile { profile, .. } => Some(profile),
            _ => None,
        }
    }

    pub fn transformer(&self) -> Option<Transformer> {
        match self {
            Self::Zoo { name, sequence, tuning } => {
                let shape = zoo::transformer(name)?;
                let shape = shape.with_sequence(sequence.unwrap_or(shape.sequence));
                Some(Transformer { tuning: *tuning, ..shape })
            }
            Self::Transformer { shape, .. } | Self::Config { shape, .. } => Some(*shape),
            Self::Custom(_) | Self::Profile { .. } | Self::Onnx { .. } => None,
        }
    }

    /// The gradients that workers sum, in the order in which they are ready: for a model, the backward order of
    /// `workload`; for a profile, the order in its mean step.
    pub fn gradients(&self, workload: &Workload) -> Result<Vec<Gradient>, Fault> {
        match self.profile() {
            Some(profile) => Ok(Recorded::new(profile)?.gradients()),
            None => Ok(workload.gradients()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    pub source: ModelSource,
    pub counting: Counting,
    pub workload: Arc<Workload>,
    pub cluster: Cluster,
    /// Values that are given as ranges; the scenario contains their centres.
    pub uncertain: Vec<UncertainInput>,
    pub strategy: Strategy,
    /// Whether methods compute what their papers print.
    pub as_published: bool,
    /// How samples get to the workers.
    pub input: Input,
    pub data: Option<DataSet>,
    pub price: Option<Price>,
    /// Choices of a search over plans, if given.
    pub planning: Option<Planning>,
    /// Failures of a long run, if given.
    pub failures: Option<Failures>,
    pub energy: Option<Energy>,
    pub methods: Methods,
    /// Assumptions about machines and software that the scenario does not specify.
    pub priors: Arc<Priors>,
}

impl Scenario {
    #[must_use]
    pub fn on(&self, cluster: Cluster) -> Self {
        Self { cluster, ..self.clone() }
    }

    pub fn name(&self) -> &str {
        match &self.source {
            ModelSource::Zoo { name, .. }
            | ModelSource::Transformer { name, .. }
            | ModelSource::Config { name, .. } => name,
            ModelSource::Custom(file) | ModelSource::Onnx { file, .. } => &file.name,
            ModelSource::Profile { profile, .. } => &profile.name,
        }
    }

    /// The measured steps, if the scenario is based on a profile.
    pub fn profile(&self) -> Option<&Profile> {
        self.source.profile()
    }

    /// The scenario with a profile of one step: the recorded step of median length.
    #[must_use]
    pub fn with_typical_step(&self) -> Self {
        let mut typical = self.clone();
        if let ModelSource::Profile { profile, .. } = &mut typical.source {
            let steps = &mut Arc::make_mut(profile).steps;
            steps.sort_by(|a, b| a.length.total_cmp(&b.length));
            let middle = steps.len() / 2;
            steps.swap(0, middle);
            steps.truncate(1);
        }
        typical
    }

    /// The gradients that workers sum, in the order in which they are ready, with the sizes of their all-reduces.
    pub fn gradients(&self) -> Result<Vec<Gradient>, Fault> {
        match self.profile() {
            Some(_) => self.source.gradients(&self.workload),
            None => Ok(self.summed_gradients()),
        }
    }

    /// Computing time of a step of the group at `index` relative to the profile, because its batch or speed differs.
    /// 1 without a profile.
    pub fn slowness(&self, index: usize) -> f64 {
        self.profile().map_or(1.0, |profile| {
            let batch = f64::from(self.batch(index)) / f64::from(profile.batch);
            batch / self.cluster.groups[index].speed
        })
    }

    /// Cost of all machines for one hour; none if the price of some worker is unknown.
    pub fn hourly_cost(&self) -> Option<f64> {
        let usual = self.price.as_ref().map(|price| price.worker_hour);
        let mut total = match (self.strategy.architecture, &self.price) {
            (Architecture::ParameterServer, Some(price)) => {
                price.server_hour * f64::from(self.cluster.servers.count)
            }
            _ => 0.0,
        };
        if self.strategy.architecture != Architecture::StandAlone {
            total += self.price.as_ref().and_then(|price| price.network_hour).unwrap_or(0.0);
        }
        if let Some(price) = &self.price {
            let each = u64::from(self.cluster.workers_per_node()).max(1);
            let machines = self.cluster.workers().div_ceil(each) as f64;
            total += price.node_hour.unwrap_or(0.0) * machines + price.storage_hour.unwrap_or(0.0);
        }
        for group in &self.cluster.groups {
            total += group.price.or(usual)? * f64::from(group.count);
        }
        Some(total)
    }

    /// The currency of all prices, in printed form.
    pub fn currency(&self) -> &str {
        self.price.as_ref().map_or(USUAL_CURRENCY, |price| &price.currency)
    }

    /// Samples of a batch of one device of a worker in the group at `index`.
    pub fn batch(&self, index: usize) -> u32 {
        self.cluster.groups[index].batch.unwrap_or(self.strategy.batch)
    }

    /// Samples per worker and step in the group at `index`: of all its devices, and of all batches between two exchanges.
    pub fn samples(&self, index: usize) -> u32 {
        self.batch(index)
            .saturating_mul(self.cluster.groups[index].gpus)
            .saturating_mul(self.strategy.accumulation)
    }

    /// Samples of one epoch, where a data set gives them or their tokens.
    pub fn epoch_samples(&self) -> Option<u64> {
        let data = self.data?;
        let sequence = || self.transformer_of_plan().map(|shape| shape.sequence as f64).ok();
        data.samples.or_else(|| Some((data.tokens? / sequence()?).ceil() as u64))
    }

    /// Time of training with evaluations relative to training without them, for steps of this many samples. An evaluation takes whole
    /// steps; its forward pass is a third of a step, or half where no gradients of weights are computed. MLPerf's runs of
    /// Llama 3.1 405B evaluate in 0.35 to 0.48 of the time that training takes for as many sequences, those of Llama 2 70B
    /// with LoRA on eight GPUs in 0.43 to 0.47.
    pub fn with_evaluations(&self, step: f64) -> f64 {
        let Some(samples) = self.data.and_then(|data| data.evaluation_samples) else { return 1.0 };
        let every = self.data.and_then(|data| data.evaluation_every).or(self.epoch_samples());
        let is_adapted = self.source.transformer().is_some_and(|shape| shape.tuning.adapters.is_some());
        let forward = if is_adapted { 1.0 / 2.0 } else { 1.0 / 3.0 };
        let evaluated = (samples as f64 / step).ceil() * step;
        every.map_or(1.0, |every| 1.0 + forward * evaluated / every as f64)
    }

    /// The software of the parameter servers. Unless the scenario names it, it adds nothing to measurements of servers: a
    /// start-up, a rate of hosts, or the server operations of a profile.
    pub fn server_software(&self) -> ServerSoftware {
        let network = &self.cluster.network;
        let recorded = self.profile().is_some_and(Profile::has_servers);
        let ideal = network.transport == machine::Transport::Ideal;
        let measured = recorded || ideal || network.host_rate.is_some() || network.startup > Seconds::ZERO;
        let usual = if measured { ServerSoftware::None } else { ServerSoftware::Grpc };
        self.cluster.servers.software.unwrap_or(usual)
    }
}
