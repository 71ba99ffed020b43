//! All sets in one table: errors, coverage of 90 % intervals, and whether bounds are kept.

use crate::coverage::{self, Coverage};
use crate::set::{all, check_cancelled};
use crate::{CoverageBound, ErrorBounds, Errors, Evidence, Observer, Options, Report, Set, ValidationError};
use serde::Serialize;
use std::path::Path;
use stepcast_core::text::{self, TextError};
use stepcast_report::table::{Cells, Hint, Table};
use stepcast_study::predict::interval::{Case, Residuals, residuals};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverviewRow {
    pub set: &'static str,
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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Measured sets first, then those predicted from priors, then exact ones, then those that did not run.
    pub rows: Vec<OverviewRow>,
    /// Coverage over all measured sets but those predicted from priors, which have intervals of their own.
    pub coverage: Coverage,
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

    fn new(outcomes: Vec<Outcome>) -> Result<Self, ValidationError> {
        let (mut measured, mut judged, mut exact, mut skipped) = (vec![], vec![], vec![], vec![]);
        for outcome in outcomes {
            let report = match outcome {
                Outcome::Ran(report) => *report,
                Outcome::Skipped(row) => {
                    skipped.push(row);
                    continue;
                }
            };
            let row = |cases, errors, coverage, bound| OverviewRow {
                set: report.set,
                cases,
                errors,
                coverage,
                bound,
                holds: Some(report.holds),
            };
            match report.evidence {
                Evidence::Measured { cases, other_cases, bounds, bounded_by_group } => {
                    measured.push(MeasuredSet {
                        set: report.set,
                        holds: report.holds,
                        cases,
                        other_cases,
                        bounds,
                        bounded_by_group,
                    })
                }
                Evidence::Judged { cases, errors, coverage, bound } => {
                    judged.push(row(cases, Some(errors), coverage, bound));
                }
                Evidence::Exact(cases) => {
                    let bound = "figures as worked out, not measured".to_owned();
                    exact.push(row(cases, None, Coverage::default(), bound));
                }
            }
        }
        let damaged = |error: TextError| ValidationError::Data(format!("coverage.toml: {error}"));
        let bound = text::parse(&crate::records::text("coverage.toml")?).map_err(damaged)?;
        let mut overview = judge(&measured, bound);
        overview.rows.extend(judged.into_iter().chain(exact).chain(skipped));
        Ok(overview)
    }

    pub fn holds(&self) -> bool {
        self.covers() != Some(false) && self.rows.iter().all(|row| row.holds != Some(false))
    }
}

struct MeasuredSet {
    set: &'static str,
    holds: bool,
    cases: Vec<Case>,
    other_cases: Vec<Case>,
    bounds: ErrorBounds,
    bounded_by_group: bool,
}

/// Runs all sets but those whose data are not below `folder`.
pub fn run(folder: &Path, observer: &Observer<'_>) -> Result<Overview, ValidationError> {
    let found = all().iter().map(|set| run_set(set, folder, observer));
    Overview::new(found.collect::<Result<_, _>>()?)
}

enum Outcome {
    Ran(Box<Report>),
    Skipped(OverviewRow),
}

fn run_set(set: &Set, folder: &Path, observer: &Observer<'_>) -> Result<Outcome, ValidationError> {
    let data = set.data_path(folder);
    if let Some(path) = data.as_deref().filter(|path| !path.exists()) {
        return Ok(Outcome::Skipped(OverviewRow {
            set: set.name(),
            cases: 0,
            errors: None,
            coverage: Coverage::default(),
            bound: format!("skipped: no {}", path.display()),
            holds: None,
        }));
    }
    check_cancelled(observer)?;
    let options = Options { data: data.as_deref(), ..Options::default() };
    Ok(Outcome::Ran(Box::new(set.run(&options, observer)?)))
}

/// The rows of measured sets. A set's interval comes from the cases of all sets, so that all must have run.
fn judge(sets: &[MeasuredSet], coverage_bound: CoverageBound) -> Overview {
    let cases: Vec<Case> = sets.iter().flat_map(|set| set.cases.iter().cloned()).collect();
    let others = sets.iter().flat_map(|set| set.other_cases.iter().cloned());
    let all: Vec<Case> = cases.iter().cloned().chain(others).collect();
    let row = |set: &MeasuredSet| {
        let ratios = set.cases.iter().map(|case| case.predicted.get() / case.measured.get());
        let errors = Errors::from_ratios("predicted", ratios);
        let within = set.bounded_by_group || set.bounds.keeps(&errors);
        OverviewRow {
            set: set.set,
            cases: set.cases.len(),
            errors: Some(errors),
            coverage: Coverage::new(&coverage::intervals(&set.cases, &cases)),
            bound: set.bounds.to_string(),
            holds: Some(set.holds && within),
        }
    };
    let rows: Vec<OverviewRow> = sets.iter().map(row).collect();
    let coverage = rows.iter().fold(Coverage::default(), |sum, row| sum.and(row.coverage));
    Overview { rows, coverage, coverage_bound, residuals: residuals(&all), cases }
}

