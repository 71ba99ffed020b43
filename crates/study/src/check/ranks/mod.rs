//! Who is slow: recordings of several ranks, with the cause of slowness, the time that it costs and what its removal gains.
//!
//! Ranks wait for each other, so that all have the same step time. What tells them apart is their own work: the step without
//! communication, loading of data and pauses. A step takes as long as the longest own work and what follows it.

mod find;
mod read;

pub use find::{distribution, find};
pub use read::{read_rank_texts, read_ranks};

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::quantity::{InBaseUnits, Seconds};

/// One step of one rank, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankStep {
    /// From one step to the next.
    pub time: f64,
    /// In collectives, with waiting for others; none if unknown.
    pub communication: Option<f64>,
    /// Waiting for data.
    pub data: f64,
    /// Collecting garbage.
    pub pause: f64,
    /// The device has nothing to do, for its host asks for nothing; 0 if unknown.
    pub silent: f64,
    /// Tokens, or another measure of the work that the rank was given.
    pub work: Option<f64>,
}

impl RankStep {
    fn own(&self) -> f64 {
        (self.time - self.communication.unwrap_or(0.0) - self.data - self.pause - self.silent).max(1e-9)
    }
}

/// The steps of one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankSeries {
    /// Its number.
    pub rank: u64,
    /// The machine that it runs on.
    pub machine: Option<String>,
    /// Its stage of the pipeline.
    pub stage: Option<u64>,
    /// Its steps, in order.
    pub steps: Vec<RankStep>,
}

/// Transfers within one group of ranks: those of a pipeline's neighbours, or a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupTransfers {
    /// Its ranks.
    pub ranks: Vec<u64>,
    /// The time of each transfer from the moment at which all ranks take part.
    pub times: Vec<f64>,
}

/// The slowest and the fastest rank of an interval, as Megatron-LM's straggler detector logs them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// Shortest time of a rank.
    pub least: f64,
    /// Longest time, and whose it is.
    pub most: (f64, u64),
}

/// Recorded steps of several ranks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankRecording {
    /// The ranks, each with the same number of steps.
    pub ranks: Vec<RankSeries>,
    /// Transfers that were recorded one by one.
    pub transfers: Vec<GroupTransfers>,
    /// Times of the slowest and fastest rank, where only these are known: computing, and loading data.
    pub extremes: [Vec<Extremes>; 2],
}

impl RankRecording {
    /// The time of every step: that of the rank that takes longest.
    pub fn steps(&self) -> Vec<Seconds> {
        let count = self.ranks.first().map_or(0, |rank| rank.steps.len());
        let longest = |place: usize| self.ranks.iter().map(|rank| rank.steps[place].time).fold(0.0, f64::max);
        (0..count).map(|place| Seconds::new(longest(place))).collect()
    }
}

/// What is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowKind {
    /// One rank computes longer than the others.
    Rank,
    /// All ranks of a machine do.
    Machine,
    /// All ranks of a stage of the pipeline do.
    Stage,
    /// Transfers of some ranks take longer than those of others.
    Link,
    /// Ranks get different amounts of work in a step.
    Documents,
    /// Ranks wait for data.
    DataLoading,
    /// The host of a rank asks its device for work later than other hosts do.
    Host,
    /// Some steps stand still: garbage is collected, or something else runs.
    Pauses,
}

/// A cause of slowness.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SlowCause {
    /// What is slow.
    pub kind: SlowKind,
    /// Which one: "rank 5", "machine node-3", "rank 3, every 50 steps".
    pub name: String,
    /// Its time against that of the others.
    pub factor: f64,
    /// What it costs in a step, on average.
    #[serde(rename = "cost_s", with = "InBaseUnits")]
    pub cost: Seconds,
    /// The share of the time that is gained without it.
    pub gain: f64,
}

/// How the times of steps are distributed.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct StepDistribution {
    /// The median.
    #[serde(rename = "median_s", with = "InBaseUnits")]
    pub median: Seconds,
    /// Standard deviation of the logarithm, by the quartiles.
    pub spread: f64,
    /// Times that 95 %, 99 % and all of the steps do not exceed.
    #[serde(rename = "tails_s")]
    #[serde_as(as = "[InBaseUnits; 3]")]
    pub tails: [Seconds; 3],
    /// By how much the last third of the steps takes longer than the first, as a share; none if that may be chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
}

/// Who is slow.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Slowness {
    /// Ranks that were recorded.
    pub ranks: usize,
    /// Causes, that with the largest gain first.
    pub causes: Vec<SlowCause>,
}
