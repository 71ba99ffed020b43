//! In which order operations that wait for the same lane are served.

use crate::engine::sample::Sampler;
use crate::graph::StepGraph;
use stepcast_core::profile::{Profile, Resource};

/// In which order parameters come down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferOrder {
    /// As recorded, step by step.
    #[default]
    Recorded,
    /// Parameters first that computing needs first, by the number of operations before their first use (TIC).
    FewestBefore,
    /// The same by the time of those operations (TAC).
    EarliestNeeded,
    /// The reverse of the recorded order.
    Reverse,
    /// A random one for every recorded step, by this seed.
    Random(u64),
}

impl TransferOrder {
    /// By operation, for the recorded step at `index`: its place among operations that wait for the same lane. Computing
    /// goes in the order of the recording; transfers in the order in which they arrived, which is the order in which they
    /// were sent, or as prescribed.
    pub(super) fn ranks(self, profile: &Profile, graph: &StepGraph, index: usize) -> Vec<u32> {
        let step = &profile.steps[index];
        let count = profile.operations.len();
        let needed = match self {
            Self::Recorded | Self::Reverse => None,
            Self::Random(seed) => {
                let mut sampler = Sampler::new(seed.wrapping_add(index as u64), 1);
                Some((0..count).map(|_| sampler.uniform(0)).collect())
            }
            Self::FewestBefore => Some(needed(profile, |_| 1.0)),
            Self::EarliestNeeded => Some(needed(profile, |op| step.duration(op).get())),
        };
        let key = |op: usize| match (profile.operations[op].resource, &needed, self) {
            (Resource::Downlink, Some(needed), _) => needed[op],
            (Resource::Downlink, None, Self::Reverse) => -step.end[op],
            (Resource::Downlink | Resource::Uplink, _, _) => step.end[op],
            _ => step.start[op],
        };
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        let mut rank = vec![count as u32; graph.len()];
        for (position, op) in order.into_iter().enumerate() {
            rank[op] = position as u32;
        }
        rank
    }
}

/// By operation: the least cost of computing that must precede an operation that waits for it.
fn needed(profile: &Profile, cost: impl Fn(usize) -> f64) -> Vec<f64> {
    let count = profile.operations.len();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waiting: Vec<usize> = Vec::with_capacity(count);
    for (index, operation) in profile.operations.iter().enumerate() {
        waiting.push(operation.after.len());
        for &before in &operation.after {
            followers[before as usize].push(index);
        }
    }
    // Cost of all computing on the longest way to each operation.
    let mut before = vec![0.0f64; count];
    let mut ready: Vec<usize> = (0..count).filter(|&op| waiting[op] == 0).collect();
    while let Some(op) = ready.pop() {
        let own = if profile.operations[op].resource == Resource::Worker { cost(op) } else { 0.0 };
        for &next in &followers[op] {
            before[next] = before[next].max(before[op] + own);
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    let first_use = |op: usize| followers[op].iter().map(|&next| before[next]).fold(f64::INFINITY, f64::min);
    (0..count).map(first_use).collect()
}
