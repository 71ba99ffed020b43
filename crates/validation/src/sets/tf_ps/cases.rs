//! Measured runs as cases, and the intervals that follow from the errors of other configurations.

use super::predictions::{JUDGED_FROM, RunPrediction, RunPredictions};
use crate::coverage;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

impl RunPredictions {
    /// Every run with two workers and more.
    pub(super) fn cases(&self) -> Vec<Case> {
        cases(&self.rows)
    }

    /// The same runs, predicted by the coarse models.
    pub(super) fn other_cases(&self) -> Vec<Case> {
        let by = |method: &str, predicted: fn(&RunPrediction) -> f64| {
            let method = method.to_owned();
            judged(&self.rows)
                .map(|row| Case {
                    method: method.clone(),
                    predicted: SamplesPerSec::new(predicted(row)),
                    run_spread: 0.0,
                    ..case(&self.rows, row)
                })
                .collect::<Vec<_>>()
        };
        let mut cases = by("cynthia2019", |row| row.cynthia);
        cases.extend(by("lin2018", |row| row.lin));
        cases
    }
}

fn judged(rows: &[RunPrediction]) -> impl Iterator<Item = &RunPrediction> {
    rows.iter().filter(|row| row.workers >= JUDGED_FROM)
}

fn cases(rows: &[RunPrediction]) -> Vec<Case> {
    judged(rows).map(|row| case(rows, row)).collect()
}

fn case(rows: &[RunPrediction], row: &RunPrediction) -> Case {
    let alone = rows.iter().find(|other| other.workers == 1 && other.configuration == row.configuration);
    // Throughput of as many workers that do not slow each other down.
    let together = alone.map_or(f64::INFINITY, |alone| alone.predicted * f64::from(row.workers));
    Case {
        set: super::NAME,
        group: row.configuration.clone(),
        method: "simulate".to_owned(),
        regime: Regime {
            architecture: Architecture::ParameterServer,
            pace: Pace::Asynchronous,
            limit: Limit::of(row.predicted / together),
            machines: Machines::Several,
        },
        workers: row.workers,
        bandwidth: Some(row.rate),
        parameters: Some(row.parameters),
        predicted: SamplesPerSec::new(row.predicted),
        measured: SamplesPerSec::new(row.measured),
        run_spread: row.run_spread,
    }
}

/// Adds the model error to the interval of every run, from the errors on the other configurations.
pub(super) fn widen(rows: &mut [RunPrediction]) {
    let cases = cases(rows);
    let widths = coverage::intervals(&cases, &cases);
    for (case, width) in cases.iter().zip(widths) {
        let own = |row: &&mut RunPrediction| row.workers == case.workers && row.configuration == case.group;
        if let (Some(row), Some(judged)) = (rows.iter_mut().find(own), width) {
            let factor = judged.half_width.exp();
            row.likely = [row.predicted / factor, row.predicted * factor];
        }
    }
}

/// Share of the runs with two workers and more that lie in an interval.
pub(super) fn coverage(rows: &[RunPrediction], interval: impl Fn(&RunPrediction) -> [f64; 2]) -> f64 {
    let inside = judged(rows).filter(|row| {
        let [low, high] = interval(row);
        (low..=high).contains(&row.measured)
    });
    inside.count() as f64 / judged(rows).count().max(1) as f64
}
