//! What validation must achieve: `validation/bounds.toml`, with one table for each set.

use crate::{Errors, ValidationError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use stepcast_report::table::{Column, Table};
use stepcast_validation_data::BOUNDS;

/// The table of the file that bounds the coverage of intervals.
pub(crate) const COVERAGE: &str = "coverage";

/// Range in which the share of measured values within their 90 % intervals must lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageBound {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Upper bounds of a set's errors, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorBounds {
    /// Of the mean absolute error.
    pub mean: f64,
    /// Of the largest absolute error.
    pub worst: f64,
}

impl ErrorBounds {
    /// Whether the errors are within the bounds.
    pub fn keeps(self, errors: &Errors) -> bool {
        errors.mean <= self.mean && errors.worst <= self.worst
    }
}

impl fmt::Display for ErrorBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean at most {} %, worst at most {} %", self.mean, self.worst)
    }
}

/// One bound and whether it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundCheck {
    /// The bounded quantity.
    pub what: String,
    /// The bound, in words.
    pub bound: String,
    /// The value that was found.
    pub found: String,
    /// Whether the bound is kept.
    pub holds: bool,
}

impl BoundCheck {
    /// How many of `checks` hold: "11 of 11 bounds kept".
    pub(crate) fn verdict(checks: &[Self]) -> String {
        format!("{} of {} bounds kept", checks.iter().filter(|check| check.holds).count(), checks.len())
    }

    /// All of them, each with its verdict.
    pub(crate) fn table(checks: &[Self]) -> Table {
        let mut table = Table::new(
            "Bounds",
            [Column::words("bound"), Column::numbers("wanted"), Column::numbers("found"), Column::names("")],
        );
        for check in checks {
            let verdict = if check.holds { "ok" } else { "MISSED" };
            table.row([check.what.clone(), check.bound.clone(), check.found.clone(), verdict.to_owned()]);
        }
        table
    }
}

/// The bounds of the set `name`, in the set's own form.
pub(crate) fn of<T: DeserializeOwned>(name: &str) -> Result<T, ValidationError> {
    let damaged = |error: String| ValidationError::Data(format!("bounds.toml: {error}"));
    let mut file: toml::Table = toml::from_str(BOUNDS).map_err(|error| damaged(error.to_string()))?;
    let bounds = file.remove(name).ok_or_else(|| damaged(format!("[{name}] is missing")))?;
    bounds.try_into().map_err(|error: toml::de::Error| damaged(format!("[{name}]: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets;

    #[test]
    fn every_set_has_bounds_and_every_bound_has_a_set() {
        let file: toml::Table = toml::from_str(BOUNDS).unwrap();
        let mut bounded: Vec<&str> = file.keys().map(String::as_str).filter(|key| *key != COVERAGE).collect();
        let mut names: Vec<&str> = sets::all().iter().map(|set| set.name()).collect();
        bounded.sort_unstable();
        names.sort_unstable();
        assert_eq!(bounded, names);
    }

    #[test]
    fn a_missed_bound_is_marked() {
        let check = |holds| BoundCheck {
            what: "mean error".to_owned(),
            bound: "0 to 4 %".to_owned(),
            found: "5 %".to_owned(),
            holds,
        };
        let table = BoundCheck::table(&[check(true), check(false)]);
        let verdicts: Vec<&str> = table.rows.iter().map(|row| row.cells[3].as_str()).collect();
        assert_eq!(verdicts, ["ok", "MISSED"]);
    }
}
