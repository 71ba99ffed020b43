//! Slow ranks: recordings of several ranks, with causes of slowness, the time that each costs, and the gain by its removal.
//!
//! Ranks wait for each other, so all have the same step time. They differ in their own work: the step without communication,
//! loading of data and pauses. A step takes as long as the longest own work and the communication after it.

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
    /// Time from one step to the next.
    pub time: f64,
    /// Time in collectives, including waits for others; none if unknown.
    pub communication: Option<f64>,
    /// Time waiting for data.
    pub data: f64,
    /// Time of garbage collection.
    pub pause: f64,
    /// Time that the device idles because its host issues no work; 0 if unknown.
    pub silent: f64,
    /// Tokens, or another measure of the rank's amount of work.
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

/// Transfers within one group of ranks: sends between neighbours of a pipeline, or a collective.
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
    /// Longest time, and its rank.
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
    /// The time of every step, on the slowest rank.
    pub fn steps(&self) -> Vec<Seconds> {
        let count = self.ranks.first().map_or(0, |rank| rank.steps.len());
        let longest = |place: usize| self.ranks.iter().map(|rank| rank.steps[place].time).fold(0.0, f64::max);
        (0..count).map(|place| Seconds::new(longest(place))).collect()
    }
}

/// Kind of slowness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowKind {
    /// One rank computes longer than the others.
    Rank,
    /// All ranks of a machine compute longer than others.
    Machine,
    /// All ranks of a pipeline stage compute longer than others.
    Stage,
    /// Transfers of some ranks take longer than transfers of others.
    Link,
    /// Ranks get different amounts of work in a step.
    Documents,
    /// Ranks wait for data.
    DataLoading,
    /// The host of a rank issues work later than other hosts.
    Host,
    /// Some steps pause: garbage is collected, or something else runs.
    Pauses,
}

/// A cause of slowness.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SlowCause {
    /// Kind of slowness.
    pub kind: SlowKind,
    /// Slow component: "rank 5", "machine node-3", "rank 3, every 50 steps".
    pub name: String,
    /// Its time relative to the others.
    pub factor: f64,
    /// Mean cost in a step.
    #[serde(rename = "cost_s", with = "InBaseUnits")]
    pub cost: Seconds,
    /// Share of the time gained without it.
    pub gain: f64,
}

/// Distribution of the times of steps.
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
    /// Relative increase from the first to the last third of the steps; none if that may be chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
}

/// Causes of slowness in recorded ranks.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Slowness {
    /// Ranks that were recorded.
    pub ranks: usize,
    /// Causes, the largest gain first.
    pub causes: Vec<SlowCause>,
}
