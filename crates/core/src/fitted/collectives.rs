//! Measured times of collectives, by kind, number of ranks and size, and the file that has them.

use super::artefact::Artefact;
use super::transfer::Measured;
use crate::fault::Fault;
use crate::files::Files;
use crate::keys::{Given, unordered};
use crate::quantity::{Bytes, Seconds};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A kind of communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collective {
    /// Sums on every rank.
    AllReduce,
    /// Every rank's part on every rank.
    AllGather,
    /// Sums, of which every rank gets a part.
    ReduceScatter,
    /// A part from every rank for every rank.
    AllToAll,
    /// From one rank to the next.
    Send,
}

/// Measured times of collectives over groups of several sizes, each group alone on its machines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curves(Vec<(Collective, u64, Measured)>);

impl Curves {
    /// Adds the times of one kind over `ranks` ranks; 2 for sends. The first of a kind and number counts.
    pub fn add(&mut self, collective: Collective, ranks: u64, times: Measured) {
        self.0.push((collective, ranks, times));
    }

    fn measured(&self, collective: Collective, ranks: u64) -> Option<&Measured> {
        let is_it = |entry: &&(Collective, u64, Measured)| entry.0 == collective && entry.1 == ranks;
        self.0.iter().find(is_it).map(|entry| &entry.2)
    }

    /// Time of a collective of `size` bytes (of the whole tensor) over `ranks` ranks, while `active` ranks of all groups
    /// together communicate; none if it was not measured.
    ///
    /// Hosts that carry several groups at once are slower. A rank then moves its bytes no faster than in one group of
    /// all active ranks, if that was measured: (n−1)/n of the tensor in a group of n.
    pub fn time(&self, collective: Collective, ranks: u64, size: Bytes, active: u64) -> Option<Seconds> {
        let ranks = if collective == Collective::Send { 2 } else { ranks };
        if ranks <= 1 {
            return Some(Seconds::ZERO);
        }
        let alone = self.measured(collective, ranks)?.time(size);
        let moved = |ranks: u64| (ranks as f64 - 1.0) / ranks as f64;
        let together = self
            .measured(collective, active)
            .filter(|_| active > ranks)
            .map(|all| all.time(size) * (moved(ranks) / moved(active)));
        Some(together.map_or(alone, |together| alone.max(together)))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCollectives {
    pub path: String,
    pub curves: Arc<Curves>,
}

unordered!(MeasuredCollectives);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    times: Vec<CollectiveTimes>,
}

/// Measured times of one kind over a number of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectiveTimes {
    pub collective: Collective,
    /// How many ranks; 2 for sends.
    pub ranks: u64,
    /// Sizes of the whole tensor, and times.
    pub measured: Vec<(Bytes, Seconds)>,
}

impl Given<MeasuredCollectives> for String {
    fn written() -> String {
        "path".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<MeasuredCollectives, Fault> {
        let wrong = |reason: String| {
            let remedy = "write entries such as `[[times]]`, `collective = \"all-reduce\"`, `ranks = 4`, \
                          `measured = [[\"1 MB\", \"9 ms\"], [\"64 MB\", \"500 ms\"]]`";
            Fault::new(format!("{self} has no measured collectives: {reason}"), remedy)
        };
        let text = files.text(&self)?;
        let times = match Artefact::from_toml(&text) {
            Ok(Artefact::Machine(machine)) if machine.times.is_empty() => {
                return Err(wrong("the machine was measured without them".to_owned()));
            }
            Ok(Artefact::Machine(machine)) => machine.times,
            _ => {
                let file: Result<File, _> = crate::text::parse(&text);
                file.map_err(|error| wrong(error.message().to_owned()))?.times
            }
        };
        let mut curves = Curves::default();
        for entry in times {
            let times = Measured::new(&entry.measured).map_err(|error| wrong(error.to_string()))?;
            curves.add(entry.collective, entry.ranks, times);
        }
        Ok(MeasuredCollectives { curves: Arc::new(curves), path: self })
    }

    fn write(collectives: &MeasuredCollectives) -> Self {
        collectives.path.clone()
    }
}
