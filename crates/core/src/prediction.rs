//! Result of a method: one type for all methods, so that predictions can be compared.

mod transformer;

pub use transformer::{MemoryReport, OuterReport, Saving, SplitReport, StageMemory, StageReport, Verdict};

use crate::fault::names;
use crate::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::{DisplayFromStr, serde_as, skip_serializing_none};
use std::fmt;

names! {
    /// Cause of a part of an iteration.
    PartKind {
        Compute = "compute",
        HostToDevice = "host-to-device",
        Push = "push",
        Queueing = "queueing",
        Pull = "pull",
        StartUp = "start-up",
        Waiting = "waiting",
        Slowdown = "slowdown beside others",
        ExposedCommunication = "exposed communication",
        Recompute = "recompute",
        Host = "host",
        TensorParallelism = "tensor parallelism",
        ContextParallelism = "context parallelism",
        ExpertParallelism = "expert parallelism",
        ShardedWeights = "sharded weights",
        Offload = "offload",
        PipelineSends = "pipeline sends",
        Gradients = "gradients",
        PipelineBubble = "pipeline bubble",
        OuterGradients = "outer gradients",
        LockWeights = "lock weights",
        FetchWeights = "fetch weights",
        LoadImages = "load images",
        DeformImages = "deform images",
        ScaleGradient = "scale gradient",
        LockGradient = "lock gradient",
        UpdateGradient = "update gradient",
        LockGradients = "lock gradients",
        SumGradients = "sum gradients",
        KeepOldWeights = "keep old weights",
        AddMomentum = "add momentum",
        AllReduce = "all-reduce",
        UpdateMomentum = "update momentum",
        UpdateWeights = "update weights",
    }
}

impl PartKind {
    /// Whether a rank of a split transformer waits for a link.
    pub const fn is_link(self) -> bool {
        !matches!(self, Self::Compute | Self::Recompute | Self::Host | Self::PipelineBubble)
    }
}

/// One part of the iteration time.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Part {
    /// Cause of the time.
    #[serde(rename = "name")]
    pub kind: PartKind,
    /// Time on the critical path of the iteration.
    #[serde(rename = "time_s")]
    #[serde_as(as = "InBaseUnits")]
    pub time: Seconds,
}

/// The resource that limits the step.
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
    /// Number of workers in the group.
    pub count: u32,
    /// Samples per worker and step.
    pub batch: u32,
    /// Computing time of one step, forward and backward.
    #[serde(rename = "compute_s")]
    #[serde_as(as = "InBaseUnits")]
    pub compute: Seconds,
    /// When its first gradients are ready.
    #[serde(rename = "ready_s")]
    #[serde_as(as = "InBaseUnits")]
    pub ready: Seconds,
    /// Relative slowdown of computing that one of these workers can have without lengthening the step: 0.4 is 40 %.
    /// None if the method does not compute it.
    pub slack: Option<f64>,
}

/// Information that the reader needs to judge the figures.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Warning {
    /// Short, stable identifier for programs.
    pub code: &'static str,
    /// Message for people.
    pub message: String,
}

/// Distribution of a figure.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Spread {
    /// 5th percentile.
    pub low: f64,
    /// Half lie below.
    pub median: f64,
    /// 95th percentile.
    pub high: f64,
}

/// Breakdown of the communication time, from the first gradients to the end of the last all-reduce (Liu 2022, Figures
/// 5 and 7). All parts except `exposed` add up to that time.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, Default, JsonSchema, Serialize)]
pub struct Communication {
    /// Workers agree on the gradients to send.
    #[serde(rename = "negotiate_s")]
    #[serde_as(as = "InBaseUnits")]
    pub negotiate: Seconds,
    /// Gradients wait to be fused or for slower workers, and the network is idle.
    #[serde(rename = "wait_s")]
    #[serde_as(as = "InBaseUnits")]
    pub wait: Seconds,
    /// An all-reduce is running.
    #[serde(rename = "allreduce_s")]
    #[serde_as(as = "InBaseUnits")]
    pub allreduce: Seconds,
    /// No gradients are ready to be sent.
    #[serde(rename = "misc_s")]
    #[serde_as(as = "InBaseUnits")]
    pub misc: Seconds,
    /// The part of the communication time that does not overlap computing.
    #[serde(rename = "exposed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub exposed: Seconds,
}

