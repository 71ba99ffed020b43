//! Held-out predictions: two parameters were chosen on the very runs that are judged, so every configuration is predicted
//! once more, with the pair of parameters that is best on all others.

use super::data::Recorded;
use super::predict::{RUNS, throughputs};
use super::testbed::Testbed;
use super::{JUDGED_FROM, judged_rows};
use crate::ValidationError;
use crate::records::Fields;
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_core::quantity::Seconds;
use stepcast_stats::mean;

/// From acknowledgements that overtake queues to acknowledgements that wait in them as data do.
const ACKNOWLEDGEMENTS_QUEUED: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Seconds in which captured downloads reach their rate.
const ESTABLISHED: [f64; 3] = [0.1, 0.15, 0.2];

/// Simulated runs of each point while searching.
const SEARCH_RUNS: u64 = 10;

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

/// Predicts all `rows` that are judged; `done` is called after each prediction. The chosen parameters for each configuration
/// that is left out, and the mean error on the others, in percent.
pub(super) fn predict(
    rows: &mut [Value],
    recorded: &[Recorded],
    testbed: &Testbed,
    done: &(dyn Fn() -> Result<(), ValidationError> + Sync),
) -> Result<Vec<Value>, ValidationError> {
    let throughput = |row: &Value, testbed: &Testbed, runs: u64| {
        let own = recorded.iter().find(|recorded| recorded.configuration.name == row.text("configuration"));
        let rates =
            own.map(|recorded| throughputs(recorded, testbed, row.small("workers"), runs)).transpose();
        done()?;
        Ok::<f64, ValidationError>(rates?.map_or(f64::NAN, |rates| mean(&rates)))
    };
    let judged: Vec<&Value> = judged_rows(rows).collect();
    let mut scored: Vec<(Testbed, Vec<f64>)> = Vec::new();
    for candidate in candidates(testbed) {
        let errors = judged.par_iter().map(|row| {
            let predicted = throughput(row, &candidate, SEARCH_RUNS)?;
            Ok((predicted / row.number("measured") - 1.0).abs())
        });
        let errors = errors.collect::<Result<_, ValidationError>>()?;
        scored.push((candidate, errors));
    }
    let error_on_others = |errors: &[f64], left_out: &str| {
        let others = judged.iter().zip(errors).filter(|(row, _)| row.text("configuration") != left_out);
        let others: Vec<f64> = others.map(|(_, &error)| error).collect();
        mean(&others)
    };
    let mut choices = Vec::new();
    let mut chosen = Vec::new();
    for Recorded { configuration, .. } in recorded {
        let scores =
            scored.iter().map(|(testbed, errors)| (testbed, error_on_others(errors, &configuration.name)));
        let Some((best, error)) = scores.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { continue };
        choices.push(json!({
            "configuration": configuration.name,
            "acknowledgements_queued": best.acknowledgements_queued,
            "established_s": best.established.get(),
            "error_on_others": 100.0 * error,
        }));
        chosen.push((configuration.name.clone(), best));
    }
    rows.par_iter_mut().filter(|row| row.small("workers") >= JUDGED_FROM).try_for_each(|row| {
        if let Some((_, best)) = chosen.iter().find(|(name, _)| name == row.text("configuration")) {
            row["held_out"] = json!(throughput(row, best, RUNS)?);
        }
        Ok::<(), ValidationError>(())
    })?;
    Ok(choices)
}
