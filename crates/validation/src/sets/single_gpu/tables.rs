//! The tables of this set.

use super::{Factors, SingleGpuPredictions};
use crate::{BoundCheck, Section};
use stepcast_report::table::{Column, Table};

pub(super) fn sections(predictions: &SingleGpuPredictions, checks: &[BoundCheck]) -> Vec<Section> {
    let all = std::slice::from_ref(&predictions.all);
    vec![
        factors("By source", "source", predictions.sources.iter().chain(all)).into(),
        factors("By number format", "precision", predictions.precisions.iter()).into(),
        factors("By device", "device", predictions.devices.iter()).into(),
        BoundCheck::table(checks).into(),
    ]
}

fn factors<'a>(title: &str, column: &str, rows: impl Iterator<Item = &'a Factors>) -> Table {
    let mut table = Table::new(
        title,
        [
            Column::names(column),
            Column::numbers("runs"),
            Column::numbers("mean factor"),
            Column::numbers("within 1.65"),
            Column::numbers("bias"),
            Column::numbers("in the interval"),
            Column::numbers("its half-width"),
        ],
    );
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    for row in rows {
        table.row([
            row.of.clone(),
            row.runs.to_string(),
            format!("{:.2}", row.mean),
            percent(row.near),
            format!("{:.2}", row.bias),
            percent(row.coverage),
            format!("{:.2}", row.half_width),
        ]);
    }
    table
}
