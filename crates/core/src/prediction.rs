//! What a method answers: the same type for all of them, so that answers can stand side by side.

use crate::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;

/// One share of the iteration time.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Part {
    /// What the time is spent on.
    pub name: &'static str,
    /// How long, on the path that decides the iteration time.
    #[serde(rename = "time_s")]
    #[serde_as(as = "InBaseUnits")]
    pub time: Seconds,
}

/// What limits the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
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
    /// The servers' computing units.
    Server,
}

/// One group of workers within a step.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct GroupReport {
    /// Index of the group in the scenario.
    pub group: usize,
    /// How many workers it has.
    pub count: u32,
    /// Samples per worker and step.
    pub batch: u32,
    /// Time of one whole step of computing, forward and backward.
    #[serde(rename = "compute_s")]
    #[serde_as(as = "InBaseUnits")]
    pub compute: Seconds,
    /// When its first gradients are ready.
    #[serde(rename = "ready_s")]
    #[serde_as(as = "InBaseUnits")]
    pub ready: Seconds,
    /// By what share one of these workers may compute slower at no cost: 0.4 is 40 %. None where the
    /// method does not tell.
    pub slack: Option<f64>,
}

/// Something the reader must know to judge the figures.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Warning {
    /// Short and stable, for programs.
    pub code: &'static str,
    /// A sentence, for people.
    pub message: String,
}

/// How a figure spreads.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Spread {
    /// 5 % lie below.
    pub low: f64,
    /// Half lie below.
    pub median: f64,
    /// 5 % lie above.
    pub high: f64,
}

/// Where the time of communication goes, from the first gradients to the end of the last all-reduce (Liu 2022, Figures 5
/// and 7). All but `exposed` sum up to that time.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, Default, JsonSchema, Serialize)]
pub struct Communication {
    /// Agreeing on what to send.
    #[serde(rename = "negotiate_s")]
    #[serde_as(as = "InBaseUnits")]
    pub negotiate: Seconds,
    /// Gradients wait for others or for slower workers, and nothing is sent.
    #[serde(rename = "wait_s")]
    #[serde_as(as = "InBaseUnits")]
    pub wait: Seconds,
    /// Something is sent.
    #[serde(rename = "allreduce_s")]
    #[serde_as(as = "InBaseUnits")]
    pub allreduce: Seconds,
    /// There is nothing to send yet.
    #[serde(rename = "misc_s")]
    #[serde_as(as = "InBaseUnits")]
    pub misc: Seconds,
    /// The part of all this that computing does not hide.
    #[serde(rename = "exposed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub exposed: Seconds,
}

/// How busy a resource is.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Usage {
    /// "server 0, downlink".
    pub resource: String,
    /// Share of its capacity that is used.
    pub share: f64,
}

/// What only a simulation knows.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Simulation {
    /// Mean throughput lies between these with 95 % confidence.
    pub throughput_interval: [f64; 2],
    /// How runs differ: standard deviation of the logarithm of their throughput; none of a single run.
    pub run_spread: Option<f64>,
    /// Independent runs.
    pub runs: usize,
    /// Steps that were simulated, all workers and runs together.
    pub steps: u64,
    /// Length of a step in seconds.
    pub step_s: Spread,
    /// Updates of others between a worker's pull and its own update.
    pub staleness: Spread,
    /// Mean of the staleness.
    pub mean_staleness: f64,
    /// How often each staleness occurs, from 0 on, as a share; what is beyond the last is with it.
    pub staleness_histogram: Vec<f64>,
    /// Samples that enter the parameters between a worker's pull and its update, its own included.
    pub effective_minibatch: f64,
    /// Share of a step during which the worker does not compute.
    pub exposed_communication: f64,
    /// Resources, the busiest first.
    pub usage: Vec<Usage>,
    /// Why the runs ended.
    pub end: String,
}

/// What brings gradients into the parameters beside workers that do not wait for it.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Updating {
    /// Time from one update to the next.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Where it goes; the parts sum up to it.
    pub breakdown: Vec<Part>,
    /// Samples whose gradients enter one update, on average.
    pub minibatch: f64,
    /// Updates between the one whose weights a gradient was computed with and the one it enters, on average.
    pub staleness: f64,
}

/// The answer of one method to one scenario.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Prediction {
    /// The method's name.
    pub method: &'static str,
    /// Number of workers.
    pub workers: u64,
    /// Time of one step; with local SGD, the average over a round.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples that all workers process in one step.
    pub samples: u64,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s")]
    #[serde_as(as = "InBaseUnits")]
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
    /// Where the time of all-reduces goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication: Option<Communication>,
    /// Updates, where they go on beside the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updating: Option<Box<Updating>>,
    /// What only a simulation knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulation: Option<Box<Simulation>>,
}

/// Samples that all workers process in one step.
pub fn samples_per_step(groups: &[GroupReport]) -> u64 {
    groups.iter().map(|report| u64::from(report.count) * u64::from(report.batch)).sum()
}

impl Prediction {
    /// The prediction that a step of these groups takes `iteration`; throughput, speed-up and scaling factor follow.
    pub fn new(
        method: &'static str,
        iteration: Seconds,
        groups: Vec<GroupReport>,
        breakdown: Vec<Part>,
        bottleneck: Bottleneck,
    ) -> Self {
        let samples = samples_per_step(&groups);
        let throughput = SamplesPerSec::of(samples as f64, iteration);
        let alone = |report: &GroupReport| f64::from(report.batch) / report.compute.get();
        let fastest = groups.iter().map(alone).fold(0.0, f64::max);
        let together: f64 = groups.iter().map(|report| alone(report) * f64::from(report.count)).sum();
        Self {
            method,
            workers: groups.iter().map(|report| u64::from(report.count)).sum(),
            iteration,
            samples,
            throughput,
            speedup: throughput.get() / fastest,
            scaling_factor: throughput.get() / together,
            breakdown,
            bottleneck,
            groups,
            warnings: Vec::new(),
            communication: None,
            updating: None,
            simulation: None,
        }
    }

    /// Time spent on the part called `name`.
    pub fn part(&self, name: &str) -> Seconds {
        self.breakdown.iter().filter(|part| part.name == name).map(|part| part.time).sum()
    }
}
