//! A scenario's text: changed, checked, and what can be said about it at once.

use crate::Shared;
use crate::edit::edit;
use crate::input::Input;
use crate::problem::Problem;
use crate::request::ScenarioBody;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stepcast_core::method::Method;
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_report::sentences;
use stepcast_study::predict::methods;

/// A scenario, and what to change in its text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    /// The text (TOML).
    scenario: String,
    /// Changes, in order.
    #[serde(default)]
    edit: Vec<Change>,
}

/// A key, and the value that it gets.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Change {
    /// "cluster.workers.0.count".
    key: String,
    /// As after `--set key=`; without it the key is removed.
    value: Option<String>,
}

/// A scenario that is in order.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Described {
    /// The text after the changes.
    scenario: String,
    /// The text as data.
    written: serde_json::Value,
    /// Every default filled in; none where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved: Option<ScenarioFile>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<[String; 2]>,
    /// Which methods apply, the one to prefer first.
    methods: Vec<Applying>,
}

/// A method, and whether it applies.
#[derive(Serialize, JsonSchema)]
struct Applying {
    name: &'static str,
    summary: &'static str,
    /// Whether it answers at once.
    quick: bool,
    /// Why it does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
}

pub(super) async fn describe(
    State(shared): State<Arc<Shared>>,
    Input(body): Input<Body>,
) -> Result<Response, Problem> {
    let kept = Arc::clone(&shared);
    Ok(Json(shared.work.quick().run(move |_| described(&kept, body)).await?).into_response())
}

fn described(shared: &Arc<Shared>, body: Body) -> Result<Described, Problem> {
    let mut text = body.scenario;
    for change in &body.edit {
        text = edit(&text, &change.key, change.value.as_deref()).ok_or_else(|| {
            Problem::invalid(&change.key, "the text has no place for this key", "correct the text first")
        })?;
    }
    let written = toml::from_str(&text).unwrap_or(serde_json::Value::Null);
    let body = ScenarioBody { scenario: text, set: Vec::new() };
    let scenario = body.request(shared)?.scenario().map_err(Problem::from);
    let scenario_text = body.scenario;
    Ok(match scenario {
        Ok(scenario) => Described {
            scenario: scenario_text,
            written,
            resolved: Some(scenario.to_file()),
            problem: None,
            question: Some([sentences::title(&scenario), sentences::setting(&scenario)]),
            methods: methods::all().iter().map(|method| applying(*method, &scenario)).collect(),
        },
        Err(problem) => Described {
            scenario: scenario_text,
            written,
            resolved: None,
            problem: Some(problem),
            question: None,
            methods: Vec::new(),
        },
    })
}

fn applying(method: &'static dyn Method, scenario: &Scenario) -> Applying {
    Applying {
        name: method.name(),
        summary: method.summary(),
        quick: method.is_quick(),
        refusal: method.applies(scenario).err().map(|why| format!("{}; {}", why.reason, why.remedy)),
    }
}
