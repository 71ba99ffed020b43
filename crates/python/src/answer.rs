//! The result of a study, converted on demand: to JSON, to HTML, to a plot.

use crate::problem::{Problem, pretty};
use crate::scenario::Scenario;
use crate::value;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use stepcast_core::scenario::{Document, Edit};
use stepcast_fit::FitReport;
use stepcast_fit::streams::overview;
use stepcast_report::format::grouped;
use stepcast_report::plots::fusion::FusionComparison;
use stepcast_report::plots::pareto::Pareto;
use stepcast_report::plots::scaling_curve::ScalingCurve;
use stepcast_report::table;
use stepcast_report::table::NEUTRAL;
use stepcast_report::tables::{check, comparison, fit, forecast, fusion, import, plan, search};
use stepcast_study::Forecast;
use stepcast_study::Request;
use stepcast_study::check::Check;
use stepcast_study::explore::plan::{PlanReport, applied};
use stepcast_study::explore::search::SearchReport;
use stepcast_study::fuse::FusionReport;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::request::Folder;
use stepcast_study::request::launch::{Framework, emit};
use stepcast_trace::{Content as Recording, Imported};

/// The result of one kind of study.
pub(crate) enum Content {
    Forecast { forecast: Box<Forecast>, scenario: Arc<stepcast_core::scenario::Scenario> },
    Comparison(Box<Comparison>),
    Fusion(Box<FusionReport>),
    Search(SearchReport),
    Plan { report: Box<PlanReport>, scenario: Arc<stepcast_core::scenario::Scenario>, request: Box<Request> },
    Check(Box<Check>),
    Fit { fitted: FitReport, written: Option<String> },
    Import { imported: Imported, written: Option<String> },
    Validation(Box<stepcast_validation::Report>),
    Overview(stepcast_validation::overview::Overview),
}

/// A result and its name.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct Answer {
    pub(crate) content: Content,
    /// The name of the model, the fit or the validation set.
    pub(crate) name: String,
}

#[pymethods]
impl Answer {
    /// The output of `--json`.
    fn to_json(&self) -> PyResult<String> {
        match &self.content {
            Content::Forecast { forecast, .. } => pretty(forecast.as_ref()),
            Content::Comparison(comparison) => pretty(comparison.as_ref()),
            Content::Fusion(report) => pretty(report.as_ref()),
            Content::Search(report) => pretty(report),
            Content::Plan { report, .. } => pretty(report.as_ref()),
            Content::Check(check) => pretty(check.as_ref()),
            Content::Fit { fitted, written } => pretty(&fitted.summary(written.as_deref())),
            Content::Import { imported, written } => pretty(&overview(imported, written.clone())),
            Content::Validation(report) => pretty(report.as_ref()),
            Content::Overview(overview) => pretty(overview),
        }
    }

    /// The plot of `--plot`, if there is one.
    fn to_svg(&self) -> Option<String> {
        match &self.content {
            Content::Forecast { forecast, .. } if !forecast.scaling.is_empty() => {
                Some(ScalingCurve::from_forecast(forecast, &self.name).svg())
            }
            Content::Fusion(report) => Some(FusionComparison::from_report(report, &self.name).svg()),
            Content::Search(report) if !report.front.is_empty() => {
                Some(Pareto::from_search(report, &self.name).svg())
            }
            _ => None,
        }
    }

    /// The main tables as HTML, as on the web page and the command line; `None` for validations.
    fn to_html(&self) -> PyResult<Option<String>> {
        let tables = match &self.content {
            Content::Forecast { forecast, scenario } => {
                vec![forecast::figures(scenario, forecast), forecast::scaling(forecast)]
            }
            Content::Comparison(comparison) => {
                vec![comparison::predictions(comparison), comparison::refusals(comparison, NEUTRAL)]
            }
            Content::Fusion(report) => vec![fusion::rules(report)],
            Content::Search(report) => vec![search::best(report)],
            Content::Plan { report, .. } => {
                let training = report.training.iter().map(|training| plan::training(training, report));
                let mut tables = vec![plan::best(report)];
                tables.extend(plan::settings(report).into_iter().chain(plan::stages(report)));
                tables.extend(training);
                tables.extend(plan::endless(report).into_iter().chain(plan::close(report)));
                tables.extend([plan::front(report), plan::families(report)]);
                tables
            }
            Content::Check(check) => vec![check::steps(check), check::suspects(check, NEUTRAL)],
            Content::Fit { fitted, .. } => vec![fit::errors(fitted)],
            Content::Import { imported, written } => import::all(&overview(imported, written.clone())),
            Content::Validation(_) | Content::Overview(_) => return Ok(None),
        };
        Ok(Some(tables.iter().filter(|table| !table.rows.is_empty()).map(table::section).collect()))
    }

