//! The interface between Python and Stepcast: values in, results and exceptions out.
//!
//! Long computations run without the interpreter's lock, and no error here ends the interpreter. The types of this
//! module are declared in `python/stepcast/_stepcast.pyi`; the modules beside that file use them.

mod answer;
mod ask;
mod border;
mod problem;
mod scenario;
mod sweep;
mod value;

use border::released;
use pyo3::prelude::*;
use std::ffi::OsString;

/// The extension module behind `python/stepcast`.
#[pymodule]
mod _stepcast {
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::ask::{
        acceptance, check, compare, fit, fuse, import_trace, methods, predict, search, validate,
    };
    #[pymodule_export]
    use crate::scenario::{Figures, Scenario};
    #[pymodule_export]
    use crate::sweep::{PlanSearch, Sweep, SweepFile};
    #[pymodule_export]
    use crate::{main, printed};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Runs a command, the first argument being the name of the program, prints its answer and returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    released(py, || Ok(stepcast_cli::main(arguments)))
}

/// Output of a command on standard output and standard error, and its exit code.
#[pyfunction]
fn printed(py: Python<'_>, arguments: Vec<String>) -> PyResult<(String, String, u8)> {
    released(py, || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let printed = stepcast_cli::run(&arguments);
        Ok((printed.stdout, printed.stderr, printed.code))
    })
}
