//! The errors of a fit.

use crate::format::{count, name, percent};
use crate::table::Table;
use stepcast_fit::FitReport;
use stepcast_fit::steps::LeftOutErrors;

/// Relative errors on the fitted and on the held-out measurements.
pub fn errors(fitted: &FitReport) -> Table {
    let mut table = Table::new(
        "",
        ["errors of", "set", "#points", "#median", "#3rd quartile", "#95th percentile", "#worst"],
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

/// Mean and worst errors of groups of steps whose models were left out of a fit.
pub fn left_out(rows: &[LeftOutErrors]) -> Table {
    let mut table = Table::new(
        "Each model left out of the fit",
        ["steps", "#number", "errors of", "#mean", "#worst", ""],
    );
    for row in rows {
        table.row([
            row.group.to_string(),
            row.steps.to_string(),
            row.moment.to_string(),
            format!("{:.1} %", 100.0 * row.mean),
            format!("{:.1} %", 100.0 * row.worst),
            String::new(),
        ]);
    }
    table
}
