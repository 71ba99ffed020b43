//! Results in the format of the command line's `--json`.

use crate::problem::Problem;
use pyo3::PyResult;
use serde::Serialize;

/// Indented JSON that ends with a newline.
pub(crate) fn pretty(value: &impl Serialize) -> PyResult<String> {
    Ok(stepcast_report::json::pretty(value).map_err(Problem::from)?)
}
