//! The errors of a fit.

use crate::format::{count, name, percent};
use crate::table::{Column, Table};
use stepcast_fit::FitReport;

/// Relative errors on the fitted and on the held-out measurements.
pub fn errors(fitted: &FitReport) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::names("errors of"),
            Column::names("set"),
            Column::numbers("points"),
            Column::numbers("median"),
            Column::numbers("3rd quartile"),
            Column::numbers("95th percentile"),
            Column::numbers("worst"),
        ],
    );
    for row in &fitted.rows {
        let quality = &row.quality;
        table.row([
            name(&row.what),
            row.set.to_owned(),
            count(quality.points as u64),
            percent(quality.median),
            percent(quality.third_quartile),
            percent(quality.percentile_95),
            percent(quality.worst),
        ]);
    }
    table
}
