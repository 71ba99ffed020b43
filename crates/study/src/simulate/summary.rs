//! What all kinds of simulated training report alike.

use stepcast_core::machine::WorkerGroup;
use stepcast_core::prediction::{GroupReport, Spread};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_sim::End;
use stepcast_stats::quantile;

/// Longest histogram; larger values share its last bar.
const BARS: usize = 64;

/// Samples of a step, by worker.
pub(super) fn batches(scenario: &Scenario) -> Vec<f64> {
    let mut batches = Vec::with_capacity(scenario.cluster.workers() as usize);
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        batches.extend(std::iter::repeat_n(f64::from(scenario.samples(index)), group.count as usize));
    }
    batches
}

/// Reports on all groups, whose workers compute for `compute` seconds in a step.
pub(super) fn groups(scenario: &Scenario, compute: &[Seconds]) -> Vec<GroupReport> {
    let report = |(index, group): (usize, &WorkerGroup)| GroupReport {
        group: index,
        count: group.count,
        batch: scenario.samples(index),
        compute: compute[index],
        ready: Seconds::ZERO,
        slack: None,
    };
    scenario.cluster.groups.iter().enumerate().map(report).collect()
}

/// Mean of a figure over runs.
pub(super) fn mean<F>(runs: &[F], of: impl Fn(&F) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

/// 5th, 50th and 95th percentile.
pub(super) fn spread(values: &mut [f64]) -> Spread {
    Spread { low: quantile(values, 0.05), median: quantile(values, 0.5), high: quantile(values, 0.95) }
}

/// Shares of the values 0, 1, 2 …
pub(super) fn histogram(values: &[f64]) -> Vec<f64> {
    let most = values.iter().copied().fold(0.0, f64::max).min((BARS - 1) as f64) as usize;
    let mut shares = vec![0.0; most + 1];
    for value in values {
        shares[(*value as usize).min(most)] += 1.0 / values.len() as f64;
    }
    shares
}

/// Why a run ended.
pub(super) fn describe(end: &End) -> String {
    match end {
        End::Completed => "all steps were done".to_owned(),
        End::TimeLimit => "the simulated time was up".to_owned(),
        End::EffortLimit => "the budget was spent".to_owned(),
        End::Deadlock(waiting) => {
            let names: Vec<String> =
                waiting.iter().map(|(worker, name)| format!("worker {worker} for \"{name}\"")).collect();
            format!("a deadlock: waiting are {}", names.join(", "))
        }
    }
}
