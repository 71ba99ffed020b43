//! Answers as the command line prints them with `--json`.

use crate::problem::Problem;
use pyo3::PyResult;
use serde::Serialize;

/// Indented JSON, its last line ended.
pub(crate) fn pretty(value: &impl Serialize) -> PyResult<String> {
    Ok(serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Problem::from)?)
}