impl Overview {
    /// All sets, with what the columns mean as a note.
    pub fn table(&self) -> Table {
        let mut table =
            Table::new("", ["set", "#cases", "#mean", "#worst", "#bias", "#coverage", "~bound", "holds"]);
        for row in &self.rows {
            table.row(cells(row));
        }
        let bound = self.coverage_bound;
        table.row([
            "all measured".to_owned(),
            self.coverage.cases.to_string(),
            String::new(),
            String::new(),
            String::new(),
            share(self.coverage),
            format!("coverage {:.0} to {:.0} %", 100.0 * bound.least, 100.0 * bound.most),
            verdict(self.covers()),
        ]);
        table.note = self.legend();
        table.hints = vec![Hint::Cases];
        table
    }

    pub fn markdown(&self) -> String {
        let table = self.table();
        format!("# Validation\n\n{}\n{}\n", markdown(&table), table.note)
    }

    /// The residuals as the file that intervals are made from.
    pub fn errors_csv(&self) -> Result<String, ValidationError> {
        let failed = |error: String| ValidationError::Data(format!("errors.csv: {error}"));
        let mut writer = csv::Writer::from_writer(ERRORS_HEADER.as_bytes().to_vec());
        for row in &self.residuals {
            writer.serialize(row).map_err(|error| failed(error.to_string()))?;
        }
        let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
    }

    fn legend(&self) -> String {
        let mut text =
            "Errors in percent of the measured throughput, each case predicted by figures fitted without it. \
             Coverage: measured values within 90 % intervals made from the errors on other sets"
                .to_owned();
        if self.coverage.by_group > 0 {
            text += &format!(
                "; where no other set validates the method (*, {} cases), from the errors on other networks or \
                 families of the same set. Intervals made from other sets alone, whatever their methods, hold {:.0} % of all values",
                self.coverage.by_group,
                100.0 * self.coverage.inside_by_sets as f64 / self.coverage.cases.max(1) as f64
            );
        }
        text + "."
    }
}

fn markdown(table: &Table) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(table.columns.iter().map(|column| column.title.as_str()).collect());
    for column in &table.columns {
        text += if column.cells == Cells::Numbers { "|---:" } else { "|---" };
    }
    text += "|\n";
    for row in &table.rows {
        text += &line(row.cells.iter().map(String::as_str).collect());
    }
    text
}

const ERRORS_HEADER: &str = "\
# What methods got wrong on measured runs that they had not seen: ln(measured / predicted) of the throughput, by method,
# regime, set, and network or configuration. Made by `stepcast validate --errors validation/errors.csv`; the model error of
# every interval comes from here (docs/intervals.md). square: mean square, less that of what simulated runs differ by.
";

fn cells(row: &OverviewRow) -> [String; 8] {
    let error = |percent: Option<f64>| percent.map_or("–".to_owned(), |percent| format!("{percent:.1}"));
    [
        row.set.to_owned(),
        row.cases.to_string(),
        error(row.errors.map(|errors| errors.mean)),
        error(row.errors.map(|errors| errors.worst)),
        row.errors.map_or("–".to_owned(), |errors| format!("{:+.1}", errors.bias)),
        share(row.coverage),
        row.bound.clone(),
        verdict(row.holds),
    ]
}

fn share(coverage: Coverage) -> String {
    let mark = if coverage.by_group > 0 { "*" } else { "" };
    coverage.share().map_or("–".to_owned(), |share| format!("{:.0} %{mark}", 100.0 * share))
}

