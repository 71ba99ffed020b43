//! Liu 2022: cases in exact fractions, scaling factors of networks, Tables 2 and 3. Nothing here was measured.

mod data;
mod fusion;
mod models;
mod printed;
mod report;
mod tables;

use crate::{Evidence, ExactCheck, Options, Progress, Report, Set, ValidationError};
use serde::Serialize;
use tables::PrintedFigure;

const NAME: &str = "liu2022";

const ABOUT: &str = "Liu et al. 2022, doi 10.1145/3485447.3511981: cases worked out independently of the code, and the \
                     printed tables. Nothing here is measured.";

/// The set.
pub(super) struct Liu2022;

impl Set for Liu2022 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let reproduction = reproduce()?;
        let evidence = Evidence::exact(&reproduction.checks);
        let mut report = Report::new(NAME, reproduction.holds(), ABOUT, evidence, &reproduction)?;
        report.sections = report::sections(&reproduction);
        Ok(report)
    }
}

/// All figures, recomputed.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Reproduction {
    /// Figures against their exact values.
    checks: Vec<ExactCheck>,
    /// Tables 2 and 3.
    tables: Vec<PrintedFigure>,
    /// How many figures of those tables must agree with print.
    rows_wanted: usize,
}

impl Reproduction {
    /// How many figures of Tables 2 and 3 agree with print.
    fn rows_as_printed(&self) -> usize {
        self.tables.iter().filter(|row| row.as_printed).count()
    }

    /// Whether every bound is kept.
    fn holds(&self) -> bool {
        self.checks.iter().all(ExactCheck::holds) && self.rows_as_printed() >= self.rows_wanted
    }
}

fn reproduce() -> Result<Reproduction, ValidationError> {
    let bounds: data::Bounds = crate::bounds::of(NAME)?;
    let mut checks = fusion::check(&data::fusion()?, bounds.deviation.fusion);
    checks.push(models::check(&data::models()?, bounds.deviation.models)?);
    checks.push(models::check_calibration(&data::calibration()?, bounds.deviation.calibration)?);
    let (tables, check) = tables::check(&data::tables()?, bounds.deviation.tables)?;
    checks.push(check);
    Ok(Reproduction { checks, tables, rows_wanted: bounds.print.rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_kept() {
        let reproduction = reproduce().unwrap();
        assert!(reproduction.holds(), "{reproduction:#?}");
        let cases: Vec<usize> = reproduction.checks.iter().map(|check| check.cases).collect();
        assert_eq!(cases, [6, 6, 6, 6, 18, 7, 20]);
        let wrong: Vec<&str> =
            reproduction.tables.iter().filter(|row| !row.as_printed).map(|row| row.row.as_str()).collect();
        assert_eq!(wrong, ["VGG19", "VGG19"]);
    }
}
