//! The catalog: examples, models, devices, networks, methods and keys.

use crate::problem::Problem;
use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::machine::catalog;
use stepcast_core::model::zoo;
use stepcast_core::scenario::documentation;
use stepcast_examples::SCENARIOS;
use stepcast_study::predict::methods as study;

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
    /// Other names of it.
    aliases: &'static [String],
    /// Its family.
    family: &'static str,
    /// Whether a plan can split it.
    transformer: bool,
}

pub(super) async fn examples() -> Response {
    Json(SCENARIOS.iter().map(example).collect::<Vec<_>>()).into_response()
}

fn example(&(name, scenario): &(&'static str, &'static str)) -> Example {
    let comments = scenario.lines().map_while(|line| line.strip_prefix("# "));
    let words: Vec<&str> = comments.flat_map(str::split_whitespace).collect();
    let words = words.join(" ");
    let question = words.split_once("? ").map_or(words.as_str(), |(question, _)| question);
    Example { name, question: format!("{}?", question.trim_end_matches('?')), scenario }
}

/// Every key of a scenario, with its documentation and possible values for the form.
pub(super) async fn keys() -> Response {
    Json(documentation()).into_response()
}

pub(super) async fn methods() -> Response {
    Json(study::list()).into_response()
}

pub(super) async fn models() -> Response {
    let model = |entry: &'static zoo::ZooModel| Model {
        name: &entry.name,
        description: &entry.description,
        aliases: &entry.aliases,
        family: entry.family_name(),
        transformer: entry.shape().is_some(),
    };
    Json(zoo::entries().map(model).collect::<Vec<_>>()).into_response()
}

pub(super) async fn devices() -> Result<Response, Problem> {
    let devices = catalog::devices().map_err(Problem::fault)?;
    Ok(Json(devices).into_response())
}

pub(super) async fn machines() -> Result<Response, Problem> {
    let machines = catalog::machines().map_err(Problem::fault)?;
    Ok(Json(machines).into_response())
}

pub(super) async fn aliases() -> Result<Response, Problem> {
    let aliases = catalog::aliases().map_err(Problem::fault)?;
    Ok(Json(aliases).into_response())
}

pub(super) async fn networks() -> Result<Response, Problem> {
    let networks = catalog::networks().map_err(Problem::fault)?;
    Ok(Json(networks).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_question() {
        for example in SCENARIOS.iter().map(example) {
            assert!(example.question.len() > 20 && !example.question.contains('\n'), "{}", example.question);
        }
    }
}
