//! Errors of one way to predict over many cases.

use serde::Serialize;
use stepcast_report::table::{Column, Table};

/// Errors of one way to predict, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// The method, or how its inputs were fitted.
    pub method: &'static str,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// Largest absolute error.
    pub worst: f64,
    /// Mean of the signed errors.
    pub bias: f64,
}

impl Errors {
    /// From the ratios of predicted to measured values.
    pub fn of(method: &'static str, ratios: impl Iterator<Item = f64>) -> Self {
        let errors: Vec<f64> = ratios.map(|ratio| 100.0 * (ratio - 1.0)).collect();
        let mean = |sum: f64| sum / errors.len().max(1) as f64;
        Self {
            method,
            mean: mean(errors.iter().map(|error| error.abs()).sum()),
            worst: errors.iter().map(|error| error.abs()).fold(0.0, f64::max),
            bias: mean(errors.iter().sum()),
        }
    }

    /// Several ways to predict below each other; `column` is the title of the column that names them.
    pub(crate) fn table(title: &str, column: &str, errors: &[Self]) -> Table {
        let mut table = Table::new(
            title,
            [
                Column::names(column),
                Column::numbers("mean error"),
                Column::numbers("worst"),
                Column::numbers("bias"),
            ],
        );
        for errors in errors {
            table.row([
                errors.method.to_owned(),
                format!("{:.1} %", errors.mean),
                format!("{:.1} %", errors.worst),
                format!("{:+.1} %", errors.bias),
            ]);
        }
        table
    }
}

/// The error of one prediction: "+4.2 %".
pub(crate) fn signed_error(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}
