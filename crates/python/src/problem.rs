//! What went wrong, as an exception with key, reason, remedy and place.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::any::Any;
use stepcast_core::invalid::Invalid;
use stepcast_core::scenario::DocumentError;
use stepcast_study::fit::DataError;
use stepcast_study::explore::sweep::{Unusable, VaryError};
use stepcast_validation::ValidationError;
use stepcast_trace::TraceError;

/// The exceptions of `stepcast.errors`.
#[derive(Debug, Clone, Copy)]
enum Kind {
    InputError,
    InternalError,
}

/// An exception to be.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: Kind,
    reason: String,
    remedy: String,
    key: String,
    place: String,
}

impl Problem {
    pub(crate) fn input(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (key, place) = (String::new(), String::new());
        Self { kind: Kind::InputError, reason: reason.into(), remedy: remedy.into(), key, place }
    }

    /// A mistake of ours, with what is known of it.
    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        let remedy = "this is a mistake in Stepcast: please report it with the scenario";
        Self { kind: Kind::InternalError, ..Self::input(reason, remedy) }
    }

    /// What a panic said.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::internal(text.unwrap_or_else(|| "something unexpected happened".to_owned()))
    }

    pub(crate) fn at_key(self, key: impl Into<String>) -> Self {
        Self { key: key.into(), ..self }
    }

    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    /// Told of the argument `name`, unless a key is known.
    pub(crate) fn in_argument(self, name: &str) -> Self {
        if self.key.is_empty() { self.at_key(name) } else { self }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::input(invalid.reason, invalid.remedy).at_key(invalid.path.to_string())
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        let place = match error.line_and_column() {
            Some((line, column)) => format!("{}:{line}:{column}", error.origin),
            None => error.origin,
        };
        Self::input(error.reason, error.remedy).at_key(error.path.to_string()).at(place)
    }
}

impl From<VaryError> for Problem {
    fn from(error: VaryError) -> Self {
        match error {
            VaryError::Axis { axis, invalid } => Self::from(invalid).at(format!("vary: {axis}")),
            VaryError::Document(error) => error.into(),
        }
    }
}

impl From<TraceError> for Problem {
    fn from(error: TraceError) -> Self {
        Self::input(error.reason, error.remedy).at(error.place)
    }
}

impl From<DataError> for Problem {
    fn from(error: DataError) -> Self {
        Self::input(error.reason, error.remedy).at(error.place)
    }
}

impl From<Unusable> for Problem {
    fn from(error: Unusable) -> Self {
        Self::input(error.reason, error.remedy)
    }
}

impl From<ValidationError> for Problem {
    fn from(error: ValidationError) -> Self {
        match error {
            ValidationError::Scenario(invalid) => invalid.into(),
            ValidationError::Runs(error) => error.into(),
            ValidationError::Measurements(error) => error.into(),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<Problem> for PyErr {
    fn from(problem: Problem) -> Self {
        Python::attach(|py| {
            let Problem { kind, reason, remedy, key, place } = problem;
            let raised = || {
                let class = py.import("stepcast.errors")?.getattr(format!("{kind:?}"))?;
                let arguments = PyTuple::new(py, [reason, remedy, key, place])?;
                class.call1(arguments)
            };
            raised().map_or_else(|error| error, Self::from_value)
        })
    }
}
