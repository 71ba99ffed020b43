//! Requests that were made to kill, hang or fill the server, and every fuzz target with its seeds and all that once broke it.

#[allow(clippy::expect_used, dead_code, unreachable_pub, reason = "a library of its own")]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use crate::{JSON, QUICK_START, app, ask, asking, get, post, problem, request};
use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::path::Path;
use stepcast_web::{Access, Token, application};
use tokio_util::sync::CancellationToken;

async fn refused(app: &Router, name: &str, body: &Value) -> Value {
    let (status, problem) = problem(app, asking(name, JSON, body)).await;
    assert_eq!(status, 422, "{name}: {problem}");
    let length = problem.to_string().len();
    assert!(length < 2000, "{name}: a message of {length} bytes");
    problem
}

#[tokio::test]
async fn keys_of_thousands_of_parts_are_refused() {
    let app = app();
    let key = vec!["a"; 60_000].join(".");
    let nested = format!("model={}1{}", "{a.a.a.a.a.a.a.a.a.a=".repeat(75), "}".repeat(75));
    for set in [format!("{key}=1"), format!("cluster.{key}=1"), nested] {
        for path in ["predict", "compare", "timeline"] {
            refused(&app, path, &json!({ "scenario": QUICK_START, "set": [set] })).await;
        }
    }
    let vary =
        json!({ "scenario": QUICK_START, "minimize": "iteration", "vary": [format!("cluster.{key}=1,2")] });
    refused(&app, "search", &vary).await;
    let edit = json!({ "scenario": QUICK_START, "edit": [{ "key": key, "value": "1" }] });
    refused(&app, "scenario", &edit).await;
    let removed = json!({ "scenario": QUICK_START, "edit": [{ "key": key }] });
    refused(&app, "scenario", &removed).await;
}

#[tokio::test]
async fn texts_of_thousands_of_levels_are_refused() {
    let app = app();
    let key = vec!["a"; 75].join(".");
    let text = format!("{}1{}", format!("{key} = {{ ").repeat(75), " }".repeat(75)).replace("{ 1", "{ b = 1");
    refused(&app, "predict", &json!({ "scenario": text })).await;
    let described = post(&app, "scenario", json!({ "scenario": text })).await;
    assert!(described["problem"]["detail"].as_str().unwrap().contains("nested too deeply"), "{described}");
    let edit = json!({ "scenario": text, "edit": [{ "key": "strategy.batch", "value": "1" }] });
    refused(&app, "scenario", &edit).await;
    let value =
        json!({ "scenario": QUICK_START, "edit": [{ "key": "model", "value": format!("{{ {text} }}") }] });
    let described = post(&app, "scenario", value).await;
    assert!(described["problem"].is_object(), "it is a text, not a table");
}

#[tokio::test]
async fn thousands_of_changes_and_values_are_refused_at_once() {
    let app = app();
    let set: Vec<String> = (0..30_000).map(|batch| format!("strategy.batch={batch}")).collect();
    refused(&app, "predict", &json!({ "scenario": QUICK_START, "set": set })).await;
    let edit: Vec<Value> =
        (0..15_000).map(|batch| json!({ "key": "strategy.batch", "value": batch.to_string() })).collect();
    refused(&app, "scenario", &json!({ "scenario": QUICK_START, "edit": edit })).await;
    let values: Vec<String> = (1..150_000).map(|batch| batch.to_string()).collect();
    let vary = format!("cluster.{}={}", "workers.count", values.join(",")).replace(",7,", ",7,7,");
    let body = json!({ "scenario": QUICK_START, "minimize": "iteration", "vary": [vary] });
    let problem = refused(&app, "search", &json!(body)).await;
    assert!(problem["detail"].as_str().unwrap().contains("twice"), "{problem}");
}

/// Caught: a query that cannot be read was answered in plain text.
#[tokio::test]
async fn a_malformed_query_has_a_reason() {
    for path in ["/api/v1/uploads?batch=many", "/api/v1/uploads?name=%ff&batch=-1"] {
        let asked = request("POST", path).body(Body::from("x")).unwrap();
        let (status, problem) = problem(&app(), asked).await;
        assert_eq!((status, &problem["key"]), (400, &json!("query")), "{problem}");
        assert!(problem["remedy"].as_str().unwrap().contains("/api"), "{problem}");
    }
}

#[tokio::test]
async fn a_token_is_asked_of_the_api_and_carried_by_the_link() {
    let token = Token::new("open-sesame").unwrap();
    let app = application(Access::Network, Some(token), CancellationToken::new()).unwrap();
    let plain = |path: &str| {
        let mut asked = get(path);
        asked.headers_mut().insert("host", "10.0.0.1:7400".parse().unwrap());
        asked
    };
    assert_eq!(ask(&app, plain("/")).await.0, StatusCode::OK, "the page is no secret");
    assert_eq!(ask(&app, plain("/main.js")).await.0, StatusCode::OK);
    for path in ["/api", "/api/v1/methods", "/api/v1/methods?token=open-sesame"] {
        let (status, problem) = problem(&app, plain(path)).await;
        assert_eq!(status, 401, "{path}");
        assert!(!problem.to_string().contains("open-sesame"));
    }
    for (name, value) in [("authorization", "Bearer open-sesame"), ("cookie", "stepcast-7400=open-sesame")] {
        let mut asked = plain("/api/v1/methods");
        asked.headers_mut().insert(name, value.parse().unwrap());
        assert_eq!(ask(&app, asked).await.0, StatusCode::OK, "{name}");
    }
    assert_eq!(ask(&app, plain("/?token=open-sesame")).await.0, StatusCode::SEE_OTHER);
    assert_eq!(ask(&app, plain("/?token=open-barley")).await.0, StatusCode::OK, "only the page");
}

#[test]
fn targets_hold_for_their_seeds_and_regressions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for target in targets::TARGETS {
        let mut inputs = 0;
        for kind in ["seeds", "regressions"] {
            for file in folder.join(kind).join(target.name).read_dir().into_iter().flatten() {
                target.run(&std::fs::read(file.unwrap().path()).unwrap());
                inputs += 1;
            }
        }
        assert!(inputs > 0, "{} has no seeds", target.name);
    }
}
