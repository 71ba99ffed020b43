//! The interface between Python and Stepcast: values in, results and exceptions out.
//!
//! Long computations run without the interpreter's lock, and no error here ends the interpreter. The types of this
//! module are declared in `python/stepcast/_stepcast.pyi`; the modules beside that file use them.

mod answer;
mod ask;
mod border;
mod command;
mod plan;
mod problem;
mod scenario;
mod sweep;
mod value;

use pyo3::prelude::*;

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
    use crate::command::{main, printed};
    #[pymodule_export]
    use crate::plan::PlanSearch;
    #[pymodule_export]
    use crate::scenario::{Figures, Scenario};
    #[pymodule_export]
    use crate::sweep::{Sweep, SweepFile};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
