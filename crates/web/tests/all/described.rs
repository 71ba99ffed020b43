//! What the API says of itself at `/api`, held against what it answers. A keyword of JSON Schema that is not checked here is an
//! error, so that nothing passes unseen.

use crate::{
    ALL_REDUCE, ASYNC, EVENTS, JSON, OFFERS, QUICK_START, REPLACEMENT, SMALL, SPRINT, app, ask, asking, get,
    lines, problem, request,
};
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};
use stepcast_core::strategy::Synchronisation;

const LAYERS: &str = "layer,forward_ms,backward_ms,bytes\nfirst,1,2,4000\nsecond,2,3,8000\n";

async fn got(app: &Router, path: &str) -> Value {
    let (status, _, bytes) = ask(app, get(path)).await;
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
    let described = got(&app(), "/api").await;
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
    let described = got(&app, "/api").await;
    for path in ["examples", "models", "methods", "devices", "networks"].map(|list| format!("/api/v1/{list}"))
    {
        let list = got(&app, &path).await;
        assert!(list.as_array().map_or_else(|| list.as_object().unwrap().len(), Vec::len) > 3);
        agrees(&described, &answers(&path, "get", JSON), &list);
    }
}

/// Answers as a whole and, where there are events, as a stream.
#[tokio::test]
async fn answers_and_events_are_as_described() {
    let app = app();
    let described = got(&app, "/api").await;
    let short = json!(["methods.simulate.steps=20", "methods.simulate.warm-up=2", "methods.simulate.runs=2"]);
    for (name, body) in [
        ("predict", json!({ "scenario": QUICK_START })),
        ("predict", json!({ "scenario": ASYNC, "set": short, "workers": [1, 2] })),
        ("predict", json!({ "scenario": ALL_REDUCE })),
        ("compare", json!({ "scenario": QUICK_START, "set": short })),
        ("scenario", json!({ "scenario": QUICK_START, "edit": [{ "key": "strategy.batch", "value": "8" }] })),
        ("search", json!({ "scenario": QUICK_START, "minimize": "iteration", "vary": ["batch=1..4"] })),
        ("sweep", json!({ "scenario": QUICK_START, "vary": ["batch=1..4"] })),
        ("timeline", json!({ "scenario": QUICK_START, "steps": 1 })),
        ("map", json!({ "scenario": SPRINT, "nodes": "1..3", "batches": "1,4" })),
        ("fuse", json!({ "scenario": ALL_REDUCE })),
        ("replace", json!({ "scenario": REPLACEMENT })),
        ("plan", json!({ "scenario": SMALL, "global_batch": 64 })),
        ("layout", json!({ "scenario": SMALL, "role": "tensor" })),
        ("decide", json!({ "scenario": OFFERS })),
        ("stops", json!({ "scenario": SMALL })),
    ] {
        let path = format!("/api/v1/{name}");
        let question =
            format!("/paths/{}/post/requestBody/content/application~1json/schema", path.replace('/', "~1"));
        agrees(&described, &question, &body);
        let (status, kind, bytes) = ask(&app, asking(name, JSON, &body)).await;
        assert_eq!(status, StatusCode::OK, "{name}: {}", String::from_utf8_lossy(&bytes));
        // Rows of a sweep are lines.
        if kind == JSON {
            let answer = serde_json::from_slice(&bytes).unwrap();
            agrees(&described, &answers(&path, "post", JSON), &answer);
        }
        let events = answers(&path, "post", EVENTS);
        if described.pointer(&events).is_some() {
            let (_, _, bytes) = ask(&app, asking(name, EVENTS, &body)).await;
            lines(&bytes).iter().for_each(|event| agrees(&described, &events, event));
        }
    }
    let unknown = json!({ "scenario": "model.zoo = \"vgg61\"", "vary": ["batch=1..4"] });
    let (_, _, bytes) = ask(&app, asking("sweep", EVENTS, &unknown)).await;
    let last = lines(&bytes).pop().unwrap();
    assert_eq!(last["event"], "problem");
    agrees(&described, "/components/schemas/Problem", &last["problem"]);
}

#[tokio::test]
async fn uploads_and_problems_are_as_described() {
    let app = app();
    let described = got(&app, "/api").await;
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
    agrees(&described, &answers("/api/v1/uploads", "post", JSON), &answer);

    let wrong = json!({ "scenario": "[model]\nzoo = 3" });
    let (_, problem) = problem(&app, asking("predict", JSON, &wrong)).await;
    let default = "/paths/~1api~1v1~1predict/post/responses/default/content/application~1problem+json/schema";
    agrees(&described, default, &problem);
}

/// Scenario files themselves can be held against the schema: editors do.
#[tokio::test]
async fn examples_are_as_described() {
    let app = app();
    let described = got(&app, "/api").await;
    for example in got(&app, "/api/v1/examples").await.as_array().unwrap() {
        let scenario: Value = toml::from_str(example["scenario"].as_str().unwrap()).unwrap();
        agrees(&described, "/components/schemas/ScenarioFile", &scenario);
    }
    let schema = described.pointer("/components/schemas/ScenarioFile").unwrap();
    assert_eq!(schema["additionalProperties"], false, "unknown keys are refused");
}

/// What is wrong with `value` by a schema; `root` is where references lead.
fn violations(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(root, schema, value, "", &mut found);
    found
}

