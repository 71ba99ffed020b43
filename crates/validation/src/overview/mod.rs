//! All sets in one table: errors, coverage of 90 % intervals, and whether bounds are kept.

mod text;

use crate::coverage::{self, Coverage};
use crate::set::look;
use crate::{
    CoverageBound, Errors, Evidence, Measured, Options, Progress, Report, Set, Source, ValidationError,
    bounds, sets,
};
use serde::Serialize;
use std::path::{Path, PathBuf};
use stepcast_study::predict::interval::{Case, Residuals, residuals};

/// One set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverviewRow {
    /// Its name.
    pub set: &'static str,
    /// Number of cases.
    pub cases: usize,
    /// Errors in percent; none where nothing was measured.
    pub errors: Option<Errors>,
    /// How many measured values lie in their 90 % intervals.
    pub coverage: Coverage,
    /// The bounds in words, or why the set did not run.
    pub bound: String,
    /// Whether all of them are kept; none if the set did not run.
    pub holds: Option<bool>,
}

/// All sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Measured sets first, then those predicted from priors, then exact ones, then those that did not run.
    pub rows: Vec<OverviewRow>,
    /// Coverage over all measured sets but those predicted from priors, which have intervals of their own.
    pub coverage: Coverage,
    /// Bounds of that coverage.
    pub coverage_bound: CoverageBound,
    /// Residuals by method, regime and group: the rows of `validation/errors.csv`.
    #[serde(skip)]
    pub residuals: Vec<Residuals>,
    /// Every measured run with its prediction.
    #[serde(skip)]
    pub cases: Vec<Case>,
}

impl Overview {
    /// Whether the coverage over all sets is within its bounds; none if a set did not run.
    pub fn covers(&self) -> Option<bool> {
        let CoverageBound { least, most } = self.coverage_bound;
        let all = self.rows.iter().all(|row| row.holds.is_some());
        self.coverage.share().filter(|_| all).map(|share| (least..=most).contains(&share))
    }

    fn of(outcomes: Vec<Outcome>) -> Result<Self, ValidationError> {
        let mut measured = Vec::new();
        let mut assumed = Vec::new();
        let mut exact = Vec::new();
        let mut skipped = Vec::new();
        for outcome in outcomes {
            let report = match outcome {
                Outcome::Ran(report) => report,
                Outcome::Skipped(row) => {
                    skipped.push(row);
                    continue;
                }
            };
            match report.evidence {
                Evidence::Measured(evidence) => measured.push((report.set, report.holds, evidence)),
                Evidence::Assumed { errors, coverage, bound } => assumed.push(OverviewRow {
                    set: report.set,
                    cases: coverage.cases,
                    errors: Some(errors),
                    coverage,
                    bound,
                    holds: Some(report.holds),
                }),
                Evidence::Judged { cases, errors, coverage, bound } => assumed.push(OverviewRow {
                    set: report.set,
                    cases,
                    errors: Some(errors),
                    coverage,
                    bound,
                    holds: Some(report.holds),
                }),
                Evidence::Exact(cases) => exact.push(exact_row(report.set, cases, report.holds)),
            }
        }
        let mut overview = judge(&measured, bounds::of(bounds::COVERAGE)?);
        overview.rows.extend(assumed);
        overview.rows.extend(exact);
        overview.rows.extend(skipped);
        Ok(overview)
    }

    /// Whether every bound is kept.
    pub fn holds(&self) -> bool {
        self.covers() != Some(false) && self.rows.iter().all(|row| row.holds != Some(false))
    }
}

/// Runs all sets but those whose data are not below `folder`.
pub fn run(folder: &Path, progress: &Progress<'_>) -> Result<Overview, ValidationError> {
    let found = sets::all().iter().map(|set| run_set(*set, folder, progress));
    Overview::of(found.collect::<Result<_, _>>()?)
}

/// What came of a set.
enum Outcome {
    Ran(Report),
    Skipped(OverviewRow),
}

fn run_set(set: &dyn Set, folder: &Path, progress: &Progress<'_>) -> Result<Outcome, ValidationError> {
    let data = data_path(set, folder);
    if let Some(path) = data.as_deref().filter(|path| !path.exists()) {
        return Ok(Outcome::Skipped(skipped_row(set, path)));
    }
    look(progress)?;
    let options = Options { data: data.as_deref(), ..Options::default() };
    set.run(&options, progress).map(Outcome::Ran)
}

