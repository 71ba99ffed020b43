//! The equations and algorithms of Zeng et al. 2023, "Modeling the Training Iteration Time for Heterogeneous
//! Distributed Deep Learning Systems" (doi 10.1155/2023/2663115), as corrected by the errata: counts are per
//! iteration, T_push and T_pull are per worker (the text calls them totals), and the n pulls of both algorithms are
//! outside their loops.

use crate::queue::{self, Arrival};
use stepcast_core::quantity::{Flops, FlopsPerSec, Hertz, Seconds};

/// Operation counts of a model in Zeng's convention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operations {
    /// Forward pass of one sample (eq. 21).
    pub forward: Flops,
    /// Backward pass of one iteration (eqs. 22-24): operations per weight times weights. It does not grow with the
    /// batch, and biases are not counted; otherwise Table 1 cannot be reproduced.
    pub backward: Flops,
}

impl Operations {
    /// Counts the backward pass as `flops_per_weight` × `weights`.
    pub fn new(forward: Flops, weights: u64, flops_per_weight: f64) -> Self {
        Self { forward, backward: Flops::new(weights as f64 * flops_per_weight) }
    }

    /// Eq. 27: total operations of one iteration.
    pub fn iteration(&self, batch: u32) -> Flops {
        self.forward * f64::from(batch) + self.backward
    }

    /// Line 3 of Algorithm 2: operations until the first of `pushes` segments can be sent.
    pub fn until_first_push(&self, batch: u32, pushes: u32) -> Flops {
        self.forward * f64::from(batch) + self.backward / f64::from(pushes)
    }
}

/// The rate in eq. 28: one core at `clock` with `simd` operations per cycle.
pub fn cpu_rate(clock: Hertz, simd: f64) -> FlopsPerSec {
    clock.at(simd)
}

/// The rate in eq. 33: `processors` at `clock` with `fc` operations per cycle each.
pub fn gpu_rate(clock: Hertz, processors: u32, fc: f64) -> FlopsPerSec {
    clock.at(f64::from(processors) * fc)
}

/// Transfer times of one worker: eqs. 30 and 31.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfers {
    /// T_push.
    pub push: Seconds,
    /// T_pull.
    pub pull: Seconds,
}

/// Eq. 29: iteration time of `workers` of equal speed.
pub fn equal_workers(compute: Seconds, transfers: Transfers, workers: u32) -> Seconds {
    compute + transfers.push * f64::from(workers) + transfers.pull * f64::from(workers)
}

/// Algorithms 1 and 2: iteration time of workers of unequal speed with one server. `ready` lists, in any order, each
/// worker's computing time before its push.
pub fn unequal_workers(ready: &[Seconds], transfers: Transfers) -> Seconds {
    let mut arrivals: Vec<Arrival> = ready.iter().map(|&ready| arrival(ready, transfers)).collect();
    queue::sort(&mut arrivals);
    queue::drain(&arrivals).end + transfers.pull * ready.len() as f64
}

fn arrival(ready: Seconds, transfers: Transfers) -> Arrival {
    Arrival { ready, service: transfers.push, count: 1, owner: 0 }
}
