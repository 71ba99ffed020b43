//! Searches over plans in parts, here or on another machine.

use crate::answer::{Answer, Content};
use crate::border::{interruptible, on_pool, until};
use crate::problem::Problem;
use crate::scenario::Scenario;
use pyo3::prelude::*;
use std::sync::Arc;
use stepcast_study::Request;
use stepcast_study::explore::plan::{Aim, join, part, parts};

/// A search over all plans of a scenario.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct PlanSearch {
    request: Request,
    scenario: Arc<stepcast_core::scenario::Scenario>,
    aim: Aim,
    parts: usize,
}

#[pymethods]
impl PlanSearch {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, minimize: &str) -> PyResult<Self> {
        let wrong = |reason: String| Problem::input(reason, "use time or cost").at_key("minimize");
        let aim: Aim = minimize.parse().map_err(wrong)?;
        let request = scenario.asked_with([]).for_planning();
        let found = interruptible(py, move |_| {
            let scenario = request.scenario()?;
            let parts = parts(&scenario, aim).map_err(|fault| request.refused(fault))?;
            Ok(Self { request, scenario, aim, parts })
        })?;
        Ok(found)
    }

    /// The number of parts.
    #[getter]
    fn parts(&self) -> usize {
        self.parts
    }

    /// The scenario, for running parts elsewhere.
    fn packed(&self) -> PyResult<String> {
        Ok(self.request.packed().map_err(Problem::from)?)
    }

    /// What is found in the part at `place`, as one line of JSON.
    #[pyo3(signature = (place, threads=None))]
    fn part(slf: Py<Self>, py: Python<'_>, place: usize, threads: Option<u16>) -> PyResult<String> {
        interruptible(py, move |stop| {
            let Self { request, scenario, aim, .. } = slf.get();
            let found = on_pool(threads, || part(scenario, *aim, place, &mut |_| until(stop)));
            let found = found.map_err(|fault| request.refused(fault))?;
            serde_json::to_string(&found).map_err(|error| Problem::internal(error.to_string()))
        })
    }

    /// The answer from all parts, in order.
    fn join(slf: Py<Self>, py: Python<'_>, parts: Vec<String>) -> PyResult<Answer> {
        interruptible(py, move |_| {
            let Self { request, scenario, aim, .. } = slf.get();
            let damaged = |error: serde_json::Error| {
                Problem::input(format!("a part is damaged: {error}"), "compute it again").at_key("parts")
            };
            let parts: Vec<_> = parts
                .iter()
                .map(|text| serde_json::from_str(text).map_err(damaged))
                .collect::<Result<_, _>>()?;
            let report = on_pool(None, || join(scenario, *aim, parts));
            let report = Box::new(report.map_err(|fault| request.refused(fault))?);
            let (request, name) = (request.changed([]), scenario.name().to_owned());
            let content =
                Content::Plan { report, scenario: Arc::clone(scenario), request: Box::new(request) };
            Ok(Answer { content, name })
        })
    }
}
