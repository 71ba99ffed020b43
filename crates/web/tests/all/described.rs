//! What the API says of itself at `/api`, held against what it answers.

use crate::asking::{
    ALL_REDUCE, ASYNC, OFFERS, QUICK_START, REPLACEMENT, SMALL, SPRINT, app, ask, asking, lines, request,
};
use crate::schema::violations;
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};

const LAYERS: &str = "layer,forward_ms,backward_ms,bytes\nfirst,1,2,4000\nsecond,2,3,8000\n";

async fn get(app: &Router, path: &str) -> Value {
    let (status, _, bytes) = ask(app, request("GET", path).body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{path}");
    serde_json::from_slice(&bytes).unwrap()
}

/// Checks `answer` against the schema that stands at `place` in the description.
fn agrees(described: &Value, place: &str, answer: &Value) {
    let schema = described.pointer(place);
    assert!(schema.is_some(), "{place} is not described");
    let wrong = violations(described, schema.unwrap(), answer);
    assert!(wrong.is_empty(), "{place}: {wrong:#?}");
}

fn answers(path: &str, method: &str, kind: &str) -> String {
    let (path, kind) = (path.replace('/', "~1"), kind.replace('/', "~1"));
    format!("/paths/{path}/{method}/responses/200/content/{kind}/schema")
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    let described = get(&app(), "/api").await;
    assert_eq!(described["openapi"], "3.1.0");
    let schemas = described["components"]["schemas"].as_object().unwrap();
    let text = described.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn lists_are_as_described() {
    let app = app();
    let described = get(&app, "/api").await;
    for path in ["examples", "models", "methods", "devices", "networks"].map(|list| format!("/api/v1/{list}"))
    {
        let list = get(&app, &path).await;
        assert!(list.as_array().map_or_else(|| list.as_object().unwrap().len(), Vec::len) > 3);
        agrees(&described, &answers(&path, "get", "application/json"), &list);
    }
}

#[tokio::test]
async fn answers_are_as_described() {
    let app = app();
    let described = get(&app, "/api").await;
    let short = json!(["methods.simulate.steps=20", "methods.simulate.warm-up=2", "methods.simulate.runs=2"]);
    for (path, body) in [
        ("/api/v1/predict", json!({ "scenario": QUICK_START })),
        ("/api/v1/predict", json!({ "scenario": ASYNC, "set": short, "workers": [1, 2] })),
        ("/api/v1/predict", json!({ "scenario": ALL_REDUCE })),
        ("/api/v1/compare", json!({ "scenario": QUICK_START, "set": short })),
        (
            "/api/v1/scenario",
            json!({ "scenario": QUICK_START, "edit": [{ "key": "strategy.batch", "value": "8" }] }),
        ),
        (
            "/api/v1/search",
            json!({ "scenario": QUICK_START, "minimize": "iteration", "vary": ["batch=1..4"] }),
        ),
        ("/api/v1/timeline", json!({ "scenario": QUICK_START, "steps": 1 })),
        ("/api/v1/map", json!({ "scenario": SPRINT, "nodes": "1..3", "batches": "1,4" })),
        ("/api/v1/fuse", json!({ "scenario": ALL_REDUCE })),
        ("/api/v1/replace", json!({ "scenario": REPLACEMENT })),
        ("/api/v1/plan", json!({ "scenario": SMALL, "global_batch": 64 })),
        ("/api/v1/layout", json!({ "scenario": SMALL, "role": "tensor" })),
        ("/api/v1/decide", json!({ "scenario": OFFERS })),
        ("/api/v1/stops", json!({ "scenario": SMALL })),
    ] {
        let question =
            format!("/paths/{}/post/requestBody/content/application~1json/schema", path.replace('/', "~1"));
        agrees(&described, &question, &body);
        let (status, _, bytes) = ask(&app, asking(path, "application/json", &body)).await;
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        agrees(&described, &answers(path, "post", "application/json"), &answer);
    }
}

#[tokio::test]
async fn events_are_as_described() {
    let app = app();
    let described = get(&app, "/api").await;
    for (path, body) in [
        ("/api/v1/predict", json!({ "scenario": QUICK_START })),
        ("/api/v1/search", json!({ "scenario": QUICK_START, "minimize": "cost", "vary": ["batch=1..4"] })),
        (
            "/api/v1/search",
            json!({ "scenario": QUICK_START, "minimize": "iteration", "vary": ["batch=1..4"] }),
        ),
        ("/api/v1/sweep", json!({ "scenario": QUICK_START, "vary": ["batch=1..4"] })),
        ("/api/v1/map", json!({ "scenario": SPRINT, "nodes": "1..3", "batches": "1,4" })),
        ("/api/v1/fuse", json!({ "scenario": ALL_REDUCE })),
        ("/api/v1/replace", json!({ "scenario": REPLACEMENT })),
        ("/api/v1/plan", json!({ "scenario": SMALL, "global_batch": 64 })),
        ("/api/v1/layout", json!({ "scenario": SMALL })),
        (
            "/api/v1/compare",
            json!({ "scenario": QUICK_START, "set": ["methods.simulate.steps=20", "methods.simulate.warm-up=2", "methods.simulate.runs=2"] }),
        ),
    ] {
        let (_, _, bytes) = ask(&app, asking(path, "application/x-ndjson", &body)).await;
        for event in lines(&bytes) {
            if event["event"] == "problem" {
                agrees(&described, "/components/schemas/Problem", &event["problem"]);
            } else {
                agrees(&described, &answers(path, "post", "application/x-ndjson"), &event);
            }
        }
    }
}

#[tokio::test]
async fn uploads_and_problems_are_as_described() {
    let app = app();
    let described = get(&app, "/api").await;
    let parameters = described.pointer("/paths/~1api~1v1~1uploads/post/parameters").unwrap();
    let names: Vec<&str> =
        parameters.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["name", "batch"]);
    let upload = request("POST", "/api/v1/uploads?name=layers.csv&batch=8")
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .body(Body::from(LAYERS))
        .unwrap();
    let (_, _, bytes) = ask(&app, upload).await;
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    assert!(answer["overview"].is_object(), "{answer}");
    agrees(&described, &answers("/api/v1/uploads", "post", "application/json"), &answer);

    let wrong = asking("/api/v1/predict", "application/json", &json!({ "scenario": "[model]\nzoo = 3" }));
    let (status, _, bytes) = ask(&app, wrong).await;
    assert_ne!(status, StatusCode::OK);
    let default = "/paths/~1api~1v1~1predict/post/responses/default/content/application~1problem+json/schema";
    agrees(&described, default, &serde_json::from_slice(&bytes).unwrap());
}

/// Scenario files themselves can be held against the schema: editors do.
#[tokio::test]
async fn examples_are_as_described() {
    let app = app();
    let described = get(&app, "/api").await;
    for example in get(&app, "/api/v1/examples").await.as_array().unwrap() {
        let scenario: Value = toml::from_str(example["scenario"].as_str().unwrap()).unwrap();
        agrees(&described, "/components/schemas/ScenarioFile", &scenario);
    }
    let schema = described.pointer("/components/schemas/ScenarioFile").unwrap();
    assert_eq!(schema["additionalProperties"], false, "unknown keys are refused");
}
