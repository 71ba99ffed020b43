//! Requests of clients: JSON within limits, with a scenario, edits and the uploads that it names.

use crate::Shared;
use crate::problem::Problem;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::model::ModelFile;
use stepcast_core::profile::Profile;
use stepcast_core::scenario::{Document, Edit};
use stepcast_study::request::Source;
use stepcast_study::{MethodChoice, Request};
use tokio::time::timeout;

/// Largest body in bytes. A request has a few kilobytes; a model's layers may make it longer.
const LONGEST_BODY: usize = 1 << 20;

/// Longest time to receive a body.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Input<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: axum::extract::Request, _: &S) -> Result<Self, Problem> {
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

pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::from_request_parts(parts, state).await;
        query
            .map(|Query(given)| Self(given))
            .map_err(|rejection| Problem::malformed("query", rejection.body_text()))
    }
}

async fn body(request: axum::extract::Request) -> Result<Bytes, Problem> {
    let read = timeout(PATIENCE, to_bytes(request.into_body(), LONGEST_BODY)).await;
    let slow =
        || Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly", "try again");
    read.map_err(|_| slow())?.map_err(|error| {
        // The only other cause is a client that disconnected and will not read this.
        let reason = format!("the body cannot be read, or has more than {} KiB: {error}", LONGEST_BODY >> 10);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", reason, "send less")
    })
}

/// Most values that a request sets.
const MOST_CHANGES: usize = 256;

/// A scenario and edits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ScenarioBody {
    /// The text of a scenario file (TOML). Files that it names are uploads.
    pub(crate) scenario: String,
    /// Values to set, as with `--set`: "strategy.batch=64".
    #[serde(default)]
    pub(crate) set: Vec<String>,
}

impl ScenarioBody {
    pub(crate) fn request(&self, shared: &Arc<Shared>) -> Result<Request<Uploaded>, Problem> {
        few(self.set.len(), "set")?;
        let edits: Result<_, _> = self.set.iter().map(|text| Edit::parse(text)).collect();
        let document = Document::new("scenario", self.scenario.clone());
        Ok(Request::new(document, Uploaded(Arc::clone(shared)), edits?))
    }
}

/// Refuses more changes than a request may make.
pub(crate) fn few(changes: usize, key: &str) -> Result<(), Problem> {
    if changes > MOST_CHANGES {
        let reason = format!("{changes} changes are too many");
        let remedy = format!("make at most {MOST_CHANGES}, or write them into the scenario");
        return Err(Problem::invalid(key, reason, remedy));
    }
    Ok(())
}

pub(crate) fn method_choice(name: Option<&str>) -> Result<MethodChoice, Problem> {
    Ok(MethodChoice::named(name.unwrap_or("auto"))?)
}

pub(crate) struct Uploaded(Arc<Shared>);

impl Source for Uploaded {}

impl Files for Uploaded {
    fn profile(&self, path: &str) -> Result<Profile, Fault> {
        self.0.uploads.profile(path)
    }

    fn onnx(&self, path: &str, sizes: &BTreeMap<String, u64>) -> Result<ModelFile, Fault> {
        self.0.uploads.onnx(path, sizes)
    }

    fn text(&self, path: &str) -> Result<String, Fault> {
        Files::text(&self.0.uploads, path)
    }
}