/// Where the data of a set are that is not embedded.
fn data_path(set: &dyn Set, folder: &Path) -> Option<PathBuf> {
    match set.source() {
        Source::Embedded => None,
        Source::Folder(path) | Source::File(path) => Some(folder.join(path)),
    }
}

fn skipped_row(set: &dyn Set, path: &Path) -> OverviewRow {
    OverviewRow {
        set: set.name(),
        cases: 0,
        errors: None,
        coverage: Coverage::default(),
        bound: format!("skipped: no {}", path.display()),
        holds: None,
    }
}

fn exact_row(set: &'static str, cases: usize, holds: bool) -> OverviewRow {
    OverviewRow {
        set,
        cases,
        errors: None,
        coverage: Coverage::default(),
        bound: "figures as worked out, not measured".to_owned(),
        holds: Some(holds),
    }
}

/// The rows of measured sets. A set's interval comes from the cases of all sets, so that all must have run.
fn judge(sets: &[(&'static str, bool, Measured)], coverage_bound: CoverageBound) -> Overview {
    let cases: Vec<Case> = sets.iter().flat_map(|(_, _, measured)| measured.cases.iter().cloned()).collect();
    let others = sets.iter().flat_map(|(_, _, measured)| measured.other_cases.iter().cloned());
    let all: Vec<Case> = cases.iter().cloned().chain(others).collect();
    let row = |&(set, holds, ref measured): &(&'static str, bool, Measured)| {
        let ratios = measured.cases.iter().map(|case| case.predicted.get() / case.measured.get());
        let errors = Errors::of("predicted", ratios);
        let within = measured.bounded_by_group || measured.bounds.keeps(&errors);
        OverviewRow {
            set,
            cases: measured.cases.len(),
            errors: Some(errors),
            coverage: Coverage::of(&coverage::intervals(&measured.cases, &cases)),
            bound: measured.bounds.to_string(),
            holds: Some(holds && within),
        }
    };
    let rows: Vec<OverviewRow> = sets.iter().map(row).collect();
    let coverage = rows.iter().fold(Coverage::default(), |sum, row| sum.and(row.coverage));
    Overview { rows, coverage, coverage_bound, residuals: residuals(&all), cases }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::unwatched;
    use crate::test_reports::report;
    use stepcast_study::predict::interval::committed;

    /// Every set, its bounds, the coverage of intervals, and the committed residuals.
    #[test]
    fn all_bounds_are_kept_and_the_committed_errors_are_what_is_found() {
        let outcomes = sets::all().iter().map(|set| Outcome::Ran(report(set.name()).clone()));
        let overview = Overview::of(outcomes.collect()).unwrap();
        assert_eq!(overview.rows.len(), sets::all().len());
        assert!(overview.holds() && overview.covers() == Some(true), "{overview:#?}");
        let committed = committed();
        assert_eq!(
            committed.len(),
            overview.residuals.len(),
            "run `stepcast validate --errors validation/errors.csv`"
        );
        for (kept, found) in committed.iter().zip(&overview.residuals) {
            assert_eq!((&kept.set, &kept.group, kept.cases), (&found.set, &found.group, found.cases));
            assert!((kept.square - found.square).abs() < 1e-4, "{kept:?} {found:?}");
        }
        documented(&text::markdown(&overview.table()));
    }

    /// The documentation shows this table; `UPDATE_DOCS=1` renews it.
    fn documented(table: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let from = page.find("| set | cases |").unwrap();
        let to = from + page[from..].find("\n\n").unwrap() + 1;
        let renewed = format!("{}{table}{}", &page[..from], &page[to..]);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, renewed).unwrap();
        } else {
            assert!(page == renewed, "run this test with UPDATE_DOCS=1:\n{table}");
        }
    }

    #[test]
    fn sets_without_data_are_skipped() {
        let outside = sets::all().iter().filter(|set| !matches!(set.source(), Source::Embedded));
        let outcomes = outside.map(|set| run_set(*set, Path::new("no such folder"), &unwatched));
        let overview = Overview::of(outcomes.collect::<Result<_, _>>().unwrap()).unwrap();
        assert!(overview.rows.iter().all(|row| row.holds.is_none()), "{overview:#?}");
        let skipped: Vec<&str> = overview.rows.iter().map(|row| row.set).collect();
        assert_eq!(skipped, ["tf-ps", "ddp-gloo", "steps", "parallel-jobs"]);
        assert!(overview.holds() && overview.covers().is_none(), "{overview:#?}");
    }
}
