//! Requests to the application, without a network.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use stepcast_web::{Access, application};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) const QUICK_START: &str = include_str!("../../../../examples/quickstart.toml");
pub(crate) const ASYNC: &str = include_str!("../../../../examples/async.toml");
pub(crate) const ALL_REDUCE: &str = include_str!("../../../../examples/all-reduce.toml");
pub(crate) const SPRINT: &str = include_str!("../../../../examples/sprint.toml");
pub(crate) const REPLACEMENT: &str = include_str!("../../../../examples/layer-replacement.toml");
/// A transformer of which all plans are tried in no time.
pub(crate) const SMALL: &str = "[model]\nzoo = \"llama3-8b\"\nsequence = 4096\n[[cluster.workers]]\ncount = 16\n\
    device = \"h100-sxm5\"\n[cluster.network]\nbase = \"infiniband-ndr\"\n[cluster.nodes]\nworkers = 8\n\
    network = \"nvlink4\"\nports = 8\n[strategy.plan]\ntensor = 4\npipeline = 2\nrecompute = [\"attention\"]\n\
    global-batch = 32\n[methods.simulate]\njitter = 0\n";

pub(crate) fn app() -> Router {
    application(Access::Loopback, None, CancellationToken::new()).unwrap()
}

pub(crate) fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, "localhost:7400")
}

pub(crate) fn asking(path: &str, accept: &str, body: &Value) -> Request<Body> {
    request("POST", path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, accept)
        .body(Body::from(body.to_string()))
        .unwrap()
}

pub(crate) async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, String, Vec<u8>) {
    let response: Response<Body> = app.clone().oneshot(request).await.unwrap();
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind.unwrap_or_default(), bytes.to_vec())
}

pub(crate) async fn post(app: &Router, path: &str, body: Value) -> Value {
    let (status, _, bytes) = ask(app, asking(path, "application/json", &body)).await;
    let value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status, StatusCode::OK, "{value}");
    value
}

pub(crate) fn lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Machines to choose from, for a small transformer.
pub(crate) const OFFERS: &str = "[model]\nzoo = \"gpt3-1.3b\"\n[plan]\ntokens = 1e10\ndeadline = \"30 d\"\n\
    [[plan.offers]]\nmachine = \"dgx-h100\"\nnodes = [1, 2]\n[[plan.offers]]\nmachine = \"p5\"\nspot = true\nnodes = [2]\n";
