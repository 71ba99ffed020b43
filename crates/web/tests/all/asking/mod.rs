//! Requests to the application, without a network.

#![allow(dead_code, unreachable_pub, reason = "no test needs all of it")]

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use stepcast_web::{Access, application};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub fn app() -> Router {
    application(Access::Loopback, None, CancellationToken::new()).unwrap()
}

pub fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, "localhost:7400")
}

pub fn asking(path: &str, accept: &str, body: &Value) -> Request<Body> {
    request("POST", path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, accept)
        .body(Body::from(body.to_string()))
        .unwrap()
}

pub async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, String, Vec<u8>) {
    let response: Response<Body> = app.clone().oneshot(request).await.unwrap();
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind.unwrap_or_default(), bytes.to_vec())
}

pub async fn post(app: &Router, path: &str, body: Value) -> Value {
    let (status, _, bytes) = ask(app, asking(path, "application/json", &body)).await;
    let value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status, StatusCode::OK, "{value}");
    value
}
