//! Plots of validation: predictions against measurements.

use crate::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use stepcast_core::quantity::SamplesPerSec;
use stepcast_study::predict::interval::Case;

/// Throughput of measured runs, a set of points for each validation set.
pub fn predicted_measured(cases: &[Case]) -> PredictedMeasured<SamplesPerSec> {
    let mut sets: Vec<Set<SamplesPerSec>> = Vec::new();
    for case in cases {
        let at = sets.iter().position(|set| set.name == case.set).unwrap_or_else(|| {
            sets.push(Set { name: case.set.to_owned(), pairs: Vec::new() });
            sets.len() - 1
        });
        sets[at].pairs.push(Pair {
            name: format!("{}, {} workers, by {}", case.group, case.workers, case.method),
            measured: case.measured,
            predicted: case.predicted,
        });
    }
    PredictedMeasured {
        title: "Runs that were not fitted".to_owned(),
        quantity: "throughput".to_owned(),
        sets,
    }
}
