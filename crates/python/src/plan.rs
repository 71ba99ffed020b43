//! Searches over plans in parts: one for each number of machines, here or on another machine.

use crate::answer::{Answer, Content};
use crate::border::{interruptible, on_pool, until};
use crate::problem::Problem;
use crate::scenario::Scenario;
use pyo3::prelude::*;
use stepcast_core::scenario::Override;
use stepcast_study::Request;
use stepcast_study::explore::plan::{Aim, join, numbers_of_machines, part};

/// A plan that leaves everything open, for scenarios without one.
const OPEN: &str = "strategy.plan={}";

/// A search over all plans of a scenario.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct PlanSearch {
    request: Request,
    scenario: stepcast_core::scenario::Scenario,
    aim: Aim,
    nodes: Vec<u64>,
}

#[pymethods]
impl PlanSearch {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, minimize: &str) -> PyResult<Self> {
        let wrong = |reason: String| Problem::input(reason, "use time or cost").at_key("minimize");
        let aim: Aim = minimize.parse().map_err(wrong)?;
        let open =
            scenario.resolved.strategy.plan.is_none() && scenario.resolved.source.transformer().is_some();
        let change = open.then(|| Override::parse(OPEN)).transpose().map_err(Problem::from)?;
        let request = scenario.asked_with(change);
        let found = interruptible(py, move |_| {
            let scenario = request.scenario()?;
            let nodes = numbers_of_machines(&scenario, aim).map_err(|fault| request.refused(fault))?;
            Ok(Self { request, scenario, aim, nodes })
        })?;
        Ok(found)
    }

    /// The numbers of machines, each of which is a part.
    #[getter]
    fn nodes(&self) -> Vec<u64> {
        self.nodes.clone()
    }

    /// The scenario, for running parts elsewhere.
    fn packed(&self) -> PyResult<String> {
        Ok(self.request.packed().map_err(Problem::from)?)
    }

    /// What is found on one number of machines, as one line of JSON.
    #[pyo3(signature = (nodes, threads=None))]
    fn part(slf: Py<Self>, py: Python<'_>, nodes: u64, threads: Option<u16>) -> PyResult<String> {
        interruptible(py, move |stop| {
            let Self { request, scenario, aim, .. } = slf.get();
            let found = on_pool(threads, || part(scenario, *aim, nodes, &mut |_| until(stop)));
            let found = found.map_err(|fault| request.refused(fault))?;
            serde_json::to_string(&found).map_err(|error| Problem::internal(error.to_string()))
        })
    }

    /// The answer from all parts, in the order of `nodes`.
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
                Content::Plan { report, scenario: Box::new(scenario.clone()), request: Box::new(request) };
            Ok(Answer { content, name })
        })
    }
}
