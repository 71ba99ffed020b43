//! Bounded staleness: fast workers run ahead of the slowest until they are as far ahead as they may be.
//!
//! In the long run all workers do as many steps as the slowest, whatever the bound. How long it takes until then grows
//! with the bound and is of no interest, so that workers that keep gaining on the slowest are put ahead at once.

use super::measure::{Measurement, Recorder};
use stepcast_sim::{Coordination, Program, StepRecord};
use stepcast_stats::deviation;

/// Standard deviations of the lead of equal workers that are not taken for a difference in speed.
const CHANCE: f64 = 4.0;

/// Puts workers ahead that keep gaining on the slowest; whether there were any. Their runs count from now on.
pub(super) fn settle<O: Recorder>(program: &Program, runs: &mut [Measurement<'_, O>]) -> bool {
    let Coordination::Bounded(bound @ 1..) = program.coordination else { return false };
    let mut any = false;
    for measurement in runs {
        let gaining = gaining(program, measurement.run.steps(), measurement.run.observer().records());
        let steps = measurement.run.steps().to_vec();
        let slowest = steps.iter().copied().min().unwrap_or(0);
        for (worker, &done) in (0..).zip(&steps) {
            let ahead = (slowest + u64::from(bound)).saturating_sub(done);
            if ahead > 0 && gaining[program.kind[worker as usize]] {
                measurement.run.put_ahead(worker, ahead);
                measurement.since = measurement.run.time();
                any = true;
            }
        }
    }
    any
}

/// By kind of worker: whether it is faster than the slowest kind by more than chance.
fn gaining(program: &Program, steps: &[u64], records: &[StepRecord]) -> Vec<bool> {
    let kinds = program.steps.len();
    let mut done = vec![(0.0, 0.0); kinds];
    for (&kind, &steps) in program.kind.iter().zip(steps) {
        done[kind].0 += steps as f64;
        done[kind].1 += 1.0;
    }
    let mean = |(steps, workers): &(f64, f64)| if *workers > 0.0 { steps / workers } else { f64::INFINITY };
    let slowest = done.iter().map(mean).fold(f64::INFINITY, f64::min);
    let noise = |kind: usize| {
        let own = records.iter().filter(|record| program.kind[record.worker as usize] == kind);
        let lengths: Vec<f64> = own.map(|record| record.until - record.since).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        deviation(&lengths).map_or(0.0, |spread| spread / mean)
            * (2.0 * slowest / done[kind].1.max(1.0)).sqrt()
    };
    (0..kinds).map(|kind| mean(&done[kind]) - slowest > 1.0 + CHANCE * noise(kind)).collect()
}
