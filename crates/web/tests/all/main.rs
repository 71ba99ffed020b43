//! The API from outside, asked without a network: what it answers, and whether its description says so.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of them")]

mod api;
mod attacks;
mod described;
mod studies;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use stepcast_web::{Access, application};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const QUICK_START: &str = include_str!("../../../../examples/quickstart.toml");
const ASYNC: &str = include_str!("../../../../examples/async.toml");
const ALL_REDUCE: &str = include_str!("../../../../examples/all-reduce.toml");
const SPRINT: &str = include_str!("../../../../examples/sprint.toml");
const REPLACEMENT: &str = include_str!("../../../../examples/layer-replacement.toml");
/// A transformer so small that all of its plans are tried at once.
const SMALL: &str = "[model]\nzoo = \"llama3-8b\"\nsequence = 4096\n[[cluster.workers]]\ncount = 16\n\
    device = \"h100-sxm5\"\n[cluster.network]\nbase = \"infiniband-ndr\"\n[cluster.nodes]\nworkers = 8\n\
    network = \"nvlink4\"\nports = 8\n[strategy.plan]\ntensor = 4\npipeline = 2\nrecompute = [\"attention\"]\n\
    global-batch = 32\n[methods.simulate]\njitter = 0\n";

fn app() -> Router {
    application(Access::Loopback, None, CancellationToken::new()).unwrap()
}

fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, "localhost:7400")
}

const JSON: &str = "application/json";
const EVENTS: &str = "application/x-ndjson";

/// A question to an endpoint of the API.
fn asking(name: &str, accept: &str, body: &Value) -> Request<Body> {
    request("POST", &format!("/api/v1/{name}"))
        .header(header::CONTENT_TYPE, JSON)
        .header(header::ACCEPT, accept)
        .body(Body::from(body.to_string()))
        .unwrap()
}

fn get(path: &str) -> Request<Body> {
    request("GET", path).body(Body::empty()).unwrap()
}

async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, String, Vec<u8>) {
    let response: Response<Body> = app.clone().oneshot(request).await.unwrap();
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind.unwrap_or_default(), bytes.to_vec())
}

async fn post(app: &Router, name: &str, body: Value) -> Value {
    let (status, _, bytes) = ask(app, asking(name, JSON, &body)).await;
    let value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status, StatusCode::OK, "{value}");
    value
}

/// What is wrong with a request, and the status of its answer.
async fn problem(app: &Router, request: Request<Body>) -> (u16, Value) {
    let (status, kind, bytes) = ask(app, request).await;
    assert_eq!(kind, "application/problem+json", "{}", String::from_utf8_lossy(&bytes));
    let problem: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(problem["status"], status.as_u16());
    for key in ["type", "title", "detail", "remedy"] {
        assert!(problem[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {problem}");
    }
    (status.as_u16(), problem)
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Machines to choose from, for a small transformer.
const OFFERS: &str = "[model]\nzoo = \"gpt3-1.3b\"\n[plan]\ntokens = 1e10\ndeadline = \"30 d\"\n\
    [[plan.offers]]\nmachine = \"dgx-h100\"\nnodes = [1, 2]\n[[plan.offers]]\nmachine = \"p5\"\nspot = true\nnodes = [2]\n";
