//! Costs of launches, and what whole phases take against the sum of their layers: descent along one coordinate at a
//! time on the mean logarithmic error of forward, backward and step.

use super::classes::CoefficientTable;
use super::prepared::PreparedStep;
use crate::FitError;
use stepcast_core::fitted::steps::{Lanes, LaunchCosts, Nominal, Phase, lanes};
use stepcast_core::method::CancelCheck;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

/// Launches in µs as profilers of PyTorch show them, and factors of 1: a phase takes as long as its layers. Guesses
/// from which the fit starts.
const START: [f64; 9] = [38.0, 35.0, 15.0, 30.0, 20.0, 1.0, 1.0, 1.0, 1.0];
/// How strongly the fit is held near these (assumed).
const PULL: f64 = 0.002;
const FIRST_STEP: f64 = 1.3;
const LAST_STEP: f64 = 1.03;
/// A gain below this is none.
const GAIN: f64 = 1e-6;

#[derive(Debug, Clone, Copy)]
pub(super) struct Host([f64; 9]);

impl Host {
    pub(super) fn costs(&self) -> LaunchCosts {
        let [forward, backward, gradient, forward_cast, backward_cast, ..] =
            self.0.map(|cost| Seconds::new(cost * 1e-6));
        LaunchCosts { forward, backward, gradient, forward_cast, backward_cast }
    }

    /// Forward and backward.
    pub(super) fn factors(&self, precision: Precision) -> [f64; 2] {
        let [.., forward, backward, half_forward, half_backward] = self.0;
        if precision == Precision::Fp32 { [forward, backward] } else { [half_forward, half_backward] }
    }

    pub(super) fn fit(
        rows: &[&PreparedStep<'_>],
        table: &CoefficientTable,
        nominal: &Nominal,
        wanted: &CancelCheck<'_>,
    ) -> Result<Self, FitError> {
        let steps: Vec<(&PreparedStep<'_>, Lanes)> =
            rows.iter().filter_map(|row| Some((*row, timed(row, table, nominal)?))).collect();
        let mut best = Self(START);
        let mut least = best.loss(&steps);
        let mut step = FIRST_STEP;
        while step > LAST_STEP {
            let mut gained = false;
            for coordinate in 0..START.len() {
                for factor in [step, step.recip()] {
                    if wanted().is_break() {
                        return Err(FitError::Cancelled);
                    }
                    let mut tried = best;
                    tried.0[coordinate] *= factor;
                    let loss = tried.loss(&steps);
                    if loss < least - GAIN {
                        (best, least, gained) = (tried, loss, true);
                    }
                }
            }
            if !gained {
                step = step.sqrt();
            }
        }
        Ok(best)
    }

    fn loss(&self, steps: &[(&PreparedStep<'_>, Lanes)]) -> f64 {
        let costs = self.costs();
        let error = |(row, lanes): &(&PreparedStep<'_>, Lanes)| {
            let times = lanes.times(&costs, self.factors(row.step.precision));
            let one = |predicted: Seconds, measured: Seconds| (predicted / measured).ln().abs();
            one(times.forward, row.step.forward)
                + one(times.backward, row.step.backward)
                + one(times.iteration, row.step.iteration)
        };
        let mean = steps.iter().map(error).sum::<f64>() / (3 * steps.len().max(1)) as f64;
        let pull: f64 = self.0.iter().zip(START).map(|(value, start)| (value / start).ln().powi(2)).sum();
        mean + PULL * pull
    }
}

fn timed(row: &PreparedStep<'_>, table: &CoefficientTable, nominal: &Nominal) -> Option<Lanes> {
    let device = |place: usize, phase: Phase| Some(Seconds::new(table.time(row, place, phase)));
    lanes(&row.ops, &row.step.model, (row.step.precision, row.step.batch), nominal, device)
}
