//! Errors of fits.

/// Why measurements cannot be fitted.
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
    BadRow {
        /// Index of the row.
        row: usize,
    },
    /// A combination of coefficients has no effect on any measurement.
    #[error(
        "the measurements have rank {rank} of {columns}: coefficients {undetermined:?} cannot be determined separately"
    )]
    Collinear {
        /// Rank of the measurements.
        rank: usize,
        /// Coefficients.
        columns: usize,
        /// Indices of the coefficients that take part in the combination.
        undetermined: Vec<usize>,
    },
}
