//! Zeng 2023: Table 1 recomputed to the integer, Tables 2-7 recomputed to the printed precision, and three models
//! compared with the measured times:
//! * the printed formulas as they stand (simd 2, Table 1's counts, Algorithms 1 and 2);
//! * the authors' own inputs, recovered from their workbook (errata 1.2);
//! * the layer-wise model, calibrated on the other networks: neither measurements of the predicted network nor
//!   coefficients that belong to a single network enter the fit.

mod bounds;
mod calibrated;
mod cases;
mod data;
mod predictions;
mod published;
mod tables;

pub use calibrated::{Calibration, Efficiency};
pub use data::Config;
pub use predictions::{CellPrediction, OperationCount, SweepPoint, TableErrors, TablePredictions, predict};

use crate::{BoundCheck, ErrorBounds, Evidence, Measured, Options, Progress, Report, Set, ValidationError};

const NAME: &str = "zeng2023";

const ABOUT: &str = "Zeng et al. 2023, doi 10.1155/2023/2663115: the printed tables recomputed, the measured times \
                     predicted.";

/// The set.
pub(super) struct Zeng2023;

impl Set for Zeng2023 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let predictions = predict()?;
        let bounds: bounds::Bounds = crate::bounds::of(NAME)?;
        let evidence = Evidence::Measured(Measured {
            cases: predictions.cases()?,
            other_cases: predictions.other_cases()?,
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
        let predictions = predict().unwrap();
        let missed: Vec<&BoundCheck> = predictions.bounds.iter().filter(|bound| !bound.holds).collect();
        assert!(missed.is_empty(), "{missed:#?}\n{:#?}", predictions.errors);
        let counts = (predictions.table1.len(), predictions.cells.len(), predictions.sweeps.len());
        assert_eq!(counts, (12, 60, 131));
    }
}
