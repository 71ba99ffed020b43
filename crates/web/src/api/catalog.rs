//! Names that scenarios can use: examples, models, and lists of the catalog.

use crate::problem::Problem;
use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Display;
use stepcast_core::model::zoo;
use stepcast_examples::SCENARIOS;

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

/// A list of the catalog.
pub(super) fn listed<T: Serialize>(list: Result<T, impl Display>) -> Result<Response, Problem> {
    Ok(Json(list.map_err(Problem::fault)?).into_response())
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
