//! Figures compared with exact values that were worked out independently of the code.

use serde::Serialize;
use stepcast_report::table::{Column, Table};

/// Figures of several cases, and how far they are from their exact values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExactCheck {
    /// What is checked.
    pub what: String,
    /// Number of cases, each with several figures.
    pub cases: usize,
    /// Number of figures of all cases.
    pub figures: usize,
    /// The largest relative deviation; absolute where the exact value is zero.
    pub worst: f64,
    /// The largest deviation that is allowed.
    pub tolerance: f64,
}

impl ExactCheck {
    pub(crate) fn new(what: impl Into<String>, tolerance: f64) -> Self {
        Self { what: what.into(), cases: 0, figures: 0, worst: 0.0, tolerance }
    }

    /// Adds a figure.
    pub(crate) fn figure(&mut self, found: f64, expected: f64) {
        self.figures += 1;
        let scale = if expected.abs() > 0.0 { expected.abs() } else { 1.0 };
        let deviation = (found - expected).abs() / scale;
        // A figure that is not a number misses every tolerance.
        self.worst = if deviation.is_nan() { f64::INFINITY } else { self.worst.max(deviation) };
    }

    /// Adds figures that must be as many as are expected; each missing or additional one counts as wrong.
    pub(crate) fn figures(&mut self, found: &[f64], expected: &[f64]) {
        for place in 0..found.len().max(expected.len()) {
            let at = |figures: &[f64]| figures.get(place).copied().unwrap_or(f64::NAN);
            self.figure(at(found), at(expected));
        }
    }

    /// Whether the tolerance is kept.
    pub fn holds(&self) -> bool {
        self.figures > 0 && self.worst <= self.tolerance
    }

    /// All checks of a set.
    pub(crate) fn table(checks: &[Self]) -> Table {
        let mut table = Table::new(
            "Reproduced",
            [
                Column::words("figures against their exact values"),
                Column::numbers("cases"),
                Column::numbers("figures"),
                Column::numbers("worst"),
                Column::numbers("tolerance"),
                Column::names(""),
            ],
        );
        for check in checks {
            table.row([
                check.what.clone(),
                check.cases.to_string(),
                check.figures.to_string(),
                deviation(check.worst),
                deviation(check.tolerance),
                if check.holds() { "ok" } else { "MISSED" }.to_owned(),
            ]);
        }
        table
    }
}

/// Rounding of the last digit differs between machines: deviations far below any tolerance are not printed in full.
fn deviation(size: f64) -> String {
    const NEGLIGIBLE: f64 = 1e-13;
    if size < NEGLIGIBLE { format!("< {NEGLIGIBLE:.0e}") } else { format!("{size:.0e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_are_not_numbers_are_missed() {
        let mut check = ExactCheck::new("nothing", 1.0);
        assert!(!check.holds());
        check.figure(f64::NAN, 1.0);
        check.figure(1.0, 1.0);
        assert!(!check.holds());
    }

    #[test]
    fn missing_figures_are_missed() {
        let mut check = ExactCheck::new("one of two", 1e-9);
        check.figures(&[1.0], &[1.0, 2.0]);
        assert_eq!((check.figures, check.holds()), (2, false));
    }
}
