//! A scenario in Python, validated when it is created and immutable afterwards, and the figures of one prediction.

use crate::border::{interruptible, on_pool, released, until};
use crate::problem::{Problem, keyword, pretty};
use crate::value;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use stepcast_core::method::Method;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::explore::sweep::PointFigures;
use stepcast_study::request::Folder;
use stepcast_study::{CancelCheck, MethodChoice, Request, Stopped, never_cancelled};

/// A model, a cluster and a strategy.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct Scenario {
    pub(crate) request: Request,
    pub(crate) resolved: Arc<stepcast_core::scenario::Scenario>,
    packed: OnceLock<String>,
}

impl Scenario {
    pub(crate) fn from_request(py: Python<'_>, request: Request) -> PyResult<Self> {
        let (request, resolved) = released(py, move || {
            let resolved = request.scenario()?;
            Ok((request, resolved))
        })?;
        let notes = request.take_notes();
        if !notes.is_empty() {
            let warn = py.import("warnings")?.getattr("warn")?;
            for note in notes {
                warn.call1((note.worded(keyword),))?;
            }
        }
        Ok(Self { request, resolved, packed: OnceLock::new() })
    }

    /// A self-contained text that is equal for equivalent scenarios, used for comparison and pickling.
    fn packed(&self) -> PyResult<&str> {
        if let Some(packed) = self.packed.get() {
            return Ok(packed);
        }
        let packed = self.request.packed().map_err(Problem::from)?;
        Ok(self.packed.get_or_init(|| packed))
    }

    /// The request with further overrides.
    pub(crate) fn asked_with(&self, changes: impl IntoIterator<Item = Edit>) -> Request {
        self.request.changed(changes)
    }
}

/// Makes a request from nothing, a path, a text or a mapping.
fn request(
    source: Option<&Bound<'_, PyAny>>,
    folder: Option<PathBuf>,
    changes: Vec<Edit>,
) -> PyResult<Request> {
    let beside = || Folder::new(folder.clone().unwrap_or_default());
    let Some(source) = source else {
        return Ok(match changes.is_empty() {
            true => Request::quick_start(changes),
            false => Request::new(Document::new("scenario", ""), beside(), changes),
        });
    };
    if source.is_instance_of::<PyString>() {
        let source: String = source.extract()?;
        // A path contains none of these characters; a text contains at least one.
        if source.contains(['\n', '=', '[']) || source.trim().is_empty() {
            return Ok(Request::new(Document::new("scenario", source), beside(), changes));
        }
        return Ok(Request::open(&source, changes).map_err(Problem::from)?);
    }
    if source.cast::<PyMapping>().is_ok() {
        let text = value::document(source)?;
        return Ok(Request::new(Document::new("scenario", text), beside(), changes));
    }
    let Ok(path) = source.extract::<PathBuf>() else {
        let kind = source.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a scenario is made from a path, TOML text, a dict or keywords, not from {kind}"
        )));
    };
    Ok(Request::open(&path.to_string_lossy(), changes).map_err(Problem::from)?)
}

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (source=None, /, *, set=None, folder=None, **keywords))]
    fn new(
        py: Python<'_>,
        source: Option<&Bound<'_, PyAny>>,
        set: Option<&Bound<'_, PyAny>>,
        folder: Option<PathBuf>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let request = request(source, folder, value::changes(set, keywords)?)?;
        Self::from_request(py, request)
    }

    /// A scenario of measured steps; `profile` is the text of a profile file.
    #[staticmethod]
    #[pyo3(signature = (profile, name, /, *, set=None, **keywords))]
    fn of_profile(
        py: Python<'_>,
        profile: &str,
        name: &str,
        set: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let profile = stepcast_trace::parse_profile(profile.as_bytes(), name).map_err(Problem::from)?;
        let changes = value::changes(set, keywords)?;
        let request = Request::from_profile(name, profile, changes).map_err(Problem::from)?;
        Self::from_request(py, request)
    }

    /// Restores a pickled scenario.
    #[staticmethod]
    fn _unpack(py: Python<'_>, packed: &str) -> PyResult<Self> {
        Self::from_request(py, Request::unpack(packed).map_err(Problem::from)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let unpack = py.get_type::<Self>().getattr("_unpack")?;
        Ok((unpack, PyTuple::new(py, [self.packed()?])?))
    }

    fn __hash__(&self) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.packed()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => Ok(self.packed()? == other.get().packed()?),
            Err(_) => Ok(false),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Scenario {} on {} workers>", self.resolved.name(), self.resolved.cluster.workers())
    }

    /// The scenario with overrides.
    #[pyo3(signature = (*, set=None, **keywords))]
    fn changed(
        &self,
        py: Python<'_>,
        set: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::from_request(py, self.asked_with(value::changes(set, keywords)?))
    }

    /// The scenario with this number of workers.
    fn resized(&self, py: Python<'_>, workers: u32) -> PyResult<Self> {
        Self::from_request(py, self.request.resized(workers).map_err(Problem::from)?)
    }

    #[getter]
    fn name(&self) -> &str {
        self.resolved.name()
    }

    #[getter]
    fn workers(&self) -> u64 {
        self.resolved.cluster.workers()
    }

    /// Parameters of the model.
    #[getter]
    fn parameters(&self) -> u64 {
        self.resolved.workload.parameters
    }

    /// The scenario as written, without comments.
    fn to_toml(&self) -> PyResult<String> {
        let file = self.request.file().map_err(Problem::from)?;
        Ok(toml::to_string(&file).map_err(|error| Problem::internal(error.to_string()))?)
    }

    /// The scenario with every default filled in, as JSON.
    fn to_json(&self) -> PyResult<String> {
        pretty(&self.resolved.to_file())
    }

    /// The figures of one prediction.
    #[pyo3(signature = (method="auto"))]
    fn figures(slf: Py<Self>, py: Python<'_>, method: &str) -> PyResult<Figures> {
        let asked = MethodChoice::named(method).map_err(Problem::from)?;
        let scenario = slf.get();
        let refused = |why| Problem::from(scenario.request.refused(why));
        let method = asked.method(&scenario.resolved).map_err(refused)?;
        // A thread for every closed form would take longer than most of them.
        let figures = match method.is_quick() {
            true => released(py, || scenario.figures_by(method, &never_cancelled))?,
            false => interruptible(py, move |stop| {
                on_pool(None, || slf.get().figures_by(method, &|| until(stop)))
            })?,
        };
        Ok(Figures(figures))
    }
}

