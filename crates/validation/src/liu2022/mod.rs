//! Validation against Liu 2022: cases in exact fractions, scaling factors of networks, Tables 2 and 3.

mod data;
mod fusion;
mod models;
mod printed;
mod tables;

use super::ValidationError;
pub(super) use data::Bounds;
use serde::Serialize;

pub use tables::TableRow;

/// A set of figures and how far they are from where they should be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What is checked.
    pub what: String,
    /// Cases, each with several figures.
    pub cases: usize,
    /// Figures of all cases.
    pub figures: usize,
    /// The largest relative deviation; absolute where nothing is expected.
    pub worst: f64,
    /// What it may be at most.
    pub tolerance: f64,
}

impl Check {
    fn new(what: impl Into<String>, tolerance: f64) -> Self {
        Self { what: what.into(), cases: 0, figures: 0, worst: 0.0, tolerance }
    }

    fn figure(&mut self, found: f64, expected: f64) {
        self.figures += 1;
        let scale = if expected.abs() > 0.0 { expected.abs() } else { 1.0 };
        let deviation = (found - expected).abs() / scale;
        // A figure that is not a number is as wrong as can be.
        self.worst = if deviation.is_nan() { f64::INFINITY } else { self.worst.max(deviation) };
    }

    /// Whether the tolerance is kept.
    pub fn holds(&self) -> bool {
        self.figures > 0 && self.worst <= self.tolerance
    }
}

/// The whole validation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Figures against their exact values.
    pub checks: Vec<Check>,
    /// Tables 2 and 3.
    pub tables: Vec<TableRow>,
    /// How many of their rows must agree with print.
    pub rows_wanted: usize,
}

impl Report {
    /// Rows of Tables 2 and 3 that agree with print.
    pub fn rows_as_printed(&self) -> usize {
        self.tables.iter().filter(|row| row.as_printed).count()
    }

    /// Whether every bound is kept.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(Check::holds) && self.rows_as_printed() >= self.rows_wanted
    }
}

/// Runs the whole validation.
pub fn run() -> Result<Report, ValidationError> {
    let bounds = super::bounds::read()?.liu2022;
    let mut checks = fusion::check(&data::fusion()?, bounds.deviation.fusion);
    checks.push(models::check(&data::models()?, bounds.deviation.models)?);
    checks.push(models::check_calibration(&data::calibration()?, bounds.deviation.calibration)?);
    let (tables, check) = tables::check(&data::tables()?, bounds.deviation.tables)?;
    checks.push(check);
    Ok(Report { checks, tables, rows_wanted: bounds.print.rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_kept() {
        let report = run().unwrap();
        assert!(report.holds(), "{report:#?}");
        let cases: Vec<usize> = report.checks.iter().map(|check| check.cases).collect();
        assert_eq!(cases, [6, 6, 6, 6, 18, 7, 20]);
        let wrong: Vec<&str> =
            report.tables.iter().filter(|row| !row.as_printed).map(|row| row.row.as_str()).collect();
        assert_eq!(wrong, ["VGG19", "VGG19"]);
    }

    #[test]
    fn what_is_not_a_number_is_missed() {
        let mut check = Check::new("nothing", 1.0);
        assert!(!check.holds());
        check.figure(f64::NAN, 1.0);
        check.figure(1.0, 1.0);
        assert!(!check.holds());
    }
}