    /// A forecast as the command line prints it.
    fn to_text(&self) -> Option<String> {
        match &self.content {
            Content::Forecast { forecast, scenario } => Some(stepcast_cli::forecast_text(scenario, forecast)),
            _ => None,
        }
    }

    /// Step time and throughput of a forecast, with units.
    #[getter]
    fn headline(&self) -> Option<String> {
        let Content::Forecast { forecast, .. } = &self.content else { return None };
        let prediction = &forecast.prediction;
        Some(format!("{} a step, {}", prediction.iteration.human(), grouped(prediction.throughput.human())))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Time of one step and samples per second of a forecast.
    #[getter]
    fn step(&self) -> Option<(f64, f64)> {
        match &self.content {
            Content::Forecast { forecast, .. } => {
                Some((forecast.prediction.iteration.get(), forecast.prediction.throughput.get()))
            }
            _ => None,
        }
    }

    /// Whether all bounds of a validation hold.
    #[getter]
    fn holds(&self) -> Option<bool> {
        match &self.content {
            Content::Validation(report) => Some(report.holds),
            Content::Overview(overview) => Some(overview.holds()),
            _ => None,
        }
    }

    /// The text of a fitted artefact.
    #[getter]
    fn artefact(&self) -> Option<&str> {
        match &self.content {
            Content::Fit { fitted, .. } => Some(&fitted.artefact),
            _ => None,
        }
    }

    /// The best plan in the words of a framework.
    fn emit(&self, framework: &str) -> PyResult<String> {
        let Content::Plan { report, scenario, .. } = &self.content else {
            return Err(Problem::internal("only plans are emitted").into());
        };
        let wrong = |reason: String| Problem::input(reason, "give one of these names").at_key("framework");
        let framework: Framework = framework.parse().map_err(wrong)?;
        Ok(emit(scenario, report, framework).map_err(Problem::from)?)
    }

    /// A scenario with the imported profile or model, or with the best plan.
    #[pyo3(signature = (*, set=None, **keywords))]
    fn scenario(
        &self,
        py: Python<'_>,
        set: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Scenario> {
        let changes = value::changes(set, keywords)?;
        let request = match &self.content {
            Content::Import { imported: Imported { content: Recording::Profile(profile), .. }, .. } => {
                let name = format!("{}.json", self.name);
                Request::from_profile(&name, profile.clone(), changes).map_err(Problem::from)?
            }
            Content::Import { imported: Imported { content: Recording::Model(model), .. }, .. } => {
                let mut text = Vec::new();
                stepcast_trace::print_model(model, &mut text)
                    .map_err(|error| Problem::internal(error.to_string()))?;
                let text = String::from_utf8_lossy(&text).into_owned();
                Request::new(Document::new(self.name.clone(), text), Folder::default(), changes)
            }
            Content::Plan { report, scenario, request } => {
                let written = |section: Result<toml::Value, toml::ser::Error>| {
                    section.map_err(|error| Problem::internal(error.to_string()))
                };
                let plan = written(toml::Value::try_from(&report.best.plan))?;
                let mut own = vec![Edit::set("strategy.plan", plan)];
                let precision = report.best.precision.map(|own| own.to_string());
                own.extend(precision.map(|own| Edit::set("strategy.precision", own)));
                if report.best.machine.is_some() {
                    let to = applied(scenario, &report.best).map_err(Problem::from)?.to_file();
                    own.push(Edit::set("cluster", written(toml::Value::try_from(&to.cluster))?));
                    if let Some(price) = &to.price {
                        own.push(Edit::set("price", written(toml::Value::try_from(price))?));
                    }
                } else if report.best.workers != scenario.cluster.workers() {
                    let workers = i64::try_from(report.best.workers).unwrap_or(i64::MAX);
                    own.push(Edit::set("cluster.workers.count", toml::Value::Integer(workers)));
                }
                request.changed(own.into_iter().chain(changes))
            }
            _ => return Err(Problem::internal("only an import or a plan converts to a scenario").into()),
        };
        Scenario::from_request(py, request)
    }
}