/// Resource whose utilisation a simulation reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Workers,
    /// The link from a server to the workers.
    Downlink(usize),
    /// The link from the workers to a server.
    Uplink(usize),
    ServerComputing,
    /// The network, during all-reduces.
    AllReduce,
    Stage(usize),
    GpuThreads,
    UpdateThreads,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers => f.write_str("workers"),
            Self::Downlink(server) => write!(f, "server {server}, downlink"),
            Self::Uplink(server) => write!(f, "server {server}, uplink"),
            Self::ServerComputing => f.write_str("server computing"),
            Self::AllReduce => f.write_str("all-reduce"),
            Self::Stage(index) => write!(f, "stage {index}"),
            Self::GpuThreads => f.write_str("GPU threads"),
            Self::UpdateThreads => f.write_str("update threads"),
        }
    }
}

/// Utilisation of a resource.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Usage {
    /// Name, such as "server 0, downlink".
    #[serde_as(as = "DisplayFromStr")]
    #[schemars(with = "String")]
    pub resource: Resource,
    /// Share of its capacity that is used.
    pub share: f64,
}

/// Results that only a simulation provides.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Simulation {
    /// 90 % interval of the mean throughput in steady state, as far as runs show it.
    pub throughput_interval: [f64; 2],
    /// Variation between runs: standard deviation of the logarithm of their throughput; none for a single run.
    pub run_spread: Option<f64>,
    /// Number of independent runs.
    pub runs: usize,
    /// Number of simulated steps of all workers and runs.
    pub steps: u64,
    /// Duration of a step in seconds.
    pub step_s: Spread,
    /// Updates by other workers between a worker's pull and its own update.
    pub staleness: Spread,
    /// Mean of the staleness.
    pub mean_staleness: f64,
    /// Relative frequency of each staleness, starting at 0; the last entry includes all larger ones.
    pub staleness_histogram: Vec<f64>,
    /// Samples that enter the parameters between a worker's pull and its update, including its own.
    pub effective_minibatch: f64,
    /// Share of a step during which the worker does not compute.
    pub exposed_communication: f64,
    /// Resources, the busiest first.
    pub usage: Vec<Usage>,
    /// Reason why the runs ended.
    pub end: String,
}

/// Updates that run concurrently with workers that do not wait for them.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Updating {
    /// Time from one update to the next.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Breakdown of the time; the parts add up to it.
    pub breakdown: Vec<Part>,
    /// Mean number of samples whose gradients enter one update.
    pub minibatch: f64,
    /// Distribution of that number over updates.
    pub minibatch_spread: Spread,
    /// Mean number of updates between the one whose weights a gradient used and the one that includes the gradient.
    pub staleness: f64,
    /// The gradient of a sub-batch, kernel by kernel, where kernels were measured (Oyama 2016, eq. 4).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<GradientKernel>,
}

/// One kernel of a gradient, over all layers.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct GradientKernel {
    /// Its name in Oyama 2016.
    pub kernel: &'static str,
    /// Its time.
    #[serde(rename = "time_s")]
    #[serde_as(as = "InBaseUnits")]
    pub time: Seconds,
}

/// The prediction of one method for one scenario.
#[skip_serializing_none]
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Prediction {
    /// The method's name.
    pub method: &'static str,
    /// Number of workers.
    pub workers: u64,
    /// Duration of one step; with local SGD, the average over a round.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples that all workers process in one step.
    pub samples: u64,
    /// Samples per second in the whole cluster.
    #[serde(rename = "throughput_samples_per_s")]
    #[serde_as(as = "InBaseUnits")]
    pub throughput: SamplesPerSec,
    /// Throughput relative to the fastest worker alone, without communication.
    pub speedup: f64,
    /// Throughput relative to the sum of all workers' throughputs alone.
    pub scaling_factor: f64,
    /// Mean number of updates by other workers between a worker's pull and its own update, if workers do not wait for each
    /// other; a simulation reports it in more detail.
    pub staleness: Option<f64>,
    /// Breakdown of the iteration time; the parts add up to it.
    pub breakdown: Vec<Part>,
    /// The resource that limits the step.
    pub bottleneck: Bottleneck,
    /// The workers, by group.
    pub groups: Vec<GroupReport>,
    /// Information that the reader needs to judge the figures.
    pub warnings: Vec<Warning>,
    /// CSF: scaling factor if all gradients were sent after the backward pass (Liu 2022, eq. 2). `scaling_factor` is then OSF.
    pub csf: Option<f64>,
    /// Breakdown of the communication time of all-reduces.
    pub communication: Option<Communication>,
    /// Updates, if they run concurrently with the steps.
    pub updating: Option<Box<Updating>>,
    /// Results that only a simulation provides.
    pub simulation: Option<Box<Simulation>>,
    /// Tokens, utilisation, stages and memory of a transformer that a plan splits.
    pub transformer: Option<Box<SplitReport>>,
}

