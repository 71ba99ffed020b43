//! Held-out predictions: two parameters were chosen on the very runs that are judged, so every configuration is predicted
//! once more, with the pair of parameters that is best on all others.

use super::data::Recorded;
use super::predict::{RUNS, throughputs};
use super::predictions::{JUDGED_FROM, RunPrediction};
use super::testbed::Testbed;
use crate::ValidationError;
use rayon::prelude::*;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_stats::mean;

/// From acknowledgements that overtake queues to acknowledgements that wait in them as data do.
const ACKNOWLEDGEMENTS_QUEUED: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Seconds in which captured downloads reach their rate.
const ESTABLISHED: [f64; 3] = [0.1, 0.15, 0.2];

/// Simulated runs of each point while searching.
const SEARCH_RUNS: u64 = 10;

/// The pair of parameters for one configuration.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Choice {
    /// The configuration that is left out.
    pub(super) configuration: String,
    /// Share of upload queues that delay acknowledgements.
    pub(super) acknowledgements_queued: f64,
    /// Time after which a download is established.
    #[serde(rename = "established_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) established: Seconds,
    /// Mean error on the other configurations, in percent.
    pub(super) error_on_others: f64,
}

/// How often every judged run is predicted: once for each candidate, and once with the chosen one.
pub(super) fn rounds() -> usize {
    ACKNOWLEDGEMENTS_QUEUED.len() * ESTABLISHED.len() + 1
}

fn candidates(testbed: &Testbed) -> Vec<Testbed> {
    let pairs = ACKNOWLEDGEMENTS_QUEUED.iter().flat_map(|&queued| ESTABLISHED.map(|time| (queued, time)));
    pairs
        .map(|(acknowledgements_queued, established)| Testbed {
            acknowledgements_queued,
            established: Seconds::new(established),
            ..testbed.clone()
        })
        .collect()
}

/// Predicts all `rows` that are judged; `done` is called after each prediction.
pub(super) fn predict(
    rows: &mut [RunPrediction],
    recorded: &[Recorded],
    testbed: &Testbed,
    done: &(dyn Fn() -> Result<(), ValidationError> + Sync),
) -> Result<Vec<Choice>, ValidationError> {
    let throughput = |row: &RunPrediction, testbed: &Testbed, runs: u64| {
        let own = recorded.iter().find(|recorded| recorded.configuration.name == row.configuration);
        let rates = own.map(|recorded| throughputs(recorded, testbed, row.workers, runs)).transpose();
        done()?;
        Ok::<f64, ValidationError>(rates?.map_or(f64::NAN, |rates| mean(&rates)))
    };
    let judged: Vec<&RunPrediction> = rows.iter().filter(|row| row.workers >= JUDGED_FROM).collect();
    let mut scored: Vec<(Testbed, Vec<f64>)> = Vec::new();
    for candidate in candidates(testbed) {
        let errors = judged.par_iter().map(|row| {
            let predicted = throughput(row, &candidate, SEARCH_RUNS)?;
            Ok((predicted / row.measured - 1.0).abs())
        });
        let errors = errors.collect::<Result<_, ValidationError>>()?;
        scored.push((candidate, errors));
    }
    let error_on_others = |errors: &[f64], left_out: &str| {
        let others = judged.iter().zip(errors).filter(|(row, _)| row.configuration != left_out);
        let others: Vec<f64> = others.map(|(_, &error)| error).collect();
        mean(&others)
    };
    let mut choices = Vec::new();
    let mut chosen = Vec::new();
    for Recorded { configuration, .. } in recorded {
        let scores =
            scored.iter().map(|(testbed, errors)| (testbed, error_on_others(errors, &configuration.name)));
        let Some((best, error)) = scores.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { continue };
        choices.push(Choice {
            configuration: configuration.name.clone(),
            acknowledgements_queued: best.acknowledgements_queued,
            established: best.established,
            error_on_others: 100.0 * error,
        });
        chosen.push((configuration.name.clone(), best));
    }
    rows.par_iter_mut().filter(|row| row.workers >= JUDGED_FROM).try_for_each(|row| {
        if let Some((_, best)) = chosen.iter().find(|(name, _)| *name == row.configuration) {
            row.held_out = Some(throughput(row, best, RUNS)?);
        }
        Ok::<(), ValidationError>(())
    })?;
    Ok(choices)
}
