//! How far a step of one GPU that is predicted from priors may be off (docs/priors.md, intervals).

use super::{Domain, Priors};
use crate::quantity::{FlopsPerSec, Seconds};

/// Step of the finite differences: shift of the logarithm of a group's constants, to either side.
const SHIFT: f64 = 0.02;
/// Standard deviation of the logarithm that remains whatever is known.
const FLOOR: f64 = 0.02;

/// Spread of the logarithm of a step of one GPU, by cause: standard deviations of independent causes.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// What each group of constants causes: its index in [`Priors::groups`] and the standard deviation.
    pub groups: Vec<(usize, f64)>,
    /// What no constant explains: software, the network on this device, runs.
    pub residual: f64,
    /// What lies beyond the range of the runs behind the constants adds.
    pub extrapolation: f64,
}

impl Spread {
    /// Standard deviation of all causes together.
    pub fn total(&self) -> f64 {
        let groups = self.groups.iter().map(|(_, own)| own.powi(2)).sum::<f64>();
        (groups + self.residual.powi(2) + self.extrapolation.powi(2)).sqrt()
    }
}

impl Priors {
    /// The spread of a step of one GPU, where `step` predicts it by given priors. `real` tells whether an input
    /// pipeline feeds it with real data.
    pub fn one_gpu_spread(&self, step: impl Fn(&Self) -> Seconds, real: bool) -> Spread {
        let groups = self.groups.iter().enumerate().filter(|(_, group)| group.domain == Domain::OneGpu);
        let groups = groups.map(|(index, group)| {
            let [up, down] = [SHIFT, -SHIFT].map(|shift| step(&self.moved(index, shift)));
            (index, group.spread * ((up / down).ln() / (2.0 * SHIFT)).abs())
        });
        let own = self.residual.one_gpu;
        let input = if real { own.input } else { 0.0 };
        let residual = [own.row, own.software, input, FLOOR].iter().map(|sd| sd.powi(2)).sum::<f64>();
        Spread { groups: groups.collect(), residual: residual.sqrt(), extrapolation: 0.0 }
    }

    /// What a batch and a device beyond the range of the runs add to the spread: so much for each doubling.
    pub fn one_gpu_extrapolation(&self, batch: u32, fp32: FlopsPerSec) -> f64 {
        let range = &self.range.one_gpu;
        let beyond = |value: f64, [least, most]: [f64; 2]| (value / most).max(least / value).max(1.0).log2();
        let batch = beyond(f64::from(batch), range.batch);
        range.per_doubling * batch.hypot(beyond(fp32.get() / 1e12, range.fp32_tflops))
    }
}
