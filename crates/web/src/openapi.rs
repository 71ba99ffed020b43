//! The OpenAPI 3.1 description, generated from the types of requests and responses.

use crate::api::{
    catalog, compare, fuse, layout, map, plan, predict, replace, scenario, search, sweep, timeline, uploads,
};
use crate::problem::Problem;
use crate::study::{Event, Study};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use stepcast_core::machine::{Device, Network};
use stepcast_core::scenario::SectionDoc;
use stepcast_study::predict::methods::Listed;

/// The description that is served.
pub(crate) struct Specification(pub(crate) Value);

/// Builds the description.
struct Describe {
    schemas: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Describe {
    fn content<T: JsonSchema>(&mut self, kind: &str) -> Value {
        let schema = self.schemas.subschema_for::<T>();
        json!({ kind: { "schema": schema } })
    }

    fn add(&mut self, path: &str, method: &str, summary: &str, body: Option<Value>, answers: Value) {
        let problem = self.content::<Problem>("application/problem+json");
        let mut operation = json!({
            "summary": summary,
            "responses": {
                "200": { "description": "the answer", "content": answers },
                "default": { "description": "what went wrong, why, and what to do", "content": problem },
            },
        });
        if let Some(body) = body {
            operation["requestBody"] = json!({ "required": true, "content": body });
        }
        let entry = self.paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        entry[method] = operation;
    }

    /// Parameters in the path or the query: the fields of `T`.
    fn parameters<T: JsonSchema>(&mut self, path: &str, method: &str, place: &str) {
        let schema = T::json_schema(&mut self.schemas);
        let required = |name: &str| {
            let names = schema.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let parameters: Vec<Value> = fields
            .map(|(name, field)| json!({ "name": name, "in": place, "required": required(name), "schema": field }))
            .collect();
        self.paths[path][method]["parameters"] = parameters.into();
    }
}

impl Specification {
    pub(crate) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.definitions_path = "/components/schemas".into();
        });
        let mut all = Describe { schemas: settings.into_generator(), paths: Map::new() };
        list::<Vec<catalog::Example>>(&mut all, "/api/v1/examples", "Scenarios to start from");
        list::<Vec<SectionDoc>>(&mut all, "/api/v1/keys", "The keys of a scenario, section by section");
        list::<Vec<catalog::Model>>(&mut all, "/api/v1/models", "The models of the zoo");
        list::<Vec<Listed>>(&mut all, "/api/v1/methods", "The methods, as `stepcast methods --json`");
        list::<BTreeMap<String, Device>>(
            &mut all,
            "/api/v1/devices",
            "The devices of the catalog, as `stepcast devices --json`",
        );
        list::<BTreeMap<String, Network>>(
            &mut all,
            "/api/v1/networks",
            "The networks of the catalog, as `stepcast networks --json`",
        );
        describe::<scenario::Body, scenario::Described>(
            &mut all,
            "/api/v1/scenario",
            "Changes a scenario's text, checks it, and says which methods apply",
        );
        let body = all.content::<predict::Body>("application/json");
        let mut answers = all.content::<stepcast_study::Forecast>("application/json");
        merge(&mut answers, all.content::<predict::Event>("application/x-ndjson"));
        merge(&mut answers, json!({ "image/svg+xml": {}, "text/html": {} }));
        all.add(
            "/api/v1/predict",
            "post",
            "A forecast, as `stepcast predict --json`; as events, as a drawing or as a report if asked for",
            Some(body),
            answers,
        );
        let body = all.content::<crate::request::ScenarioBody>("application/json");
        let mut answers = all.content::<stepcast_study::predict::compare::Comparison>("application/json");
        merge(&mut answers, all.content::<compare::Event>("application/x-ndjson"));
        all.add(
            "/api/v1/compare",
            "post",
            "All methods side by side, as `stepcast compare --json`; row by row as events",
            Some(body),
            answers,
        );
        studied::<search::Body>(&mut all, "search", "The best configuration");
        studied::<sweep::Body>(&mut all, "sweep", "Predictions for every combination of values");
        studied::<map::Body>(&mut all, "map", "Epoch time and minibatch over nodes and batches");
        studied::<fuse::Body>(&mut all, "fuse", "Which gradients to send together");
        studied::<replace::Body>(&mut all, "replace", "Layers whose communication cannot be hidden");
        studied::<plan::Body>(&mut all, "plan", "The best way to split a transformer");
        studied::<layout::Body>(
            &mut all,
            "layout",
            "Ranks, groups, stages and memory of the plan of a scenario",
        );
        let body = all.content::<timeline::Body>("application/json");
        let mut answers = all.content::<timeline::Window>("application/json");
        merge(&mut answers, json!({ "image/svg+xml": {}, "application/vnd.perfetto": {} }));
        all.add(
            "/api/v1/timeline",
            "post",
            "What a simulated run does when: a part of it",
            Some(body),
            answers,
        );
        let answers = all.content::<uploads::Answer>("application/json");
        let body =
            json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
        all.add(
            "/api/v1/uploads",
            "post",
            "Imports a recording, a model or a fitted artefact",
            Some(body),
            answers,
        );
        all.parameters::<uploads::About>("/api/v1/uploads", "post", "query");
        let binary = json!({ "application/octet-stream": {} });
        all.add("/api/v1/uploads/{name}", "get", "What an upload became", None, binary);
        all.parameters::<uploads::Name>("/api/v1/uploads/{name}", "get", "path");
        Self(json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Stepcast",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Forecasts of distributed training. What comes as JSON is what the commands write with --json.",
            },
            "paths": all.paths,
            "components": { "schemas": all.schemas.definitions() },
        }))
    }
}

fn list<Answer: JsonSchema>(all: &mut Describe, path: &str, summary: &str) {
    let answer = all.content::<Answer>("application/json");
    all.add(path, "get", summary, None, answer);
}

fn describe<Body: JsonSchema, Answer: JsonSchema>(all: &mut Describe, path: &str, summary: &str) {
    let body = all.content::<Body>("application/json");
    let answer = all.content::<Answer>("application/json");
    all.add(path, "post", summary, Some(body), answer);
}

/// A study: as the command writes it, or with progress, plots and tables as events.
fn studied<S: Study>(all: &mut Describe, name: &str, summary: &str) {
    let body = all.content::<S>("application/json");
    let mut answers = match name {
        "sweep" => json!({ "application/jsonl": {} }),
        _ => all.content::<S::Report>("application/json"),
    };
    merge(&mut answers, all.content::<Event<S::Report>>("application/x-ndjson"));
    let command = match name {
        "layout" => String::new(),
        _ => format!(", as `stepcast {name} --json`"),
    };
    let summary = format!("{summary}{command}; with progress as events");
    all.add(&format!("/api/v1/{name}"), "post", &summary, Some(body), answers);
}

fn merge(into: &mut Value, other: Value) {
    if let (Value::Object(into), Value::Object(other)) = (into, other) {
        into.extend(other);
    }
}
