//! What a method answers: the same type for all of them, so that answers can stand side by side.

use crate::quantity::{SamplesPerSec, Seconds, number};
use serde::Serialize;

/// One share of the iteration time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Part {
    /// What the time is spent on.
    pub name: &'static str,
    /// How long, on the path that decides the iteration time.
    #[serde(rename = "time_s", serialize_with = "number")]
    pub time: Seconds,
}

/// What limits the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// The workers' devices.
    Compute,
    /// The servers' links.
    ServerLink,
    /// The workers' own links.
    WorkerLink,
    /// Costs that no bandwidth removes: start-up and latency.
    FixedCost,
    /// Copying and serialising on the hosts.
    HostCopy,
}

/// One group of workers within a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupReport {
    /// Index of the group in the scenario.
    pub group: usize,
    /// How many workers it has.
    pub count: u32,
    /// Samples per worker and step.
    pub batch: u32,
    /// Time of one whole step of computing, forward and backward.
    #[serde(rename = "compute_s", serialize_with = "number")]
    pub compute: Seconds,
    /// When its first gradients are ready.
    #[serde(rename = "ready_s", serialize_with = "number")]
    pub ready: Seconds,
    /// By what share one of these workers may compute slower at no cost: 0.4 is 40 %. None where the
    /// method does not tell.
    pub slack: Option<f64>,
}

/// Something the reader must know to judge the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Short and stable, for programs.
    pub code: &'static str,
    /// A sentence, for people.
    pub message: String,
}

/// The answer of one method to one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The method's name.
    pub method: &'static str,
    /// Number of workers.
    pub workers: u64,
    /// Time of one step; with local SGD, the average over a round.
    #[serde(rename = "iteration_s", serialize_with = "number")]
    pub iteration: Seconds,
    /// Samples that all workers process in one step.
    pub samples: u64,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s", serialize_with = "number")]
    pub throughput: SamplesPerSec,
    /// Throughput against that of the fastest single worker, alone and without communication.
    pub speedup: f64,
    /// Throughput against the sum of what all workers would do alone.
    pub scaling_factor: f64,
    /// Where the time goes; the parts sum up to the iteration time.
    pub breakdown: Vec<Part>,
    /// What limits the step.
    pub bottleneck: Bottleneck,
    /// The workers, by group.
    pub groups: Vec<GroupReport>,
    /// What the reader must know to judge the figures.
    pub warnings: Vec<Warning>,
}

impl Prediction {
    /// Time spent on the part called `name`.
    pub fn part(&self, name: &str) -> Seconds {
        self.breakdown.iter().filter(|part| part.name == name).map(|part| part.time).sum()
    }
}
