//! A step as a two-stage pipeline: the host launches kernels in order, and the device runs them in order. A kernel
//! starts once it has been launched and the previous one has ended: end = max(end, issued) + time.

use crate::quantity::Seconds;
use serde::{Deserialize, Serialize};

/// Host time to call the optimiser: a guess tuned by hand on the H200 steps in `validation/steps`.
const UPDATE_CALL: Seconds = Seconds::new(40e-6);

/// The launches and device times of a step; the device times are still to be scaled by one factor per phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    /// Layers in forward order, then in backward order; the first `forward` entries are the forward pass.
    pub(super) work: Vec<(Launches, Seconds)>,
    pub(super) forward: usize,
    pub(super) update: Seconds,
}

/// Times of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTimes {
    /// From the first launch to the end of the forward pass.
    pub forward: Seconds,
    /// From the end of the forward pass to the last gradient.
    pub backward: Seconds,
    /// The whole step, including the optimiser.
    pub iteration: Seconds,
}

impl Lanes {
    /// When the work of each layer ends, first forward and then backward.
    pub fn ends(&self, costs: &LaunchCosts, factors: [f64; 2]) -> Vec<Seconds> {
        let (mut issued, mut end) = (Seconds::ZERO, Seconds::ZERO);
        let ends = self.work.iter().enumerate().map(|(place, (launches, device))| {
            issued += costs.time(launches);
            end = end.max(issued) + *device * factors[usize::from(place >= self.forward)];
            end
        });
        ends.collect()
    }

    /// The times of the step if device times are scaled by `factors`, forward and backward.
    pub fn times(&self, costs: &LaunchCosts, factors: [f64; 2]) -> StepTimes {
        let host = |work: &[(Launches, Seconds)]| work.iter().map(|(launches, _)| costs.time(launches)).sum();
        let ends = self.ends(costs, factors);
        let end_of = |count: usize| count.checked_sub(1).map_or(Seconds::ZERO, |last| ends[last]);
        let (forward, end) = (end_of(self.forward), end_of(ends.len()));
        let [first, second]: [Seconds; 2] =
            [host(&self.work[..self.forward]), host(&self.work[self.forward..])];
        StepTimes {
            forward,
            backward: (end - forward).max(second),
            iteration: end.max(first + second + UPDATE_CALL) + self.update,
        }
    }
}

/// Numbers of host operations that a layer causes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Launches {
    pub forward: f64,
    pub backward: f64,
    /// Parameter gradients passed on by the framework.
    pub gradients: f64,
    pub forward_casts: f64,
    pub backward_casts: f64,
}

/// Host time of each of these operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LaunchCosts {
    /// A kernel of the forward pass, including the framework's overhead.
    pub forward: Seconds,
    pub backward: Seconds,
    /// A parameter gradient.
    pub gradient: Seconds,
    pub forward_cast: Seconds,
    pub backward_cast: Seconds,
}

impl LaunchCosts {
    pub fn time(&self, launches: &Launches) -> Seconds {
        self.forward * launches.forward
            + self.backward * launches.backward
            + self.gradient * launches.gradients
            + self.forward_cast * launches.forward_casts
            + self.backward_cast * launches.backward_casts
    }
}
