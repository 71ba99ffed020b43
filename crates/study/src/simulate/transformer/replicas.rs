//! Which devices every stage of every replica has, and which replicas are alike.
//!
//! Ranks are numbered tensor fastest, then context, data and pipeline; worker groups fill them in the order in which they
//! are listed.

use std::collections::BTreeMap;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::scenario::Scenario;

/// Neighbouring worker groups: the first and the last.
pub(super) type Span = (usize, usize);

/// The devices of all replicas.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Replicas {
    /// By kind of replica: its devices, by stage.
    pub(super) kinds: Vec<Vec<Span>>,
    /// By kind: how many replicas there are of it.
    pub(super) count: Vec<u64>,
    /// By stage: the devices of all replicas.
    pub(super) together: Vec<Span>,
}

impl Replicas {
    /// The replicas of `groups`, `ranks` of which compute a stage of one of `data` replicas.
    pub(super) fn new(groups: &[WorkerGroup], stages: u64, data: u64, ranks: u64) -> Self {
        let mut ends = Vec::with_capacity(groups.len());
        for group in groups {
            ends.push(ends.last().copied().unwrap_or(0) + u64::from(group.count));
        }
        let group_of = |rank: u64| ends.partition_point(|end| *end <= rank).min(groups.len().max(1) - 1);
        let span = |first: u64, count: u64| (group_of(first), group_of(first + count - 1));
        let mut kinds: BTreeMap<Vec<Span>, u64> = BTreeMap::new();
        let replicas = if groups.len() > 1 { data } else { 1 };
        for replica in 0..replicas {
            let devices = (0..stages).map(|stage| span((stage * data + replica) * ranks, ranks)).collect();
            *kinds.entry(devices).or_default() += data / replicas;
        }
        let (kinds, count) = kinds.into_iter().unzip();
        let together = (0..stages).map(|stage| span(stage * data * ranks, data * ranks)).collect();
        Self { kinds, count, together }
    }
}

/// The scenario with the devices of `span` alone, as many in all.
pub(super) fn on(scenario: &Scenario, (first, last): Span) -> Scenario {
    let mut part = scenario.clone();
    part.cluster.groups = scenario.cluster.groups[first..=last].to_vec();
    let missing = scenario.cluster.workers() - part.cluster.workers();
    if let Some(group) = part.cluster.groups.first_mut() {
        group.count += u32::try_from(missing).unwrap_or(u32::MAX - group.count);
    }
    part
}
