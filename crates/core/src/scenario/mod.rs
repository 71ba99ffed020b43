//! The question: a model, a cluster and a strategy, with all names resolved and all values checked.
//!
//! [`ScenarioFile`] is what a user writes, nearly everything optional; [`ScenarioFile::resolve`] makes a
//! [`Scenario`] of it or says what is wrong and where; [`Scenario::to_file`] writes it back with every
//! default filled in, so that a result can be reproduced.

mod document;
mod documentation;
mod echo;
mod field;
mod file;
#[cfg(test)]
mod fitted_tests;
mod oyama2016;
mod resolve;
mod sections;
mod simulate;
mod training;
mod uncertain;
mod zeng2023;

pub use document::{Document, Override};
pub use documentation::{SectionDoc, documentation};
pub use field::{Field, Groups};
pub use file::ScenarioFile;
pub use oyama2016::{
    ASSUMED_HOST_MEMORY_RATE, KernelTime, KernelTimes, KernelsSection, Line, LineSection, Oyama2016,
    Oyama2016Section, PerParameter, PerParameterSection, Products, SgemmSection, SgemmTable,
};
pub use sections::{ClusterSection, MethodsSection, ModelSection};
pub use simulate::{Simulate, SimulateSection, TransferOrder, Transport};
pub use training::{DataSection, DataSet, Price, PriceSection};
pub use uncertain::UncertainInput;
pub use zeng2023::{Zeng2023, Zeng2023Section};

use crate::fault::Fault;
use crate::machine::Cluster;
use crate::model::{Counting, ModelFile};
use crate::pass::Recorded;
use crate::profile::Profile;
use crate::strategy::{Architecture, Strategy};
use crate::workload::Gradient;
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;
use training::USUAL_CURRENCY;

/// Most workers a scenario may have.
pub const MAX_WORKERS: u64 = 1_000_000;

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
    pub zeng2023: Zeng2023,
    /// Inputs of Oyama 2016.
    pub oyama2016: Oyama2016,
    /// Inputs of the simulation.
    pub simulate: Simulate,
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
        if self.strategy.architecture != Architecture::StandAlone {
            total += self.price.as_ref().and_then(|price| price.network_hour).unwrap_or(0.0);
        }
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
