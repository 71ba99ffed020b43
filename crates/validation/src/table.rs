//! All sets in one table: errors, coverage of 90 % intervals, and whether bounds are kept.

use super::coverage::{self, Coverage};
use super::{
    CoverageBound, ErrorBounds, Errors, ValidationError, bounds, ddp_gloo, hkbu, liu2022, published, steps,
    tf_ps, zeng2023,
};
use serde::Serialize;
use std::path::{Path, PathBuf};
use stepcast_study::predict::interval::{Case, Residuals, residuals};

/// What a set found.
#[derive(Debug, Clone)]
struct Found {
    set: &'static str,
    /// Each predicted without its own network or configuration.
    cases: Vec<Case>,
    /// The same runs predicted by other methods.
    others: Vec<Case>,
    bounds: ErrorBounds,
    /// Whether all bounds are kept, those beyond mean and worst error included.
    holds: bool,
}

/// One set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableRow {
    /// Its name.
    pub set: &'static str,
    /// How many cases.
    pub cases: usize,
    /// Errors in percent; none where nothing was measured.
    pub errors: Option<Errors>,
    /// How many measured values lie in 90 % intervals.
    pub coverage: Coverage,
    /// The bounds in words, or why the set did not run.
    pub bound: String,
    /// Whether all of them are kept; none if the set did not run.
    pub holds: Option<bool>,
}

/// All sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// One set each.
    pub rows: Vec<TableRow>,
    /// All sets together.
    pub coverage: Coverage,
    /// What coverage must be.
    pub coverage_bound: CoverageBound,
    /// What methods got wrong, by regime and group: the rows of `validation/errors.csv`.
    #[serde(skip)]
    pub residuals: Vec<Residuals>,
    /// Every measured run with its prediction.
    #[serde(skip)]
    pub cases: Vec<Case>,
}

impl Table {
    /// Whether coverage of all sets together is within its bounds; none if a set did not run.
    pub fn covers(&self) -> Option<bool> {
        let CoverageBound { least, most } = self.coverage_bound;
        let all = self.rows.iter().all(|row| row.holds.is_some());
        self.coverage.share().filter(|_| all).map(|share| (least..=most).contains(&share))
    }

    /// Whether every bound is kept.
    pub fn holds(&self) -> bool {
        self.covers() != Some(false) && self.rows.iter().all(|row| row.holds != Some(false))
    }
}

/// Where the data are that the binary does not hold, below the folder `validation`.
const TF_PS: &str = "tf-ps";
const DDP_GLOO: &str = "ddp-gloo/ddp_gloo.jsonl";
const STEPS: &str = "steps/steps_h200.jsonl.gz";

/// Runs all sets; those whose data are not below `folder` are left out. `progress` is told how far the longest one is.
pub fn run(folder: &Path, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Table, ValidationError> {
    let wanted = bounds::read()?;
    let mut found = vec![zeng2023_set(&wanted)?, hkbu_set(&wanted)?];
    for set in published::SETS {
        let report = published::run(set)?;
        found.push(Found {
            set,
            cases: report.cases(),
            others: Vec::new(),
            bounds: report.bounds,
            holds: report.holds(),
        });
    }
    let mut absent = Vec::new();
    let mut at = |set: &'static str, path: &str| -> Option<PathBuf> {
        let path = folder.join(path);
        if path.exists() {
            return Some(path);
        }
        absent.push((set, format!("skipped: no {}", path.display())));
        None
    };
    if let Some(path) = at("tf-ps", TF_PS) {
        let report = tf_ps::run(&path, tf_ps::Options::default(), progress)?;
        let (cases, others) = (report.cases(), report.other_cases());
        found.push(Found { set: "tf-ps", cases, others, bounds: report.bounds, holds: report.holds() });
    }
    if let Some(path) = at("ddp-gloo", DDP_GLOO) {
        let report = ddp_gloo::run(&path)?;
        let (cases, bounds, holds) = (report.cases(), report.bounds, report.holds());
        found.push(Found { set: "ddp-gloo", cases, others: Vec::new(), bounds, holds });
    }
    if let Some(path) = at("steps", STEPS) {
        let report = steps::run(&path, None)?;
        let (cases, bounds, holds) = (report.cases(), report.bounds, report.holds());
        found.push(Found { set: "steps", cases, others: Vec::new(), bounds, holds });
    }
    let mut table = judge(&found, wanted.coverage);
    table.rows.push(liu2022_row()?);
    table.rows.extend(absent.into_iter().map(|(set, why)| TableRow {
        set,
        cases: 0,
        errors: None,
        coverage: Coverage::default(),
        bound: why,
        holds: None,
    }));
    Ok(table)
}

