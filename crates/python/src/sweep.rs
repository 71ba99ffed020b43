//! Sweeps in chunks, and searches over plans in parts: any range of points as bytes, any part as JSON, here or on another machine;
//! and the file that collects rows.

use crate::answer::{Answer, Content};
use crate::border::{self, interruptible, on_pool, until};
use crate::problem::Problem;
use crate::scenario::Scenario;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use self_cell::self_cell;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use stepcast_report::plots::varied::{Point, Swept, SweptFigure};
use stepcast_study::explore::plan::{Aim, join, part, parts};
use stepcast_study::explore::sweep::{Agreement, Axis, Format, Output, Variants, rows};
use stepcast_study::{MethodChoice, Request};

self_cell!(
    struct Varied {
        owner: Request,
        #[not_covariant]
        dependent: Variants,
    }
);

/// All points of a scenario along some axes.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct Sweep {
    varied: Varied,
    agreement: Agreement,
    method: String,
    vary: Vec<String>,
}

fn format_named(name: &str) -> Result<Format, Problem> {
    Format::of(&PathBuf::from(format!("rows.{name}"))).ok_or_else(|| {
        Problem::input(format!("there is no format \"{name}\""), "use csv or jsonl").at_key("format")
    })
}

impl Sweep {
    fn with<T>(&self, look: impl FnOnce(&Variants<'_>) -> T) -> T {
        self.varied.with_dependent(|_, variants| look(variants))
    }
}

#[pymethods]
impl Sweep {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, vary: Vec<String>, method: String) -> PyResult<Self> {
        let asked = MethodChoice::named(&method).map_err(Problem::from)?;
        let request = scenario.asked_with([]);
        let axes = Axis::parse_all(&vary).map_err(Problem::from)?;
        let varied = interruptible(py, move |_| {
            Varied::try_new(request, |request| request.variants(axes).map_err(Problem::from))
        })?;
        let agreement = varied.with_dependent(|_, variants| Agreement::of(variants, asked));
        Ok(Self { varied, agreement, method, vary })
    }

    /// Number of points.
    #[getter]
    fn points(&self) -> u128 {
        self.with(|variants| variants.grid().points())
    }

    /// The full names of the varied keys.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.with(|variants| variants.axes().iter().map(|axis| axis.key.clone()).collect())
    }

    #[getter]
    fn vary(&self) -> Vec<String> {
        self.vary.clone()
    }

    #[getter]
    fn method(&self) -> &str {
        &self.method
    }

    /// The methods that predict points: one, unless no method models all of them.
    #[getter]
    fn methods(&self) -> Vec<&'static str> {
        self.agreement.methods().to_vec()
    }

    #[getter]
    fn name(&self) -> String {
        self.with(|variants| variants.first().name().to_owned())
    }

    /// The scenario and all files that any of its values names, for running the same sweep elsewhere.
    fn packed(&self) -> PyResult<String> {
        Ok(self.varied.borrow_owner().packed().map_err(Problem::from)?)
    }

    /// The lines before all rows.
    fn header<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let format = format_named(format)?;
        let header = self.with(|variants| format.header(variants));
        Ok(PyBytes::new(py, &header.map_err(|error: io::Error| Problem::internal(error.to_string()))?))
    }

    /// The rows of the points from `since` up to `until`, one line each.
    #[pyo3(signature = (since, until, format, threads=None))]
    fn rows<'py>(
        slf: Py<Self>,
        py: Python<'py>,
        since: u64,
        until: u64,
        format: &str,
        threads: Option<u16>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let format = format_named(format)?;
        let points = slf.get().points();
        if u128::from(until) > points || since > until {
            let reason = format!("points {since} to {until} are not within the sweep's {points}");
            return Err(Problem::input(reason, "use numbers from 0 to `points`").into());
        }
        let bytes = interruptible(py, move |stop| {
            let sweep = slf.get();
            sweep.with(|variants| {
                let mut bytes = Vec::new();
                let mut failed = None;
                let each = |row| format.line(variants, &row);
                // This breaks off only when the call is interrupted.
                let _ = on_pool(threads, || {
                    rows(variants, &sweep.agreement, since..until, &|| border::until(stop), each, |lines| {
                        for line in lines {
                            match line {
                                Ok(line) => bytes.extend_from_slice(&line),
                                Err(error) => failed = Some(error),
                            }
                        }
                        border::until(stop)
                    })
                });
                match failed {
                    Some(error) => Err(Problem::internal(error.to_string())),
                    None => Ok(bytes),
                }
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The plot of all points, in order, from their throughput and whether they fit into memory; `None` if these axes cannot
    /// be plotted.
    fn to_svg(&self, points: Vec<Option<(f64, bool)>>) -> Option<String> {
        self.with(|variants| {
            let mut swept = Swept::new(variants.axes(), SweptFigure::Throughput)?;
            for (index, point) in points.into_iter().enumerate() {
                let drawn = |(value, fits)| Point { value, fits, ..Point::default() };
                swept.note(index, point.map(drawn));
            }
            Some(swept.svg(variants.first().name()))
        })
    }
}

/// A file that the rows of a sweep are appended to.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct SweepFile(Mutex<Output>);

impl SweepFile {
    fn with<T>(&self, look: impl FnOnce(&mut Output) -> T) -> PyResult<T> {
        let mut output = self.0.lock().map_err(|_| Problem::internal("the file was left half written"))?;
        Ok(look(&mut output))
    }
}

#[pymethods]
impl SweepFile {
    #[new]
    fn new(sweep: &Sweep, path: PathBuf, format: &str, resume: bool, force: bool) -> PyResult<Self> {
        let format = format_named(format)?;
        let output = sweep.with(|variants| {
            let opened = Output::open(&path, format, variants, &sweep.agreement, (resume, force));
            opened.map_err(|error| Problem::from(error).at(path.display().to_string()))
        });
        Ok(Self(Mutex::new(output?)))
    }

    /// Number of rows in the file.
    #[getter]
    fn rows(&self) -> PyResult<u64> {
        self.with(|output| output.rows())
    }

    /// Appends complete rows.
    fn append(&self, py: Python<'_>, lines: &[u8], rows: u64) -> PyResult<()> {
        let appended = py.detach(|| self.with(|output| output.writer.append(lines, rows)));
        appended?.map_err(|error| {
            let remedy = "make room; the rows so far are kept, and resume=True goes on from there";
            Problem::input(format!("cannot write: {error}"), remedy).into()
        })
    }
}

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

    /// The result of the part at `place`, as one line of JSON.
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
