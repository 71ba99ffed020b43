//! Request bodies: JSON within limits; every error becomes a problem document.

use crate::problem::Problem;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// Largest body in bytes. A request has a few kilobytes; a model's layers may make it longer.
const LONGEST: usize = 1 << 20;

/// Longest time to receive a body.
const PATIENCE: Duration = Duration::from_secs(20);

/// A JSON body.
pub(crate) struct Input<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            let remedy = "send Content-Type: application/json";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Problem::new(status, "not-json", "the body is not JSON", remedy));
        }
        let bytes = body(request).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            let mut problem = Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed-body",
                error.to_string(),
                "see /api for what a body holds",
            );
            (problem.line, problem.column) = (Some(error.line()), Some(error.column()));
            problem
        })
    }
}

async fn body(request: Request) -> Result<Bytes, Problem> {
    let read = timeout(PATIENCE, to_bytes(request.into_body(), LONGEST)).await;
    let slow =
        || Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly", "try again");
    read.map_err(|_| slow())?.map_err(|error| {
        // The only other cause is a client that disconnected and will not read this.
        let reason = format!("the body cannot be read, or has more than {} KiB: {error}", LONGEST >> 10);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", reason, "send less")
    })
}
