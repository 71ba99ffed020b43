//! Validation against Zeng 2023: Table 1 recomputed to the integer, Tables 2-7 to print precision, and three
//! models held against the measured times:
//! * the printed formulas as they stand (simd 2, Table 1's counts, Algorithms 1 and 2);
//! * the authors' own inputs, recovered from their workbook (errata 1.2);
//! * the layer-wise model, calibrated on the other networks: nothing of the network that is predicted, and no
//!   parameter that belongs to a network, enters the fit.

mod bounds;
mod calibrated;
mod data;
mod published;
mod report;

pub use bounds::BoundCheck;
pub use calibrated::Calibration;
pub use data::Config;
pub use report::{CellRow, CountRow, ErrorRow, Report, SweepRow};

/// Why the validation could not run.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// A file of `validation/` is damaged.
    #[error("validation data: {0}")]
    Data(String),
    /// A fit did not succeed.
    #[error("calibration: {0}")]
    Fit(#[from] stepcast_fit::FitError),
    /// A scenario of the validation is invalid.
    #[error("scenario: {0}")]
    Scenario(#[from] stepcast_core::invalid::Invalid),
    /// A method refused a scenario of the validation.
    #[error("method: {0}")]
    Method(#[from] stepcast_core::method::Inapplicable),
}

/// Runs the whole validation.
pub fn run() -> Result<Report, ValidationError> {
    report::run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_kept() {
        let report = run().unwrap();
        let missed: Vec<&BoundCheck> = report.bounds.iter().filter(|bound| !bound.holds).collect();
        assert!(missed.is_empty(), "{missed:#?}\n{:#?}", report.errors);
        assert_eq!((report.table1.len(), report.cells.len(), report.sweeps.len()), (12, 60, 131));
    }
}
