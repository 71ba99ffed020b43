//! How far a step that is predicted from priors may be off (docs/priors.md, intervals).

use super::{Domain, Priors, Residual};
use crate::quantity::{FlopsPerSec, Seconds};

/// Half of the distance of the two predictions of a central difference: shift of the logarithm of constants.
pub const SHIFT: f64 = 0.02;
/// Repeats of one run differ by this: standard deviation of the logarithm.
pub const REPEATS: f64 = 0.02;

impl Residual {
    /// What no constant explains of a step of one GPU: standard deviation of the logarithm. `real` tells whether an input
    /// pipeline feeds it with real data.
    pub fn of_one_gpu(&self, real: bool) -> f64 {
        let input = if real { self.input } else { 0.0 };
        self.row.hypot(self.software).hypot(input)
    }
}

impl Priors {
    /// The spread of a step of one GPU within the range of published runs, where `step` predicts it by given priors:
    /// standard deviation of the logarithm. `real` is that of [`Residual::of_one_gpu`].
    pub fn one_gpu_spread(&self, step: impl Fn(&Self) -> Seconds, real: bool) -> f64 {
        let groups = self.groups.iter().enumerate();
        let slopes: Vec<f64> = groups
            .map(|(index, group)| match group.domain {
                Domain::OneGpu => {
                    let [up, down] = [SHIFT, -SHIFT].map(|shift| step(&self.moved(index, shift)));
                    (up / down).ln() / (2.0 * SHIFT)
                }
                Domain::AllReduce | Domain::Servers | Domain::Transformer => 0.0,
            })
            .collect();
        self.variance(&slopes).sqrt().hypot(self.residual.one_gpu.of_one_gpu(real)).hypot(REPEATS)
    }

    /// What a batch and a device beyond the range of the runs add to the spread: so much for each doubling.
    pub fn one_gpu_extrapolation(&self, batch: u32, fp32: FlopsPerSec) -> f64 {
        let range = &self.range.one_gpu;
        let batch = doublings_outside(f64::from(batch), range.batch);
        range.per_doubling * batch.hypot(doublings_outside(fp32.get() / 1e12, range.fp32_tflops))
    }
}

/// Doublings by which `value` lies outside a range.
pub fn doublings_outside(value: f64, [least, most]: [f64; 2]) -> f64 {
    (value / most).max(least / value).max(1.0).log2()
}
