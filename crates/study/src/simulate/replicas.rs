//! Independent runs of one scenario, in parallel.

use super::EVENTS;
use rayon::prelude::*;
use stepcast_core::scenario::Scenario;
use stepcast_sim::{Limits, ProgramError, StepRecord, Window};

/// Operations that one run may simulate; steps are cut down to it. Runs may be few but not short: workers that begin
/// together can take hundreds of steps to spread out, so short ones agree with each other and are wrong.
const BUDGET: u64 = 1_250_000;

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

    /// The part of a run of `time` seconds that counts: all of it where it is too short for the warm-up.
    pub(super) fn window(self, records: &[StepRecord], workers: usize, time: f64) -> Window {
        let all = Window { since: 0.0, until: time };
        Window::after(records, workers, self.warm_up).unwrap_or(all)
    }

    /// Within the budget; all workers together have so many operations in a step.
    fn of(scenario: &Scenario, operations: u64) -> Self {
        let options = scenario.simulate;
        let affordable = (BUDGET / operations.max(1)).max(20);
        let steps = u64::from(options.steps).min(affordable);
        let warm_up = (u64::from(options.warm_up) * steps).div_ceil(u64::from(options.steps));
        Self { steps, warm_up: warm_up.min(steps - 1) }
    }
}

/// The figures of all runs, in the order of their seeds; all workers together have so many operations in a step.
pub(super) fn replicas<F: Send>(
    scenario: &Scenario,
    operations: u64,
    run: impl Fn(u64, Length) -> Result<F, ProgramError> + Sync,
) -> Result<Vec<F>, ProgramError> {
    let length = Length::of(scenario, operations);
    let first = scenario.simulate.seed;
    let seeds: Vec<u64> = (0..u64::from(scenario.simulate.runs)).map(|run| first.wrapping_add(run)).collect();
    seeds.into_par_iter().map(|seed| run(seed, length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::scenario::Document;

    fn lengths(changes: &str, operations: u64) -> Vec<(u64, Length)> {
        let text = format!("[model]\nzoo = \"resnet50\"\n[methods.simulate]\n{changes}");
        let scenario = Document::new("test", text).scenario(&[]).unwrap();
        replicas(&scenario, operations, |seed, length| Ok((seed, length))).unwrap()
    }

    #[test]
    fn fewer_runs_are_as_long_as_many() {
        let whole = Length { steps: 1000, warm_up: 50 };
        assert_eq!(lengths("runs = 2", 1), [(1, whole), (2, whole)]);
        assert_eq!(lengths("", 1).len(), 8);
        let cut = Length { steps: 250, warm_up: 13 };
        assert!(lengths("", 5000).iter().chain(&lengths("runs = 2", 5000)).all(|(_, length)| *length == cut));
        assert_eq!(lengths("runs = 1", u64::MAX), [(1, Length { steps: 20, warm_up: 1 })]);
    }
}
