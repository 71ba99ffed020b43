//! Independent runs of one question, in parallel: as long as asked for, or short ones where these tell enough.

use super::EVENTS;
use rayon::prelude::*;
use stepcast_core::scenario::Scenario;
use stepcast_sim::measure::mean_and_half_width;
use stepcast_sim::{Limits, ProgramError};

/// Operations that one prediction may simulate, all runs together; steps are cut down to it.
const BUDGET: u64 = 10_000_000;

/// Short runs have this share of the steps, and at least so many.
const SHORT: u64 = 8;
const FEWEST: u64 = 30;

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    /// Steps of the slowest worker.
    pub(super) steps: u64,
    /// Steps of every worker that do not count.
    pub(super) warm_up: u64,
}

impl Length {
    /// Until the slowest worker has done its steps.
    pub(super) fn limits(self) -> Limits {
        Limits { events: EVENTS, ..Limits::until_slowest(self.steps) }
    }

    /// Within the budget; all workers together have so many operations in a step.
    fn of(scenario: &Scenario, operations: u64) -> Self {
        let options = scenario.simulate;
        let per_step = operations * u64::from(options.runs);
        let affordable = (BUDGET / per_step.max(1)).max(20);
        let steps = u64::from(options.steps).min(affordable);
        let warm_up = (u64::from(options.warm_up) * steps).div_ceil(u64::from(options.steps));
        Self { steps, warm_up: warm_up.min(steps - 1) }
    }

    /// Shorter by far; none where nothing would be left.
    fn short(self) -> Option<Self> {
        let steps = (self.steps / SHORT).max(FEWEST);
        (2 * steps <= self.steps).then_some(Self { steps, warm_up: self.warm_up.min(steps / 3) })
    }
}

/// Throughput of one run: of all that counts, and of each half of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub(super) whole: f64,
    pub(super) halves: [f64; 2],
}

/// The figures of all runs, in the order of their seeds; all workers together have so many operations in a step.
///
/// Where the scenario asks for a precision, runs are short first. They are kept if their mean is known that well, and if
/// the second halves go on as the first ones did: workers that begin together may take long to spread out.
pub(super) fn replicas<F: Send>(
    scenario: &Scenario,
    operations: u64,
    run: impl Fn(u64, Length) -> Result<F, ProgramError> + Sync,
    rates: impl Fn(&F) -> Rates,
) -> Result<Vec<F>, ProgramError> {
    let all = |length: Length| -> Result<Vec<F>, ProgramError> {
        let seeds: Vec<u64> = (0..u64::from(scenario.simulate.runs))
            .map(|run| scenario.simulate.seed.wrapping_add(run))
            .collect();
        seeds.into_par_iter().map(|seed| run(seed, length)).collect()
    };
    let length = Length::of(scenario, operations);
    let precision = scenario.simulate.precision.unwrap_or(0.0);
    if let Some(short) = length.short().filter(|_| precision > 0.0) {
        let runs = all(short)?;
        let told: Vec<Rates> = runs.iter().map(rates).collect();
        if tell_enough(&told, precision) {
            return Ok(runs);
        }
    }
    all(length)
}

fn tell_enough(runs: &[Rates], precision: f64) -> bool {
    let whole: Vec<f64> = runs.iter().map(|rates| rates.whole).collect();
    let (mean, half_width) = mean_and_half_width(&whole);
    let drift = runs.iter().map(|rates| rates.halves[1] - rates.halves[0]).sum::<f64>() / runs.len() as f64;
    half_width <= precision * mean && drift.abs() <= precision * mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::scenario::Document;

    fn lengths(changes: &str, rate: impl Fn(u64) -> f64 + Sync) -> Vec<u64> {
        let text = format!("[model]\nzoo = \"resnet50\"\n[methods.simulate]\n{changes}");
        let scenario = Document::new("test", text).scenario(&[]).unwrap();
        let one = |seed, length: Length| Ok((rate(seed), length.steps));
        let rates =
            |&(rate, steps): &(f64, u64)| Rates { whole: rate, halves: [rate, rate + (steps as f64 / 1e4)] };
        replicas(&scenario, 1, one, rates).unwrap().into_iter().map(|(_, steps)| steps).collect()
    }

    #[test]
    fn runs_are_as_long_as_they_need_to_be() {
        assert_eq!(lengths("", |_| 1.0), [1000; 8]);
        assert_eq!(lengths("precision = 0.02", |_| 1.0), [125; 8]);
        assert_eq!(lengths("precision = 0.01", |_| 1.0), [1000; 8], "the halves differ by 1.25 %");
        assert_eq!(lengths("precision = 0.02", |seed| 1.0 + 0.1 * seed as f64), [1000; 8], "runs differ");
        assert_eq!(lengths("precision = 0.02\nsteps = 70\nwarm-up = 5", |_| 1.0), [30; 8]);
        assert_eq!(lengths("precision = 0.02\nsteps = 50\nwarm-up = 5", |_| 1.0), [50; 8]);
    }
}
