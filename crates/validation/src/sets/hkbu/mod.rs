//! The benchmarks of HKBU (2020): five ways to exchange gradients, 4 to 32 GPUs at 10 Gbit/s, predicted from the
//! throughput of one GPU.
//!
//! Networks are those of the catalog, with one exception: the rate of all-reduce over PCIe within a node is fitted, on
//! one row. How bytes travel was chosen with the rows in view: a single ring through all GPUs, and pushing before pulling.

mod cases;
mod data;
mod predict;
mod predictions;
mod tables;

use crate::{BoundCheck, ErrorBounds, Evidence, Measured, Options, Progress, Report, Set, ValidationError};

const NAME: &str = "hkbu";

const ABOUT: &str = "Throughput published by HKBU (github.com/HKBU-HPML/ddl-benchmarks, 2020): 10 Gigabit Ethernet, 4 GPUs \
                     a node over PCIe, predicted from the throughput of one GPU.";

/// The set.
pub(super) struct Hkbu;

impl Set for Hkbu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let predictions = predictions::predict()?;
        let bounds: data::Bounds = crate::bounds::of(NAME)?;
        let evidence = Evidence::Measured(Measured {
            cases: predictions.cases(),
            other_cases: Vec::new(),
            bounds: ErrorBounds { mean: bounds.mean, worst: bounds.worst },
            bounded_by_group: false,
        });
        let mut report = Report::new(NAME, predictions.holds(), ABOUT, evidence, &predictions)?;
        report.verdict = BoundCheck::verdict(&predictions.bounds);
        report.sections = tables::sections(&predictions);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_kept() {
        let found = predictions::predict().unwrap();
        assert!(found.holds(), "{:#?}", found.bounds);
        assert_eq!((found.rows.len(), found.rankings.len(), found.errors.len()), (60, 12, 10));
        assert_eq!(found.rows.iter().filter(|row| row.fitted).count(), 1);
        let fitted = found.rows.iter().find(|row| row.fitted).unwrap();
        assert!((fitted.predicted / fitted.measured - 1.0).abs() < 1e-3, "{fitted:?}");
    }
}