fn zeng2023_set(wanted: &bounds::Bounds) -> Result<Found, ValidationError> {
    let report = zeng2023::run()?;
    Ok(Found {
        set: "zeng2023",
        cases: report.cases()?,
        others: report.other_cases()?,
        bounds: ErrorBounds { mean: wanted.zeng2023.mean, worst: wanted.zeng2023.worst },
        holds: report.holds(),
    })
}

fn hkbu_set(wanted: &bounds::Bounds) -> Result<Found, ValidationError> {
    let report = hkbu::run()?;
    Ok(Found {
        set: "hkbu",
        cases: report.cases(),
        others: Vec::new(),
        bounds: ErrorBounds { mean: wanted.hkbu.mean, worst: wanted.hkbu.worst },
        holds: report.holds(),
    })
}

/// Equations against exact values: nothing there was measured.
fn liu2022_row() -> Result<TableRow, ValidationError> {
    let report = liu2022::run()?;
    Ok(TableRow {
        set: "liu2022",
        cases: report.checks.iter().map(|check| check.cases).sum(),
        errors: None,
        coverage: Coverage::default(),
        bound: "figures as worked out, not measured".to_owned(),
        holds: Some(report.holds()),
    })
}

fn judge(found: &[Found], coverage_bound: CoverageBound) -> Table {
    let judged: Vec<Case> = found.iter().flat_map(|found| found.cases.iter().cloned()).collect();
    let mut all = judged.clone();
    all.extend(found.iter().flat_map(|found| found.others.iter().cloned()));
    let row = |found: &Found| {
        let ratios = found.cases.iter().map(|case| case.predicted.get() / case.measured.get());
        let errors = Errors::of("predicted", ratios);
        TableRow {
            set: found.set,
            cases: found.cases.len(),
            errors: Some(errors),
            coverage: Coverage::of(&coverage::intervals(&found.cases, &judged)),
            bound: found.bounds.to_string(),
            holds: Some(found.holds && within(found, &errors)),
        }
    };
    let rows: Vec<TableRow> = found.iter().map(row).collect();
    let coverage = rows.iter().fold(Coverage::default(), |sum, row| sum.and(row.coverage));
    Table { rows, coverage, coverage_bound, residuals: residuals(&all), cases: judged }
}

/// Steps are bounded by groups, in their own report; all others by mean and worst.
fn within(found: &Found, errors: &Errors) -> bool {
    found.set == "steps" || found.bounds.keeps(errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_study::predict::interval::committed;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation")
    }

    /// Every set, its bounds, the coverage of intervals, and the committed residuals.
    #[test]
    fn all_bounds_are_kept_and_the_committed_errors_are_what_is_found() {
        let table = run(&folder(), &|_, _| ()).unwrap();
        assert_eq!(table.rows.len(), 9);
        assert!(table.holds() && table.covers() == Some(true), "{table:#?}");
        let committed = committed();
        assert_eq!(
            committed.len(),
            table.residuals.len(),
            "run `stepcast validate --errors validation/errors.csv`"
        );
        for (kept, found) in committed.iter().zip(&table.residuals) {
            assert_eq!((&kept.set, &kept.group, kept.cases), (&found.set, &found.group, found.cases));
            assert!((kept.square - found.square).abs() < 1e-4, "{kept:?} {found:?}");
        }
    }

    #[test]
    fn absent_data_are_told() {
        let table = run(Path::new("no such folder"), &|_, _| ()).unwrap();
        let skipped: Vec<&str> =
            table.rows.iter().filter(|row| row.holds.is_none()).map(|row| row.set).collect();
        assert_eq!(skipped, ["tf-ps", "ddp-gloo", "steps"]);
        assert!(table.holds() && table.covers().is_none(), "{table:#?}");
    }
}