impl Scenario {
    /// The figures of a prediction, as long as they are wanted.
    fn figures_by(
        &self,
        method: &'static dyn Method,
        wanted: &CancelCheck<'_>,
    ) -> Result<PointFigures, Problem> {
        match MethodChoice::One(method).figures(&self.resolved, wanted) {
            ControlFlow::Continue(Ok(figures)) => Ok(figures),
            ControlFlow::Continue(Err(why)) => {
                Err(Problem::input(why.refused, "change the scenario, or choose another method"))
            }
            ControlFlow::Break(()) => Err(Stopped::Cancelled.into()),
        }
    }
}

/// Figures of one point.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct Figures(pub(crate) PointFigures);

#[pymethods]
impl Figures {
    #[getter]
    fn method(&self) -> &'static str {
        self.0.method
    }

    #[getter]
    fn workers(&self) -> u64 {
        self.0.workers
    }

    #[getter]
    fn nodes(&self) -> u64 {
        self.0.nodes
    }

    #[getter]
    fn iteration_s(&self) -> f64 {
        self.0.iteration.get()
    }

    #[getter]
    fn throughput_samples_per_s(&self) -> f64 {
        self.0.throughput.get()
    }

    #[getter]
    fn scaling_factor(&self) -> f64 {
        self.0.scaling_factor
    }

    #[getter]
    fn epoch_s(&self) -> Option<f64> {
        self.0.epoch.map(|time| time.get())
    }

    #[getter]
    fn training_s(&self) -> Option<f64> {
        self.0.training.map(|time| time.get())
    }

    #[getter]
    fn cost(&self) -> Option<f64> {
        self.0.cost
    }

    #[getter]
    fn staleness(&self) -> Option<f64> {
        self.0.staleness
    }

    #[getter]
    fn minibatch(&self) -> Option<f64> {
        self.0.minibatch
    }

    #[getter]
    fn fits(&self) -> bool {
        self.0.fits
    }

    #[getter]
    fn warnings(&self) -> Vec<&'static str> {
        self.0.warnings.clone()
    }

    /// JSON in the format of a sweep's row.
    fn to_json(&self) -> PyResult<String> {
        pretty(&self.0)
    }

    fn __repr__(&self) -> String {
        let (step, rate) = (self.0.iteration.human(), self.0.throughput.human());
        format!("<Figures {step} a step, {rate}, by {}>", self.0.method)
    }
}
