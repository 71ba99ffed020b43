//! The command line, from Python.

use crate::border::released;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs a command, the first argument being the name of the program, prints its answer and returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    released(py, || Ok(stepcast_cli::main(arguments)))
}

/// What a command prints on standard output and standard error, and its exit code.
#[pyfunction]
pub(crate) fn printed(py: Python<'_>, arguments: Vec<String>) -> PyResult<(String, String, u8)> {
    released(py, || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let printed = stepcast_cli::run(&arguments);
        Ok((printed.stdout, printed.stderr, printed.code))
    })
}