fn verdict(holds: Option<bool>) -> String {
    match holds {
        None => "–",
        Some(true) => "ok",
        Some(false) => "MISSED",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Section;
    use crate::set::test_reports::{figures, report, unwatched};
    use crate::template::find;
    use serde_json::Value;
    use stepcast_study::predict::interval::committed;

    /// Every set, its bounds, the coverage of intervals, and the committed residuals.
    #[test]
    fn all_bounds_are_kept_and_the_committed_errors_are_what_is_found() {
        let outcomes = all().iter().map(|set| Outcome::Ran(Box::new(report(set.name()).clone())));
        let overview = Overview::new(outcomes.collect()).unwrap();
        assert_eq!(overview.rows.len(), all().len());
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
        documented(&overview.table());
    }

    /// How many figures sets have, or cases of a check: fewer would mean that some were skipped.
    #[test]
    fn every_set_has_all_its_figures() {
        for (set, path, count) in [
            ("zeng2023", "table1", 12),
            ("zeng2023", "cells", 60),
            ("zeng2023", "sweeps", 131),
            ("liu2022", "checks.0.cases", 6),
            ("liu2022", "checks.3.cases", 6),
            ("liu2022", "checks.4.cases", 18),
            ("liu2022", "checks.5.cases", 7),
            ("liu2022", "tables", 20),
            ("hkbu", "rows", 60),
            ("hkbu", "rankings", 12),
            ("tf-k80", "rows", 6),
            ("tf-saturation", "rows", 4),
            ("cakelab", "rows", 29),
            ("tf-ps", "rows", 24),
            ("ddp-gloo", "rows", 36),
            ("published-scaling", "runs", 2863),
            ("steps", "rows", 38),
            ("single-gpu", "runs", 564),
            ("oyama2016", "checks.0.cases", 20),
            ("oyama2016", "checks.1.cases", 90),
            ("oyama2016", "checks.3.cases", 5),
            ("oyama2016", "table10", 6),
            ("oyama2016", "simulated", 9),
            ("li2020", "checks.0.cases", 20),
            ("li2020", "checks.1.cases", 20),
            ("li2020", "checks.2.cases", 9),
            ("li2020", "checks.3.cases", 7),
        ] {
            let figures = figures(set);
            let found = find(&figures, path).unwrap();
            let found = found.as_array().map_or_else(|| found.as_u64().unwrap() as usize, Vec::len);
            assert_eq!(found, count, "{set}, {path}");
        }
    }

    /// A row that an input was fitted on is predicted nearly exactly, and figures fitted to other models at least halve the
    /// errors of DDP jobs.
    #[test]
    fn what_was_fitted_fits() {
        for (set, count, most) in [("hkbu", 1, 1e-3), ("tf-saturation", 2, 0.03), ("cakelab", 1, 0.03)] {
            let figures = figures(set);
            let rows = figures["rows"].as_array().unwrap();
            let fitted: Vec<&Value> = rows.iter().filter(|row| row["fitted"] == true).collect();
            assert_eq!(fitted.len(), count, "{set}");
            for row in fitted {
                let error = row["predicted"].as_f64().unwrap() / row["measured"].as_f64().unwrap() - 1.0;
                assert!(error.abs() < most, "{set}: {row}");
            }
        }
        let jobs = figures("ddp-gloo");
        let mean = |method: usize| jobs["errors"][method]["mean"].as_f64().unwrap();
        assert!(mean(0) < 0.5 * mean(2), "{:#?}", jobs["errors"]);
    }

    /// The documentation shows this table, and below a comment such as `<!-- llm-runs: By family -->` that table of that set's report;
    /// `UPDATE_DOCS=1` renews them.
    fn documented(overview: &Table) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (mut renewed, mut rest) = (String::new(), page.as_str());
        while let Some((before, after)) = rest.split_once("<!-- ") {
            let (place, table) = after.split_once(" -->\n").unwrap();
            let shown = match place.split_once(": ") {
                None => markdown(overview),
                Some((set, title)) => markdown(table_of(set, title)),
            };
            renewed += &format!("{before}<!-- {place} -->\n{shown}");
            rest = &table[table.find("\n\n").unwrap() + 1..];
        }
        renewed += rest;
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, renewed).unwrap();
        } else {
            assert!(page == renewed, "run this test with UPDATE_DOCS=1");
        }
    }

    fn table_of(set: &str, title: &str) -> &'static Table {
        let tables = report(set).sections.iter().filter_map(|section| match section {
            Section::Table(table) => Some(table),
            Section::Text { .. } => None,
        });
        tables.into_iter().find(|table| table.title == title).unwrap()
    }

    #[test]
    fn sets_without_data_are_skipped() {
        let outside = all().iter().filter(|set| set.data_path(Path::new("")).is_some());
        let outcomes = outside.map(|set| run_set(set, Path::new("no such folder"), &unwatched));
        let overview = Overview::new(outcomes.collect::<Result<_, _>>().unwrap()).unwrap();
        assert!(overview.rows.iter().all(|row| row.holds.is_none()), "{overview:#?}");
        let skipped: Vec<&str> = overview.rows.iter().map(|row| row.set).collect();
        assert_eq!(skipped, ["tf-ps", "ddp-gloo", "steps", "parallel-jobs"]);
        assert!(overview.holds() && overview.covers().is_none(), "{overview:#?}");
    }
}
