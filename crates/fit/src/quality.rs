//! How far predictions are from measurements, and why measurements cannot be fitted.

use serde::{Deserialize, Serialize};
use stepcast_stats::quantile_of_sorted;

/// Quantiles of relative errors |predicted/measured − 1|.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Quality {
    /// Measurements.
    pub points: usize,
    /// Half of the errors are below.
    pub median: f64,
    /// Three quarters of the errors are below.
    pub third_quartile: f64,
    /// 95 of 100 errors are below.
    pub percentile_95: f64,
    pub worst: f64,
}

impl Quality {
    /// Of pairs (predicted, measured) of one quantity; none where there are no pairs.
    pub fn from_pairs<Q: Into<f64>>(pairs: impl IntoIterator<Item = (Q, Q)>) -> Option<Self> {
        let error = |(predicted, measured): (Q, Q)| (predicted.into() / measured.into() - 1.0).abs();
        let mut errors: Vec<f64> = pairs.into_iter().map(error).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let worst = *errors.last()?;
        Some(Self {
            points: errors.len(),
            median: quantile_of_sorted(&errors, 0.5),
            third_quartile: quantile_of_sorted(&errors, 0.75),
            percentile_95: quantile_of_sorted(&errors, 0.95),
            worst,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// The fit is no longer wanted.
    #[error("it was cancelled before it was done")]
    Cancelled,
    /// Fewer measurements than coefficients.
    #[error("{rows} measurements cannot determine {columns} coefficients")]
    TooFew {
        /// Measurements.
        rows: usize,
        /// Coefficients.
        columns: usize,
    },
    /// Rows of unequal length, or values that are not finite.
    #[error("measurement {row} is incomplete or not finite")]
    BadRow { row: usize },
    /// A combination of coefficients has no effect on any measurement.
    #[error(
        "the measurements have rank {rank} of {columns}: coefficients {undetermined:?} cannot be determined separately"
    )]
    Collinear {
        rank: usize,
        /// Coefficients.
        columns: usize,
        /// Indices of the coefficients that take part in the combination.
        undetermined: Vec<usize>,
    },
}
