//! The file: measured collectives, profiles of layers and measured jobs, one JSON object a line.

use crate::records::lines;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::collectives::{Collective, Curves};
use stepcast_core::fitted::transfer::Measured;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_stats::{mean, quantile};

/// The machines of a job: rate of their links, and their number, which decides how many cores each has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Place {
    pub(super) rate: String,
    pub(super) world: u64,
}

/// One layer of a profile, in seconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Layer {
    pub(super) fwd: f64,
    pub(super) bwd: f64,
    pub(super) opt: f64,
    #[serde(default)]
    pub(super) bwd_input: f64,
    #[serde(default)]
    pub(super) bwd_weight: f64,
}

/// Layers computed without communication: embedding, three blocks, output layer with the loss.
#[derive(Debug, Deserialize)]
pub(super) struct Profile {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) model: String,
    pub(super) b: u64,
    pub(super) t: u64,
    #[serde(default)]
    pub(super) sp: bool,
    /// 1 alone, else all ranks at once.
    pub(super) ranks: u64,
    pub(super) layers: Vec<Layer>,
    pub(super) split_layers: Option<Vec<Layer>>,
    /// Of all ranks, if they computed at once.
    #[serde(default)]
    pub(super) total_by_rank: Vec<f64>,
    #[serde(default)]
    noisy: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) model: String,
    pub(super) b: u64,
    pub(super) iter: Vec<f64>,
    /// By rank.
    pub(super) parts: Vec<Vec<f64>>,
    pub(super) grad_bytes: Vec<f64>,
    #[serde(default)]
    pub(super) noisy: bool,
}

impl Job {
    /// The median iteration.
    pub(super) fn measured(&self) -> f64 {
        median(&self.iter)
    }
}

/// An operation of a recorded iteration: rank, stage, kind, micro-batch, start, end.
#[derive(Debug, Deserialize)]
pub(super) struct Span(
    pub(super) u32,
    pub(super) u32,
    pub(super) String,
    pub(super) u32,
    pub(super) f64,
    pub(super) f64,
);

#[derive(Debug, Deserialize)]
pub(super) struct PipelineJob {
    #[serde(flatten)]
    pub(super) job: Job,
    pub(super) schedule: String,
    pub(super) p: u32,
    pub(super) v: u32,
    pub(super) m: u32,
    pub(super) dp: u64,
    /// Blocks of every virtual stage.
    pub(super) split: Vec<u32>,
    pub(super) act_bytes: f64,
    /// Median seconds by stage and kind: "0F".
    pub(super) ops: BTreeMap<String, f64>,
    pub(super) timeline: Vec<Span>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TensorJob {
    #[serde(flatten)]
    pub(super) job: Job,
    pub(super) t: u64,
    pub(super) dp: u64,
    #[serde(rename = "L")]
    pub(super) layers: u64,
    pub(super) sp: bool,
    pub(super) overlap: bool,
    pub(super) norm_bytes: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShardedJob {
    #[serde(flatten)]
    pub(super) job: Job,
    #[serde(rename = "N")]
    pub(super) ranks: u64,
    #[serde(rename = "L")]
    pub(super) layers: usize,
    #[serde(rename = "impl")]
    pub(super) implementation: String,
    pub(super) stage: u32,
    pub(super) overlap: bool,
}

/// A measured collective, or a message between two ranks.
#[derive(Debug, Deserialize)]
struct Timed {
    #[serde(flatten)]
    place: Place,
    #[serde(rename = "N")]
    ranks: Option<u64>,
    bytes: u64,
    #[serde(alias = "half_round_trip")]
    s: Vec<f64>,
    #[serde(default)]
    noisy: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    P2p(Timed),
    AllReduce(Timed),
    AllGather(Timed),
    ReduceScatter(Timed),
    Profile(Profile),
    Pp(PipelineJob),
    Tp(TensorJob),
    Zero(ShardedJob),
}

/// The contents of the file; rows that other load disturbed are left out.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) curves: BTreeMap<Place, Curves>,
    pub(super) profiles: Vec<Profile>,
    pub(super) pipelines: Vec<PipelineJob>,
    pub(super) tensors: Vec<TensorJob>,
    pub(super) sharded: Vec<ShardedJob>,
}

impl Data {
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let mut data = Self::default();
        let mut timed: BTreeMap<(Place, usize, u64), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
        for line in lines(path, |_: &Line| Ok(()))? {
            let (collective, row) = match line {
                Line::P2p(row) => (0, row),
                Line::AllReduce(row) => (1, row),
                Line::AllGather(row) => (2, row),
                Line::ReduceScatter(row) => (3, row),
                Line::Profile(row) => {
                    data.profiles.extend((!row.noisy).then_some(row));
                    continue;
                }
                Line::Pp(row) => {
                    data.pipelines.extend((!row.job.noisy).then_some(row));
                    continue;
                }
                Line::Tp(row) => {
                    data.tensors.extend((!row.job.noisy).then_some(row));
                    continue;
                }
                Line::Zero(row) => {
                    data.sharded.extend((!row.job.noisy).then_some(row));
                    continue;
                }
            };
            if !row.noisy {
                let key = (row.place, collective, row.ranks.unwrap_or(2));
                timed.entry(key).or_default().entry(row.bytes).or_default().push(median(&row.s));
            }
        }
        for ((place, collective, ranks), sizes) in timed {
            let point =
                |(&size, times): (&u64, &Vec<f64>)| (Bytes::new(size as f64), Seconds::new(mean(times)));
            let points: Vec<_> = sizes.iter().map(point).collect();
            let remedy = "use a file in the format of validation/parallel-jobs";
            let curve = Measured::new(&points)
                .map_err(|error| Fault::in_file(path.display().to_string(), error.to_string(), remedy))?;
            const COLLECTIVES: [Collective; 4] =
                [Collective::Send, Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter];
            data.curves.entry(place).or_default().add(COLLECTIVES[collective], ranks, curve);
        }
        Ok(data)
    }

    /// Time of a collective at a place, while `active` ranks communicate.
    pub(super) fn time(
        &self,
        place: &Place,
        collective: Collective,
        ranks: u64,
        bytes: f64,
        active: u64,
    ) -> Result<Seconds, Fault> {
        let curves = self.curves.get(place);
        let time = curves.and_then(|curves| curves.time(collective, ranks, Bytes::new(bytes), active));
        time.ok_or_else(|| {
            let reason = format!("no {collective:?} over {ranks} ranks was measured at {}", place.rate);
            Fault::new(reason, "measure it, or leave the job out")
        })
    }
}

pub(super) fn median(values: &[f64]) -> f64 {
    quantile(&mut values.to_vec(), 0.5)
}
