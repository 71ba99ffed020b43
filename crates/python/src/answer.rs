//! What a study answered, kept as it is and told when somebody asks: as JSON, or as a drawing.

use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::value;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use stepcast_core::scenario::Document;
use stepcast_report::adapters;
use stepcast_study::Forecast;
use stepcast_study::explore::search::Report;
use stepcast_study::fit::Fitted;
use stepcast_study::fuse::FusionReport;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::request::{Folder, Question};
use stepcast_trace::{Found, Imported, Overview};

/// One of the answers.
pub(crate) enum Told {
    Forecast(Box<Forecast>),
    Comparison(Box<Comparison>),
    Fusion(Box<FusionReport>),
    Search(Report),
    Fit { fitted: Fitted, written: Option<String> },
    Import { imported: Imported, written: Option<String> },
    Validation { set: &'static str, report: stepcast_validation::Report },
    Validations(stepcast_validation::table::Table),
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
            Told::Fit { fitted, written } => text(&fitted.told(written.as_deref())),
            Told::Import { imported, written } => text(&Overview::of(imported, written.clone())),
            Told::Validation { set, report } => {
                let value = serde_json::to_value(report).map_err(Problem::from)?;
                text(&serde_json::Map::from_iter([((*set).to_owned(), value)]))
            }
            Told::Validations(table) => text(table),
        }
    }

    /// The drawing that `--plot` makes, where there is one.
    fn to_svg(&self) -> Option<String> {
        match &self.told {
            Told::Forecast(forecast) if !forecast.scaling.is_empty() => {
                Some(adapters::scaling_curve(forecast, &self.name).svg())
            }
            Told::Fusion(report) => Some(adapters::fusion(report, &self.name).svg()),
            Told::Search(report) if !report.front.is_empty() => {
                Some(adapters::pareto(report, &self.name).svg())
            }
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
            Told::Validation { report, .. } => Some(report.holds()),
            Told::Validations(table) => Some(table.holds()),
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
        let question = match &self.told {
            Told::Import { imported: Imported { found: Found::Profile(profile), .. }, .. } => {
                let name = format!("{}.json", self.name);
                Question::of_profile(&name, profile.clone(), changes).map_err(Problem::from)?
            }
            Told::Import { imported: Imported { found: Found::Model(model), .. }, .. } => {
                let mut text = Vec::new();
                stepcast_trace::print_model(model, &mut text)
                    .map_err(|error| Problem::internal(error.to_string()))?;
                let text = String::from_utf8_lossy(&text).into_owned();
                Question::new(Document::new(self.name.clone(), text), Folder::default(), changes)
            }
            _ => return Err(Problem::internal("only what was imported is a scenario").into()),
        };
        Scenario::of(py, question)
    }
}
