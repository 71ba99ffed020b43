//! Validation against the benchmarks of HKBU (2020): five ways to exchange gradients, 4 to 32 GPUs at 10 Gbit/s,
//! predicted from the throughput of one GPU.
//!
//! Networks are those of the catalog, but for one figure: the rate of all-reduce over PCIe within a node, which has one
//! row of its own. How bytes travel was chosen with the rows in view: a single ring through all GPUs, and pushing and
//! pulling one after the other.

mod cases;
mod data;
mod predict;
mod report;

use super::ValidationError;

pub(super) use data::Bounds;
pub use data::Scheme;
pub use report::{ErrorRow, Ranking, Report, Row};

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
        assert!(report.holds(), "{:#?}", report.bounds);
        assert_eq!((report.rows.len(), report.rankings.len(), report.errors.len()), (60, 12, 10));
        assert_eq!(report.rows.iter().filter(|row| row.fitted).count(), 1);
        let fitted = report.rows.iter().find(|row| row.fitted).unwrap();
        assert!((fitted.predicted / fitted.measured - 1.0).abs() < 1e-3, "{fitted:?}");
    }
}
