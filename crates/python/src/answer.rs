//! What a study answered, kept as it is and told when somebody asks: as JSON, or as a drawing.

use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::value;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use stepcast_core::scenario::Document;
use stepcast_report::of;
use stepcast_study::Forecast;
use stepcast_study::Request;
use stepcast_study::explore::search::Report;
use stepcast_study::fit::FitReport;
use stepcast_study::fuse::FusionReport;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::request::Folder;
use stepcast_trace::{Content, Imported, Overview};

/// One of the answers.
pub(crate) enum Told {
    Forecast(Box<Forecast>),
    Comparison(Box<Comparison>),
    Fusion(Box<FusionReport>),
    Search(Report),
    Fit { fitted: FitReport, written: Option<String> },
    Import { imported: Imported, written: Option<String> },
    Validation(Box<stepcast_validation::Report>),
    Overview(stepcast_validation::overview::Overview),
}

/// An answer.
#[pyclass(frozen, module = "stepcast._stepcast")]
pub(crate) struct Answer {
    pub(crate) told: Told,
    /// What it is about.
    pub(crate) name: String,
}

/// As the command line prints it with `--json`, its last line ended.
pub(crate) fn text(value: &impl Serialize) -> PyResult<String> {
    Ok(serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Problem::from)?)
}

#[pymethods]
impl Answer {
    /// What `--json` prints.
    fn to_json(&self) -> PyResult<String> {
        match &self.told {
            Told::Forecast(forecast) => text(forecast.as_ref()),
            Told::Comparison(comparison) => text(comparison.as_ref()),
            Told::Fusion(report) => text(report.as_ref()),
            Told::Search(report) => text(report),
            Told::Fit { fitted, written } => text(&fitted.summary(written.as_deref())),
            Told::Import { imported, written } => text(&Overview::new(imported, written.clone())),
            Told::Validation(report) => text(report.as_ref()),
            Told::Overview(overview) => text(overview),
        }
    }

    /// The drawing that `--plot` makes, where there is one.
    fn to_svg(&self) -> Option<String> {
        match &self.told {
            Told::Forecast(forecast) if !forecast.scaling.is_empty() => {
                Some(of::scaling_curve(forecast, &self.name).svg())
            }
            Told::Fusion(report) => Some(of::fusion(report, &self.name).svg()),
            Told::Search(report) if !report.front.is_empty() => Some(of::pareto(report, &self.name).svg()),
            _ => None,
        }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Time of one step and samples per second of a forecast.
    #[getter]
    fn step(&self) -> Option<(f64, f64)> {
        match &self.told {
            Told::Forecast(forecast) => {
                Some((forecast.prediction.iteration.get(), forecast.prediction.throughput.get()))
            }
            _ => None,
        }
    }

    /// Whether all bounds of a validation are kept.
    #[getter]
    fn holds(&self) -> Option<bool> {
        match &self.told {
            Told::Validation(report) => Some(report.holds),
            Told::Overview(overview) => Some(overview.holds()),
            _ => None,
        }
    }

    /// The text of a fitted artefact.
    #[getter]
    fn artefact(&self) -> Option<&str> {
        match &self.told {
            Told::Fit { fitted, .. } => Some(&fitted.artefact),
            _ => None,
        }
    }

    /// A scenario of what was imported.
    #[pyo3(signature = (*, set=None, **keywords))]
    fn scenario(
        &self,
        py: Python<'_>,
        set: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Scenario> {
        let changes = value::changes(set, keywords)?;
        let request = match &self.told {
            Told::Import { imported: Imported { content: Content::Profile(profile), .. }, .. } => {
                let name = format!("{}.json", self.name);
                Request::of_profile(&name, profile.clone(), changes).map_err(Problem::from)?
            }
            Told::Import { imported: Imported { content: Content::Model(model), .. }, .. } => {
                let mut text = Vec::new();
                stepcast_trace::print_model(model, &mut text)
                    .map_err(|error| Problem::internal(error.to_string()))?;
                let text = String::from_utf8_lossy(&text).into_owned();
                Request::new(Document::new(self.name.clone(), text), Folder::default(), changes)
            }
            _ => return Err(Problem::internal("only what was imported is a scenario").into()),
        };
        Scenario::of(py, request)
    }
}
