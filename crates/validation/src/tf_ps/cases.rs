//! Measured points as cases, and the intervals that follow from the errors of other configurations.

use super::{JUDGED_FROM, Report, Row};
use crate::coverage;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

impl Report {
    /// Every point with two workers and more.
    pub fn cases(&self) -> Vec<Case> {
        cases(&self.rows)
    }

    /// The same by the coarse models.
    pub fn other_cases(&self) -> Vec<Case> {
        let by = |method: &str, predicted: fn(&Row) -> f64| {
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

fn judged(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.workers >= JUDGED_FROM)
}

fn cases(rows: &[Row]) -> Vec<Case> {
    judged(rows).map(|row| case(rows, row)).collect()
}

fn case(rows: &[Row], row: &Row) -> Case {
    let alone = rows.iter().find(|other| other.workers == 1 && other.configuration == row.configuration);
    // As many workers would do as they do alone.
    let together = alone.map_or(f64::INFINITY, |alone| alone.predicted * f64::from(row.workers));
    Case {
        set: "tf-ps",
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

/// Adds what the model lacks to the interval of every row, by the errors of the other configurations.
pub(super) fn widen(rows: &mut [Row]) {
    let cases = cases(rows);
    let widths = coverage::intervals(&cases, &cases);
    for (case, width) in cases.iter().zip(widths) {
        let own = |row: &&mut Row| row.workers == case.workers && row.configuration == case.group;
        if let (Some(row), Some(judged)) = (rows.iter_mut().find(own), width) {
            let factor = judged.half_width.exp();
            row.likely = [row.predicted / factor, row.predicted * factor];
        }
    }
}

/// Share of the points with two workers and more that lie in an interval.
pub(super) fn coverage(rows: &[Row], interval: impl Fn(&Row) -> [f64; 2]) -> f64 {
    let inside = judged(rows).filter(|row| {
        let [low, high] = interval(row);
        (low..=high).contains(&row.measured)
    });
    inside.count() as f64 / judged(rows).count().max(1) as f64
}