fn holds(root: &Value, schema: &Value, value: &Value) -> bool {
    violations(root, schema, value).is_empty()
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            found.push(format!("{at}: nothing is allowed here"));
        }
        return;
    };
    let list = |keyword: &Value| keyword.as_array().cloned().unwrap_or_default();
    for (keyword, argument) in keywords {
        let right = match keyword.as_str() {
            "$ref" => {
                let target = argument.as_str().and_then(|text| root.pointer(text.strip_prefix('#')?));
                check(root, target.unwrap_or(&Value::Bool(false)), value, at, found);
                true
            }
            "type" => match argument {
                Value::Array(types) => types.iter().any(|one| is_type(one, value)),
                one => is_type(one, value),
            },
            "const" => value == argument,
            "enum" => list(argument).contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= argument.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= argument.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches_pattern(argument.as_str().unwrap(), text)),
            "minItems" => {
                value.as_array().is_none_or(|items| items.len() as u64 >= argument.as_u64().unwrap())
            }
            "maxItems" => {
                value.as_array().is_none_or(|items| items.len() as u64 <= argument.as_u64().unwrap())
            }
            "required" => {
                let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
                !value.is_object() || list(argument).iter().all(has)
            }
            "allOf" => {
                list(argument).iter().for_each(|one| check(root, one, value, at, found));
                true
            }
            "anyOf" => list(argument).iter().any(|one| holds(root, one, value)),
            "oneOf" => list(argument).iter().filter(|one| holds(root, one, value)).count() == 1,
            "not" => !holds(root, argument, value),
            "properties" => {
                for (key, own) in argument.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        check(root, own, value, &format!("{at}/{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let named = keywords.get("properties").and_then(Value::as_object);
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                let is_named = |key: &String| {
                    named.is_some_and(|named| named.contains_key(key))
                        || patterns.is_some_and(|all| all.keys().any(|pattern| matches_pattern(pattern, key)))
                };
                for (key, value) in value.as_object().into_iter().flatten() {
                    if !is_named(key) {
                        check(root, argument, value, &format!("{at}/{key}"), found);
                    }
                }
                true
            }
            "patternProperties" => {
                for (pattern, own) in argument.as_object().unwrap() {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        if matches_pattern(pattern, key) {
                            check(root, own, value, &format!("{at}/{key}"), found);
                        }
                    }
                }
                true
            }
            "prefixItems" | "items" => {
                let first = keywords.get("prefixItems").map_or(0, |prefix| list(prefix).len());
                let skipped = if keyword == "items" { first } else { 0 };
                for (index, value) in value.as_array().into_iter().flatten().enumerate().skip(skipped) {
                    let own = argument.as_array().map_or(Some(argument), |prefix| prefix.get(index));
                    if let Some(own) = own {
                        check(root, own, value, &format!("{at}/{index}"), found);
                    }
                }
                true
            }
            // Descriptions, extensions, and formats of numbers that their types and bounds imply.
            "title" | "description" | "default" | "examples" | "format" | "$schema" | "components"
            | "deprecated" => true,
            extension if extension.starts_with("x-") => true,
            _ => unreachable!("{at}: {keyword} is not checked"),
        };
        if !right {
            found.push(format!("{at}: {value:.200} is against {keyword} {argument:.200}"));
        }
    }
}

/// The patterns of the description, each by what it stands for.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern {
        r"\.\." => text.contains(".."),
        r"^\d+$" => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
        _ if pattern.starts_with("^(bsp|async|") => text.parse::<Synchronisation>().is_ok(),
        _ => unreachable!("{pattern} is not checked"),
    }
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => unreachable!("there is no type {other}"),
    }
}

#[test]
fn what_is_wrong_is_found() {
    let schema = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {
            "a": { "$ref": "#/components/whole" },
            "b": { "type": "array", "prefixItems": [{ "const": 1 }], "items": { "enum": ["x", "y"] }, "maxItems": 3 },
            "c": { "oneOf": [{ "type": "null" }, { "type": "number", "maximum": 2 }] },
        },
        "components": { "whole": { "type": ["integer", "null"], "minimum": 0 } },
    });
    let wrong = |text: &str| violations(&schema, &schema, &serde_json::from_str(text).unwrap());
    for right in [r#"{"a":1}"#, r#"{"a":null,"b":[1,"x"]}"#, r#"{"a":2.0,"c":null}"#, r#"{"a":0,"c":1.5}"#] {
        assert_eq!(wrong(right), Vec::<String>::new(), "{right}");
    }
    for (text, place) in [
        ("[]", ""),
        ("{}", ""),
        (r#"{"a":-1}"#, "/a"),
        (r#"{"a":0.5}"#, "/a"),
        (r#"{"a":1,"d":2}"#, "/d"),
        (r#"{"a":1,"b":[2]}"#, "/b/0"),
        (r#"{"a":1,"b":[1,"z"]}"#, "/b/1"),
        (r#"{"a":1,"b":[1,"x","x","x"]}"#, "/b"),
        (r#"{"a":1,"c":3}"#, "/c"),
    ] {
        assert!(
            wrong(text).iter().any(|reason| reason.starts_with(&format!("{place}: "))),
            "{text}: {:?}",
            wrong(text)
        );
    }
}
