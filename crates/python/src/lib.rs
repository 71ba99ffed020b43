//! The border between Python and Stepcast: values in, answers and exceptions out.
//!
//! Whatever takes long runs without the interpreter's lock; nothing that goes wrong here ends the interpreter. What
//! Python code sees of this is typed in `python/stepcast/_stepcast.pyi` and used by the modules beside it.

mod answer;
mod ask;
mod border;
mod figures;
mod json;
mod problem;
mod scenario;
mod sweep;
mod value;

use pyo3::prelude::*;

/// What `python/stepcast` is made of.
#[pymodule]
mod _stepcast {
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::ask::{compare, fit, fuse, import_trace, methods, predict, search, validate};
    #[pymodule_export]
    use crate::figures::Figures;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::sweep::{Sweep, SweepFile};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
