//! Results in the format of the command line's `--json`.

use crate::problem::Problem;
use pyo3::PyResult;
use serde::Serialize;

/// Indented JSON that ends with a newline.
pub(crate) fn pretty(value: &impl Serialize) -> PyResult<String> {
    Ok(serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Problem::from)?)
}
