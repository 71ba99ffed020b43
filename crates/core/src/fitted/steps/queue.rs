//! A step as a two-stage pipeline: the host launches kernels in order, and the device runs them in order. A kernel
//! starts once it has been launched and the previous one has ended: end = max(end, issued) + time.

use super::launch::{LaunchCosts, Launches};
use crate::quantity::Seconds;

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
    pub(super) fn ends(&self, costs: &LaunchCosts, factors: [f64; 2]) -> Vec<Seconds> {
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
