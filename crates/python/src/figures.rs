//! The figures of one prediction as attributes, without JSON in between.

use crate::json::pretty;
use pyo3::prelude::*;

/// Figures of one point.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct Figures(pub(crate) stepcast_study::explore::sweep::PointFigures);

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
