//! Validation against Zeng 2023: Table 1 recomputed to the integer, Tables 2-7 to print precision, and three
//! models held against the measured times:
//! * the printed formulas as they stand (simd 2, Table 1's counts, Algorithms 1 and 2);
//! * the authors' own inputs, recovered from their workbook (errata 1.2);
//! * the layer-wise model, calibrated on the other networks: nothing of the network that is predicted, and no
//!   parameter that belongs to a network, enters the fit.

mod bounds;
mod calibrated;
mod cases;
mod data;
mod published;
mod report;

pub use super::BoundCheck;
pub(super) use bounds::Bounds;
pub use calibrated::Calibration;
pub use data::Config;
pub use report::{CellRow, CountRow, ErrorRow, Report, SweepRow};

use super::ValidationError;

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
