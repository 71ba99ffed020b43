//! Where the way of timing changes.
//!
//! Short products are often timed as a queue of calls, long ones call by call. The change shows as a jump of the
//! time at one number of operations. It is searched for where the measurements are explained best, and no jump is
//! believed that does not explain them clearly better.

use super::Sample;
use super::learn::{WEAK_PULL, learn, loss, start};
use super::model::{Machine, by_precision};
use crate::FitError;
use stepcast_core::quantity::Flops;

/// A jump must lower the error by at least this share.
const LEAST_GAIN: f64 = 0.02;
/// Products looked at for each precision, evenly out of all.
const ENOUGH: usize = 1500;
/// Only products so near, in doublings, tell on which side of them the boundary is.
const NEAR: f64 = 1.6;

/// The number of operations from which on calls are timed alone, if there is one.
pub(super) fn find(samples: &[Sample], multiprocessors: u32) -> Result<Option<Flops>, FitError> {
    let mut flops: Vec<f64> = samples.iter().map(|sample| sample.shape.flops().get()).collect();
    flops.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (flops.first(), flops.last()) else { return Ok(None) };
    let at = |power: f64| Machine { multiprocessors, switch: Some(Flops::new(power.exp2())) };
    let mut best =
        (total_loss(samples, &Machine { multiprocessors, switch: None })? * (1.0 - LEAST_GAIN), None);
    // Every doubling, a quarter off the powers of √2 that measured sizes like to have.
    let mut power = least.log2().ceil() - 0.25;
    while power < most.log2() {
        let loss = total_loss(samples, &at(power))?;
        if loss < best.0 {
            best = (loss, Some(power));
        }
        power += 1.0;
    }
    let Some(coarse) = best.1 else { return Ok(None) };
    let mut best = (f64::INFINITY, coarse);
    for power in [coarse - 0.5, coarse, coarse + 0.5] {
        let loss = loss_near(samples, &at(power), coarse)?;
        if loss < best.0 {
            best = (loss, power);
        }
    }
    let boundary = best.1.exp2();
    let above = flops.partition_point(|value| *value < boundary);
    let low = if above > 0 { flops[above - 1] } else { boundary };
    Ok(Some(Flops::new(roundest(low, flops.get(above).copied().unwrap_or(boundary)))))
}

/// The loss over all precisions, each fitted by itself to some of its products.
pub(super) fn total_loss(samples: &[Sample], machine: &Machine) -> Result<f64, FitError> {
    let mut total = 0.0;
    for all in by_precision(samples).values() {
        let some: Vec<Sample> = all.iter().step_by(all.len().div_ceil(ENOUGH)).copied().collect();
        total += learn(&some, machine, &start(&some, machine), WEAK_PULL)?.loss * all.len() as f64;
    }
    Ok(total)
}

/// The loss of the products around 2^`power` operations, each precision fitted to all of its products.
fn loss_near(samples: &[Sample], machine: &Machine, power: f64) -> Result<f64, FitError> {
    let mut total = 0.0;
    for all in by_precision(samples).values() {
        let costs = learn(all, machine, &start(all, machine), WEAK_PULL)?.costs;
        let is_near = |sample: &&Sample| (sample.shape.flops().get().log2() - power).abs() < NEAR;
        let near: Vec<Sample> = all.iter().filter(is_near).copied().collect();
        total += loss(&near, machine, &costs) * near.len() as f64;
    }
    Ok(total)
}

/// The number above `low` and not above `high` with the fewest significant digits: such a limit was chosen by a person.
fn roundest(low: f64, high: f64) -> f64 {
    let mut unit = 10f64.powf(high.log10().floor());
    for _ in 0..3 {
        let rounded = (high / unit).floor() * unit;
        if rounded > low {
            return rounded;
        }
        unit /= 10.0;
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_round_numbers() {
        for (low, high, expected) in
            [(7.8e8, 1.06e9, 1e9), (5.4e8, 9.9e8, 9e8), (1.2e6, 1.3e6, 1.3e6), (1.21e6, 1.28e6, 1.28e6)]
        {
            assert!((roundest(low, high) / expected - 1.0).abs() < 1e-9, "{low} {high}");
        }
    }
}
