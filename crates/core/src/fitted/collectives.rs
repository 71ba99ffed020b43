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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn line(startup: f64, each: f64) -> Measured {
        let at = |size: f64| (Bytes::new(size), Seconds::new(startup + each * size));
        Measured::new(&[at(1.0), at(100.0)]).unwrap()
    }

    #[test]
    fn groups_that_share_hosts_are_as_slow_as_one_group_of_all() {
        let mut curves = Curves::default();
        curves.add(Collective::AllReduce, 2, line(1.0, 0.5));
        curves.add(Collective::AllReduce, 4, line(1.0, 3.0));
        let time = |active| curves.time(Collective::AllReduce, 2, Bytes::new(50.0), active).unwrap().get();
        assert!((time(2) - 26.0).abs() < 1e-9);
        assert!((time(4) - 151.0 * (0.5 / 0.75)).abs() < 1e-9);
        // Eight ranks were not measured.
        assert!((time(8) - 26.0).abs() < 1e-9);
        assert_eq!(curves.time(Collective::AllGather, 2, Bytes::new(1.0), 2), None);
        assert_eq!(curves.time(Collective::AllGather, 1, Bytes::new(1.0), 2), Some(Seconds::ZERO));
    }

    struct Text(&'static str);

    impl Files for Text {
        fn profile(&self, path: &str) -> Result<Profile, Fault> {
            Err(Fault::new(path.to_owned(), ""))
        }

        fn text(&self, _: &str) -> Result<String, Fault> {
            Ok(self.0.to_owned())
        }
    }

    #[test]
    fn files_have_one_entry_for_each_kind_and_number_of_ranks() {
        let text = "[[times]]\ncollective = \"all-gather\"\nranks = 4\nmeasured = [[\"1 MB\", \"2 ms\"], [\"3 MB\", \"4 ms\"]]\n";
        let found: MeasuredCollectives = "c.toml".to_owned().resolve(&Text(text)).unwrap();
        let time = found.curves.time(Collective::AllGather, 4, Bytes::new(2e6), 4).unwrap();
        assert!((time.get() - 3e-3).abs() < 1e-12);
        assert_eq!(String::write(&found), "c.toml");
        for text in [
            "",
            "[[times]]\ncollective = \"gossip\"\nranks = 2\nmeasured = []",
            "[[times]]\ncollective = \"send\"\nranks = 2\nmeasured = [[\"1 MB\", \"1 s\"]]",
        ] {
            let fault = <String as Given<MeasuredCollectives>>::resolve("c.toml".to_owned(), &Text(text))
                .unwrap_err();
            assert!(fault.remedy.contains("[[times]]"), "{text}: {fault}");
        }
    }
}
