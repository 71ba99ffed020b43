//! The published runs, as they are embedded.

use crate::ValidationError;
use crate::embedded::packed_rows;
use serde::Deserialize;
use stepcast_validation_data::published_scaling::RUNS;

/// One published run of several workers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Run {
    /// Its name.
    pub(super) id: String,
    /// Source, cluster and network.
    pub(super) family: String,
    /// Exchange of gradients: "all-reduce: …", "in one machine: …", "ps-sync: …", "ps-async: …".
    pub(super) strategy: String,
    /// What was trained.
    pub(super) model: String,
    pub(super) parameters: u64,
    /// Gradient tensors.
    pub(super) tensors: u32,
    pub(super) device: String,
    pub(super) precision: String,
    /// Samples per GPU and step.
    pub(super) batch: u32,
    pub(super) gpus: u32,
    /// Machines.
    pub(super) nodes: u32,
    /// The most GPUs that one machine has.
    pub(super) most_on_node: u32,
    /// Parameter servers.
    pub(super) servers: Option<u32>,
    pub(super) intra_link: String,
    pub(super) inter_link: String,
    /// Nominal rate of a machine's port, Gbit/s.
    pub(super) gbps: f64,
    pub(super) transport: String,
    pub(super) data: String,
    /// What the throughput alone belongs to: "one GPU", "one machine of 4 GPUs", "one CPU core".
    pub(super) single_of: String,
    pub(super) single_throughput: f64,
    pub(super) single_batch: Option<f64>,
    /// Measured, samples per second.
    pub(super) throughput: f64,
    pub(super) fusion: String,
    /// "full", or "partial" where network, GPU or machines had to be assumed.
    pub(super) trust: String,
}

/// Where a run belongs in the means over families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// All-reduce inside one machine.
    OneMachine,
    /// All-reduce between machines.
    SeveralMachines,
    /// Parameter servers.
    Servers,
}

impl Place {
    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneMachine => "one machine",
            Self::SeveralMachines => "several machines",
            Self::Servers => "servers",
        }
    }
}

impl Run {
    /// Whether it has parameter servers.
    pub(super) fn is_served(&self) -> bool {
        self.strategy.starts_with("ps-")
    }

    /// Where it belongs: families of one machine are named so.
    pub(super) fn place(&self) -> Place {
        match (self.is_served(), self.family.contains("one machine")) {
            (true, _) => Place::Servers,
            (false, true) => Place::OneMachine,
            (false, false) => Place::SeveralMachines,
        }
    }

    /// Whether nothing had to be assumed.
    pub(super) fn is_trusted(&self) -> bool {
        self.trust == "full"
    }

    /// GPUs of one worker: those of the machine, where its throughput alone is that of a machine.
    pub(super) fn gpus_per_worker(&self) -> u32 {
        let of_machine = self.single_of.strip_prefix("one machine of ");
        of_machine.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(1)
    }

    /// Seconds of a worker's step alone.
    pub(super) fn alone(&self) -> f64 {
        let batch = self.single_batch.filter(|_| !self.is_served()).unwrap_or(f64::from(self.batch));
        batch * f64::from(self.gpus_per_worker()) / self.single_throughput
    }
}

/// All runs.
pub(super) fn runs() -> Result<Vec<Run>, ValidationError> {
    packed_rows(RUNS)
}