pub fn samples_per_step(groups: &[GroupReport]) -> u64 {
    groups.iter().map(|report| u64::from(report.count) * u64::from(report.batch)).sum()
}

impl Prediction {
    /// The prediction for groups whose step takes `iteration`; derives throughput, speed-up and scaling factor.
    pub fn new(
        method: &'static str,
        iteration: Seconds,
        groups: Vec<GroupReport>,
        breakdown: Vec<Part>,
        bottleneck: Bottleneck,
    ) -> Self {
        let samples = samples_per_step(&groups);
        let throughput = SamplesPerSec::from_time(samples as f64, iteration);
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
            staleness: None,
            breakdown,
            bottleneck,
            groups,
            warnings: Vec::new(),
            csf: None,
            communication: None,
            updating: None,
            simulation: None,
            transformer: None,
        }
    }

    pub fn part(&self, kind: PartKind) -> Seconds {
        self.breakdown.iter().filter(|part| part.kind == kind).map(|part| part.time).sum()
    }

    /// Time that workers compute, samples included.
    pub fn computing(&self) -> Seconds {
        self.part(PartKind::Compute) + self.part(PartKind::HostToDevice)
    }
}

impl Prediction {
    /// The prediction with all its times multiplied by `factor`; shares of the step do not change. No device computes more
    /// than its peak rate: a transformer's step is not shortened below that.
    #[must_use]
    pub fn stretched(mut self, factor: f64) -> Self {
        let factor = self.transformer.as_ref().map_or(factor, |split| factor.max(split.mfu).max(split.hfu));
        self.iteration = self.iteration * factor;
        self.throughput = self.throughput / factor;
        stretch_parts(&mut self.breakdown, factor);
        for group in &mut self.groups {
            group.compute = group.compute * factor;
            group.ready = group.ready * factor;
        }
        if let Some(Communication { negotiate, wait, allreduce, misc, exposed }) = &mut self.communication {
            for time in [negotiate, wait, allreduce, misc, exposed] {
                *time = *time * factor;
            }
        }
        if let Some(updating) = self.updating.as_deref_mut() {
            let Updating { iteration, breakdown, kernels, .. } = updating;
            *iteration = *iteration * factor;
            stretch_parts(breakdown, factor);
            kernels.iter_mut().for_each(|kernel| kernel.time = kernel.time * factor);
        }
        if let Some(Simulation { throughput_interval, step_s, .. }) = self.simulation.as_deref_mut() {
            *throughput_interval = throughput_interval.map(|rate| rate / factor);
            let Spread { low, median, high } = *step_s;
            *step_s = Spread { low: low * factor, median: median * factor, high: high * factor };
        }
        if let Some(split) = self.transformer.as_deref_mut() {
            stretch_split(split, factor);
        }
        self
    }
}

fn stretch_parts(parts: &mut [Part], factor: f64) {
    for part in parts {
        part.time = part.time * factor;
    }
}

fn stretch_split(split: &mut SplitReport, factor: f64) {
    for rate in [&mut split.tokens_per_s, &mut split.tokens_per_s_per_device, &mut split.mfu, &mut split.hfu]
    {
        *rate /= factor;
    }
    stretch_parts(&mut split.exposed, factor);
    for stage in &mut split.stages {
        for time in [&mut stage.forward, &mut stage.backward, &mut stage.end] {
            *time = *time * factor;
        }
    }
}
