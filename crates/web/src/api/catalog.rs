//! The catalog: examples, models, devices, networks, methods and keys.

use crate::problem::Problem;
use axum::Json;
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, include_dir};
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::machine::catalog;
use stepcast_core::model::zoo;
use stepcast_core::scenario::documentation;
use stepcast_study::predict::methods as study;

static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../examples");

/// The example that is shown first.
const FIRST: &str = "quickstart";

/// A scenario to start from.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Example {
    /// The name of its file.
    name: &'static str,
    /// The question it answers, from its first comment.
    question: String,
    /// Its text.
    scenario: &'static str,
}

/// A model of the zoo.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Model {
    /// Its name in scenarios.
    name: &'static str,
    /// Its description.
    description: &'static str,
}

pub(super) async fn examples() -> Response {
    let mut examples: Vec<Example> = EXAMPLES.files().filter_map(example).collect();
    examples.sort_by_key(|example| (example.name != FIRST, example.name));
    Json(examples).into_response()
}

fn example(file: &'static include_dir::File<'static>) -> Option<Example> {
    let name = file.path().to_str()?.strip_suffix(".toml")?;
    let scenario = file.contents_utf8()?;
    let comments = scenario.lines().map_while(|line| line.strip_prefix("# "));
    let words: Vec<&str> = comments.flat_map(str::split_whitespace).collect();
    let words = words.join(" ");
    let question = words.split_once("? ").map_or(words.as_str(), |(question, _)| question);
    Some(Example { name, question: format!("{}?", question.trim_end_matches('?')), scenario })
}

/// Every key of a scenario, with its documentation and possible values for the form.
pub(super) async fn keys() -> Response {
    Json(documentation()).into_response()
}

pub(super) async fn methods() -> Response {
    Json(study::list()).into_response()
}

pub(super) async fn models() -> Response {
    let model = |entry: &'static zoo::Entry| Model { name: entry.name, description: entry.description };
    Json(zoo::entries().map(model).collect::<Vec<_>>()).into_response()
}

pub(super) async fn devices() -> Result<Response, Problem> {
    let devices = catalog::devices().map_err(|error| Problem::fault(error.to_string()))?;
    Ok(Json(devices).into_response())
}

pub(super) async fn networks() -> Result<Response, Problem> {
    let networks = catalog::networks().map_err(|error| Problem::fault(error.to_string()))?;
    Ok(Json(networks).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_question() {
        let examples: Vec<Example> = EXAMPLES.files().filter_map(example).collect();
        assert!(examples.len() >= 10);
        for example in examples {
            assert!(example.question.len() > 20 && !example.question.contains('\n'), "{}", example.question);
        }
    }
}
