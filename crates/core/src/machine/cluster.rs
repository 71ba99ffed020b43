//! On what a model is trained: groups of workers, servers, and the network between them.

use crate::machine::{Device, Network};
use crate::quantity::BitsPerSec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workers that are all alike.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerGroup {
    /// How many there are.
    pub count: u32,
    /// What they compute with.
    pub device: Device,
    /// Samples per worker and step; otherwise the strategy's batch.
    pub batch: Option<u32>,
    /// Share of the device's rate that they reach; otherwise what the method takes for the device.
    pub efficiency: Option<f64>,
    /// Computing speed against what the device, or the profile, says.
    pub speed: f64,
    /// Rate of their network port where it differs from the network's.
    pub bandwidth: Option<BitsPerSec>,
    /// What one of them costs for one hour, where that differs from the price of every worker.
    pub price: Option<f64>,
}

/// How parameters are spread over servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Layer by layer, in forward order, to the server that holds least (TensorFlow's greedy
    /// strategy, Li 2020, section 5).
    #[default]
    Greedy,
    /// Every tensor cut into equal slices.
    Even,
}

/// The parameter servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Servers {
    /// How many there are.
    pub count: u32,
    /// What each of them holds.
    pub placement: Placement,
    /// Rate of their network port where it differs from the network's.
    pub bandwidth: Option<BitsPerSec>,
}

/// Machines with several workers each.
#[derive(Debug, Clone, PartialEq)]
pub struct Nodes {
    /// Workers of one machine.
    pub workers: u32,
    /// What joins them.
    pub network: Network,
}

/// Machines and the network between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The workers; groups may differ.
    pub groups: Vec<WorkerGroup>,
    /// The network that joins all machines.
    pub network: Network,
    /// The parameter servers, where the architecture has them.
    pub servers: Servers,
    /// Machines with several workers each, where that matters.
    pub nodes: Option<Nodes>,
}

impl Cluster {
    /// Workers that share a machine.
    pub fn workers_per_node(&self) -> u32 {
        self.nodes.as_ref().map_or(1, |nodes| nodes.workers)
    }

    /// Number of workers.
    pub fn workers(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }

    /// The same kinds of workers in the same proportions, `workers` in all: whole shares first, then
    /// one more to the groups with the largest remainders, the earlier of equals first.
    #[must_use]
    pub fn resized(&self, workers: u32) -> Self {
        let total = self.workers() as f64;
        let share = |group: &WorkerGroup| f64::from(group.count) / total * f64::from(workers);
        let mut counts: Vec<u32> = self.groups.iter().map(|group| share(group).floor() as u32).collect();
        let missing = workers - counts.iter().sum::<u32>().min(workers);
        let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
        by_remainder
            .sort_by(|&a, &b| share(&self.groups[b]).fract().total_cmp(&share(&self.groups[a]).fract()));
        for &index in by_remainder.iter().take(missing as usize) {
            counts[index] += 1;
        }
        let groups = self.groups.iter().zip(counts).filter(|(_, count)| *count > 0);
        let groups = groups.map(|(group, count)| WorkerGroup { count, ..group.clone() }).collect();
        Self { groups, ..self.clone() }
    }
}
