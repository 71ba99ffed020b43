//! Editing and checking the text of a scenario, with information that needs no prediction.

use crate::Shared;
use crate::edit::{Change, edited, key_at};
use crate::problem::Problem;
use crate::request::{Input, ScenarioBody, few};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::sync::Arc;
use stepcast_core::method::Method;
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::text;
use stepcast_report::sentences;
use stepcast_study::predict::methods;

/// A scenario and edits of its text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Body")]
pub(crate) struct ScenarioRequest {
    /// The text (TOML).
    scenario: String,
    /// Edits, in order.
    #[serde(default)]
    edit: Vec<Change>,
}

/// The checked scenario.
#[skip_serializing_none]
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Described {
    /// The text after the edits.
    scenario: String,
    /// The text as data.
    written: serde_json::Value,
    /// The scenario with every default filled in; none if it is invalid.
    resolved: Option<ScenarioFile>,
    /// The error in the scenario.
    problem: Option<Problem>,
    /// A summary of the scenario.
    question: Option<[String; 2]>,
    /// The methods and whether they apply, in order of preference.
    methods: Vec<Applying>,
    /// Whether the model is a transformer, which a plan can split.
    transformer: bool,
}

/// A method, and whether it applies.
#[derive(Serialize, JsonSchema)]
struct Applying {
    name: &'static str,
    summary: &'static str,
    /// Whether its predictions take only milliseconds.
    quick: bool,
    /// Why it does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
}

pub(super) async fn describe(
    State(shared): State<Arc<Shared>>,
    Input(body): Input<ScenarioRequest>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    Ok(Json(shared.work.quick().run(move |_| described(&kept, body)).await?).into_response())
}

fn described(shared: &Arc<Shared>, body: ScenarioRequest) -> Result<Described, Problem> {
    few(body.edit.len(), "edit")?;
    let source = edited(&body.scenario, &body.edit)?;
    let written = text::parse(&source).unwrap_or(serde_json::Value::Null);
    let body = ScenarioBody { scenario: source, set: Vec::new() };
    let request = body.request(shared)?;
    let described = Described { scenario: body.scenario, written, ..Described::default() };
    Ok(match request.scenario().map_err(Problem::from) {
        Ok(scenario) => Described {
            resolved: Some(scenario.to_file()),
            question: Some([
                sentences::title(&scenario, request.assumed()?),
                sentences::setting(&scenario, request.assumed()?),
            ]),
            methods: methods::all().iter().map(|method| applying(*method, &scenario)).collect(),
            transformer: scenario.source.transformer().is_some(),
            ..described
        },
        Err(mut problem) => {
            if let (None, Some(line), Some(column)) = (&problem.key, problem.line, problem.column) {
                problem.key = key_at(&described.scenario, line, column);
            }
            Described { problem: Some(problem), ..described }
        }
    })
}

fn applying(method: &'static dyn Method, scenario: &Scenario) -> Applying {
    Applying {
        name: method.name(),
        summary: method.about().summary,
        quick: method.is_quick(),
        refusal: method.applies(scenario).err().map(|why| format!("{}; {}", why.reason, why.remedy)),
    }
}
