//! A step on two lanes: the host issues kernels in order, the device runs them in order. A kernel starts when it has
//! been issued and the one before has ended: end = max(end, issued) + time.

use super::launch::{LaunchCosts, Launches};
use crate::quantity::Seconds;

/// Time that the host takes to call the optimiser: a guess chosen by hand on the H200 steps in `validation/steps`.
const UPDATE_CALL: Seconds = Seconds::new(40e-6);

/// A step whose launches are counted and whose device times are known, but for a factor for each phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    /// Forward in order, then backward in order; how many of them are forward.
    pub(super) work: Vec<(Launches, Seconds)>,
    pub(super) forward: usize,
    pub(super) update: Seconds,
}

/// Times of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTimes {
    /// From the first launch to the end of the forward pass.
    pub forward: Seconds,
    /// From there to the last gradient.
    pub backward: Seconds,
    /// The whole step, with the optimiser.
    pub iteration: Seconds,
}

impl Lanes {
    /// When each layer's work ends, forward and then backward.
    pub(super) fn ends(&self, costs: &LaunchCosts, factors: [f64; 2]) -> Vec<Seconds> {
        let (mut issued, mut end) = (Seconds::ZERO, Seconds::ZERO);
        let ends = self.work.iter().enumerate().map(|(place, (launches, device))| {
            issued += costs.time(launches);
            end = end.max(issued) + *device * factors[usize::from(place >= self.forward)];
            end
        });
        ends.collect()
    }

    /// The times where the device takes `factors` as long, forward and backward.
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
