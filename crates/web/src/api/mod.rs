//! The API, version 1: one file for each kind of question, and one table from which the router and the OpenAPI 3.1
//! description are made.

mod catalog;
mod check;
mod compare;
mod fuse;
mod layout;
mod map;
mod plan;
mod predict;
mod replace;
mod scenario;
mod search;
mod stops;
mod sweep;
mod timeline;
mod uploads;

pub(crate) use timeline::Timelines;

use crate::problem::Problem;
use crate::request::ScenarioBody;
use crate::study::{Study, StudyEvent, ask};
use crate::uploads::UploadAnswer;
use crate::{Shared, work};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepcast_core::machine::catalog::{self as machine, Aliases};
use stepcast_core::machine::{Device, Machine, Network};
use stepcast_core::scenario::{SectionDoc, documentation};
use stepcast_study::Forecast;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::predict::methods::{self, Listed};

const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";
const SVG: &str = "image/svg+xml";

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// An endpoint: its handler and its description.
struct Route {
    path: &'static str,
    method: &'static str,
    serve: fn() -> MethodRouter<Arc<Shared>>,
    summary: &'static str,
    body: Option<(&'static str, SchemaOf)>,
    answer: (&'static str, Option<SchemaOf>),
    /// Schema of the events, for clients that ask for them.
    events: Option<SchemaOf>,
    also: &'static [&'static str],
    /// Parameters, as fields of a type, and their location.
    parameters: Option<(&'static str, SchemaOf)>,
}

const ROUTES: &[Route] = &[
    list::<Vec<catalog::Example>>("/examples", || get(catalog::examples), "Scenarios to start from"),
    list::<Vec<SectionDoc>>(
        "/keys",
        || get(async || Json(documentation())),
        "The keys of a scenario, section by section",
    ),
    list::<Vec<catalog::Model>>("/models", || get(catalog::models), "The models of the zoo"),
    list::<Vec<Listed>>(
        "/methods",
        || get(async || Json(methods::list())),
        "The methods, as `stepcast methods --json`",
    ),
    list::<BTreeMap<String, Device>>(
        "/devices",
        || get(async || catalog::listed(machine::devices())),
        "The devices of the catalog, as `stepcast devices --json`",
    ),
    list::<BTreeMap<String, Network>>(
        "/networks",
        || get(async || catalog::listed(machine::networks())),
        "The networks of the catalog, as `stepcast networks --json`",
    ),
    list::<BTreeMap<String, Machine>>(
        "/machines",
        || get(async || catalog::listed(machine::machines())),
        "The machines of the catalog with their prices, as `stepcast machines --json`",
    ),
    list::<Aliases>(
        "/aliases",
        || get(async || catalog::listed(machine::aliases())),
        "Short names of devices, networks and machines",
    ),
    posted::<ScenarioBody, Vec<stops::Slider>>(
        "/stops",
        || post(stops::stops),
        "The keys that are varied most, each with the values that make a valid scenario",
    ),
    posted::<scenario::ScenarioRequest, scenario::Described>(
        "/scenario",
        || post(scenario::describe),
        "Changes a scenario's text, checks it, and says which methods apply",
    ),
    Route {
        events: Some(SchemaGenerator::subschema_for::<predict::ForecastEvent>),
        also: &[SVG, "text/html"],
        ..posted::<predict::PredictRequest, Forecast>(
            "/predict",
            || post(predict::predict),
            "A forecast, as `stepcast predict --json`; as events, as a drawing or as a report if asked for",
        )
    },
    Route {
        events: Some(SchemaGenerator::subschema_for::<compare::ComparisonEvent>),
        ..posted::<ScenarioBody, Comparison>(
            "/compare",
            || post(compare::compare),
            "All methods side by side, as `stepcast compare --json`; row by row as events",
        )
    },
    study::<search::SearchRequest>(
        "/search",
        "The best configuration, as `stepcast search --json`; with progress as events",
    ),
    Route {
        answer: ("application/jsonl", None),
        ..study::<sweep::SweepRequest>(
            "/sweep",
            "Predictions for every combination of values, as `stepcast sweep --json`; with progress as events",
        )
    },
    study::<map::MapRequest>(
        "/map",
        "Epoch time and minibatch over nodes and batches, as `stepcast map --json`; with progress as events",
    ),
    study::<check::CheckRequest>(
        "/check",
        "The log of a running job against its forecast, as `stepcast check --json`; with progress as events",
    ),
    study::<plan::AdviseRequest>(
        "/advise",
        "What to measure before one of the offers in `[plan]` is taken, as `stepcast advise --json`; with progress as events",
    ),
    study::<fuse::FuseRequest>(
        "/fuse",
        "Which gradients to send together, as `stepcast fuse --json`; with progress as events",
    ),
    study::<replace::ReplaceRequest>(
        "/replace",
        "Layers whose communication cannot be hidden, as `stepcast replace --json`; with progress as events",
    ),
    study::<plan::DecideRequest>(
        "/decide",
        "Which machines to take: time, cost and risk of every offer in `[plan]`; with progress as events",
    ),
    study::<plan::PlanRequest>(
        "/plan",
        "The best way to split a transformer, as `stepcast plan --json`; with progress as events",
    ),
    study::<layout::LayoutRequest>(
        "/layout",
        "Ranks, groups, stages and memory of the plan of a scenario; with progress as events",
    ),
    Route {
        also: &[SVG, "application/vnd.perfetto"],
        ..posted::<timeline::TimelineRequest, timeline::Window>(
            "/timeline",
            || post(timeline::timeline),
            "What a simulated run does when: a part of it",
        )
    },
    Route {
        body: Some((BINARY, |_| json_schema!({ "type": "string", "format": "binary" }))),
        parameters: Some(("query", uploads::UploadQuery::json_schema)),
        ..posted::<(), UploadAnswer>(
            "/uploads",
            || post(uploads::receive),
            "Imports a recording, a model or a fitted artefact",
        )
    },
    Route {
        answer: (BINARY, None),
        parameters: Some(("path", uploads::UploadName::json_schema)),
        ..list::<()>("/uploads/{name}", || get(uploads::download), "What an upload became")
    },
];

type Serve = fn() -> MethodRouter<Arc<Shared>>;

const fn list<Answer: JsonSchema>(path: &'static str, serve: Serve, summary: &'static str) -> Route {
    let answer: (&str, Option<SchemaOf>) = (JSON, Some(SchemaGenerator::subschema_for::<Answer>));
    Route {
        path,
        method: "get",
        serve,
        summary,
        body: None,
        answer,
        events: None,
        also: &[],
        parameters: None,
    }
}

const fn posted<Body: JsonSchema, Answer: JsonSchema>(
    path: &'static str,
    serve: Serve,
    summary: &'static str,
) -> Route {
    let body: SchemaOf = SchemaGenerator::subschema_for::<Body>;
    Route { method: "post", body: Some((JSON, body)), ..list::<Answer>(path, serve, summary) }
}

/// A study: the command's output, or progress, plots and tables as events.
const fn study<S: Study>(path: &'static str, summary: &'static str) -> Route {
    let events: SchemaOf = SchemaGenerator::subschema_for::<StudyEvent<S::Report>>;
    Route { events: Some(events), ..posted::<S, S::Report>(path, || post(ask::<S>), summary) }
}

impl Route {
    fn described(&self, schemas: &mut SchemaGenerator) -> Value {
        let mut content = |kind: &str, schema: SchemaOf| json!({ kind: { "schema": schema(schemas) } });
        let body = self.body.map(|(kind, schema)| content(kind, schema));
        let mut answers = match self.answer {
            (kind, Some(schema)) => content(kind, schema),
            (kind, None) => json!({ kind: {} }),
        };
        if let Some(schema) = self.events {
            answers[work::EVENTS] = json!({ "schema": schema(schemas) });
        }
        for kind in self.also {
            answers[kind] = json!({});
        }
        let problem = schemas.subschema_for::<Problem>();
        let mut operation = json!({
            "summary": self.summary,
            "responses": {
                "200": { "description": "the answer", "content": answers },
                "default": {
                    "description": "what went wrong, why, and what to do",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        });
        if let Some(body) = body {
            operation["requestBody"] = json!({ "required": true, "content": body });
        }
        if let Some((place, schema)) = self.parameters {
            operation["parameters"] = parameters(place, &schema(schemas));
        }
        operation
    }
}

/// Parameters in the path or the query.
fn parameters(place: &str, schema: &Schema) -> Value {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields
        .map(
            |(name, field)| json!({ "name": name, "in": place, "required": required(name), "schema": field }),
        )
        .collect()
}

pub(crate) fn specification() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for route in ROUTES {
        let operation = route.described(&mut schemas);
        paths.insert(format!("/api/v1{}", route.path), json!({ route.method: operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stepcast",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Forecasts of distributed training. What comes as JSON is what the commands write with --json.",
        },
        "paths": paths,
        "components": { "schemas": schemas.definitions() },
    })
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    let first = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, (route.serve)()));
    let described = async |State(shared): State<Arc<Shared>>| Json(&shared.specification).into_response();
    Router::new().route("/", get(described)).nest("/v1", first)
}

/// Whether the client prefers a response of this media type.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let wanted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    wanted.split(',').any(|wanted| wanted.split(';').next().map(str::trim) == Some(kind))
}
