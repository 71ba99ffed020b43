//! What goes back to Python: JSON, or errors as exceptions with key, reason, remedy and position.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Serialize;
use std::any::Any;
use stepcast_core::fault::{Excerpt, Fault, Remedies, Remedy, RequestOption};
use stepcast_study::Stopped;
use stepcast_study::explore::sweep::VaryError;
use stepcast_validation::ValidationError;

/// The exceptions of `stepcast.errors`.
#[derive(Debug, Clone, Copy)]
enum ExceptionKind {
    InputError,
    InternalError,
}

/// An error that will be raised as an exception.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: ExceptionKind,
    reason: String,
    remedy: Remedies,
    key: String,
    place: String,
}

impl Problem {
    pub(crate) fn input(reason: impl Into<String>, remedy: impl Into<Remedies>) -> Self {
        let (key, place) = (String::new(), String::new());
        Self { kind: ExceptionKind::InputError, reason: reason.into(), remedy: remedy.into(), key, place }
    }

    /// An error in Stepcast itself, with details.
    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        let remedy = "this is a mistake in Stepcast: please report it with the scenario";
        Self { kind: ExceptionKind::InternalError, ..Self::input(reason, remedy) }
    }

    /// The message of a panic.
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

    /// Names the argument `name` as the cause, unless a key is known.
    pub(crate) fn in_argument(self, name: &str) -> Self {
        if self.key.is_empty() { self.at_key(name) } else { self }
    }
}

/// A remedy as a keyword of the package's functions; `None` to use the common wording.
pub(crate) fn keyword(remedy: &Remedy) -> Option<String> {
    match remedy {
        Remedy::SetKey { key, value } => Some(format!("use `set={{\"{key}\": \"{value}\"}}`")),
        Remedy::UseMethod { method } => Some(format!("use `method=\"{method}\"`")),
        Remedy::GiveOption { option, value, purpose } => {
            let value = match (option, value.as_deref()) {
                (RequestOption::Force | RequestOption::Resume, _) => "True".to_owned(),
                (RequestOption::Batch | RequestOption::Budget, Some(number)) => number.to_owned(),
                (RequestOption::How | RequestOption::Device, Some(text)) => format!("\"{text}\""),
                (RequestOption::Vary | RequestOption::Data | RequestOption::MaxMemory, _) => "...".to_owned(),
                (RequestOption::Devices, None) => "{\"a100\": 2.5}".to_owned(),
                _ => return None,
            };
            Some(format!("use `{}={value}` {purpose}", option.name().replace('-', "_")).trim_end().to_owned())
        }
        Remedy::NameArtefact { fits } => {
            let calls = Remedy::alternatives(fits, |fit| format!("`stepcast.fit(\"{fit}\", ...)`"));
            let calls = if calls.is_empty() { "`stepcast.fit`" } else { &calls };
            Some(format!("name a file that {calls} has written"))
        }
        Remedy::ImportRecording => Some("make a profile with `stepcast.import_trace`".to_owned()),
        Remedy::RunQuickStart => Some("call `stepcast.predict()` for the built-in quick start".to_owned()),
        _ => None,
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let place = match fault.excerpt().and_then(Excerpt::line_and_column) {
            Some((line, column)) => format!("{}:{line}:{column}", fault.origin()),
            None => fault.origin().to_owned(),
        };
        Self::input(fault.reason, fault.remedy).at_key(fault.key.to_string()).at(place)
    }
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Fault(fault) => fault.into(),
            Stopped::Cancelled => Self::internal(stopped.to_string()),
        }
    }
}

impl From<VaryError> for Problem {
    fn from(error: VaryError) -> Self {
        match error {
            VaryError::Axis { axis, fault } => Self::from(fault).at(format!("vary: {axis}")),
            VaryError::Document(error) => error.into(),
        }
    }
}

impl From<ValidationError> for Problem {
    fn from(error: ValidationError) -> Self {
        match error {
            ValidationError::Fault(fault) => fault.into(),
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
                let data = serde_json::to_string(remedy.all()).unwrap_or_default();
                let arguments = PyTuple::new(py, [reason, remedy.worded(keyword), key, place, data])?;
                class.call1(arguments)
            };
            raised().map_or_else(|error| error, Self::from_value)
        })
    }
}

/// Indented JSON that ends with a newline, as the command line writes it.
pub(crate) fn pretty(value: &impl Serialize) -> PyResult<String> {
    Ok(stepcast_report::json::pretty(value).map_err(Problem::from)?)
}
