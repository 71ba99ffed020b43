//! How the calls of a recording were timed.
//!
//! Benchmarks time short products as queues of calls and long ones call by call. A usual way is to give every product
//! the same number of operations, `budget`: a queue has budget/flops calls, at least one and at most 20.
//! The first call of a queue hides nothing behind others, so that times rise towards `budget`. The budget is a round
//! number that a person chose: the one that explains the measurements best is taken, none unless it explains them
//! clearly better than endless queues.

use super::learn::{WEAK_PULL, learn, start, timed};
use super::products::{MeasuredProduct, families};
use crate::FitError;
use stepcast_core::fitted::gemm::Machine;
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::Flops;

/// A budget must lower the error by at least this share (a guess).
const LEAST_GAIN: f64 = 0.02;
/// Products looked at for each family of kernels, evenly out of all.
const ENOUGH: usize = 1000;
/// First digits of a round number.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// The budget that explains the measurements best.
pub(super) fn find(
    samples: &[MeasuredProduct],
    multiprocessors: u32,
    wanted: &CancelCheck<'_>,
) -> Result<Option<Flops>, FitError> {
    let flops = || samples.iter().map(|sample| sample.shape.flops().get());
    let (Some(least), Some(most)) = (flops().reduce(f64::min), flops().reduce(f64::max)) else {
        return Ok(None);
    };
    let loss = |budget| total_loss(samples, &Machine { multiprocessors, budget }, wanted);
    let mut best = (loss(None)? * (1.0 - LEAST_GAIN), None);
    for decade in least.log10().floor() as i32..=most.log10().floor() as i32 {
        for budget in ROUND.map(|digit| digit * 10f64.powi(decade)) {
            if budget <= least || budget >= most {
                continue;
            }
            let found = loss(Some(Flops::new(budget)))?;
            if found < best.0 {
                best = (found, Some(Flops::new(budget)));
            }
        }
    }
    Ok(best.1)
}

/// The loss over all families of kernels, each fitted by itself to some of its products.
pub(super) fn total_loss(
    samples: &[MeasuredProduct],
    machine: &Machine,
    wanted: &CancelCheck<'_>,
) -> Result<f64, FitError> {
    let mut total = 0.0;
    for all in families(samples).values() {
        let some: Vec<MeasuredProduct> = all.iter().step_by(all.len().div_ceil(ENOUGH)).copied().collect();
        let learned = learn(&timed(&some, machine), &start(&some, machine), WEAK_PULL, wanted)?;
        total += learned.loss * all.len() as f64;
    }
    Ok(total)
}
