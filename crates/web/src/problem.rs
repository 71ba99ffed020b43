//! Errors as problem details (RFC 9457) with the key, the reason and the remedy.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::fmt::Display;
use stepcast_core::fault::{Excerpt, Fault, Remedies, shown};
use stepcast_study::Stopped;
use stepcast_study::explore::sweep::VaryError;
use stepcast_trace::UNKNOWN_BATCH;

/// An error response.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// A short, stable identifier for programs.
    #[serde(rename = "type")]
    kind: String,
    /// A short title.
    title: String,
    /// The status of the response.
    pub(crate) status: u16,
    /// The reason.
    pub(crate) detail: String,
    /// How to fix it.
    #[serde(flatten)]
    pub(crate) remedy: Remedies,
    /// The key of the scenario or the part of the request that caused it.
    pub(crate) key: Option<String>,
    /// The line of the scenario, from 1.
    pub(crate) line: Option<usize>,
    /// The column in that line, from 1.
    pub(crate) column: Option<usize>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        kind: &str,
        detail: impl Into<String>,
        remedy: impl Into<Remedies>,
    ) -> Self {
        Self {
            kind: format!("urn:stepcast:{kind}"),
            title: kind.replace('-', " "),
            status: status.as_u16(),
            detail: detail.into(),
            remedy: remedy.into(),
            key: None,
            line: None,
            column: None,
        }
    }

    pub(crate) fn invalid(key: &str, detail: impl Into<String>, remedy: impl Into<Remedies>) -> Self {
        let key = Some(key.to_owned()).filter(|key| !key.is_empty());
        Self { key, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", detail, remedy) }
    }

    /// A part of a request that cannot be read.
    pub(crate) fn malformed(part: &str, detail: String) -> Self {
        let kind = format!("malformed-{part}");
        Self::new(StatusCode::BAD_REQUEST, &kind, detail, "see /api for what it holds").at(part)
    }

    /// The problem, attributed to this part of the request.
    #[must_use]
    pub(crate) fn at(self, key: impl Into<String>) -> Self {
        Self { key: Some(shown(&key.into())), ..self }
    }

    /// An upload that cannot be used. The position is omitted: it may contain a path of this machine.
    pub(crate) fn upload(fault: Fault) -> Self {
        if fault.reason == UNKNOWN_BATCH {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Self::new(status, "unknown-batch", fault.reason, fault.remedy).at("batch");
        }
        Self::invalid("upload", fault.reason, fault.remedy)
    }

    pub(crate) fn busy() -> Self {
        let reason = "the server has as much to do as it takes on";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", reason, "try again in a moment")
    }

    pub(crate) fn stopped() -> Self {
        let reason = "it was stopped before it was done";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopped", reason, "ask again")
    }

    pub(crate) fn too_long() -> Self {
        let remedy = "ask for less, or use the command line, which has no limit";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "too-long", "it takes too long", remedy)
    }

    pub(crate) fn fault(reason: impl Display) -> Self {
        let remedy = "report it, with the scenario";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", reason.to_string(), remedy)
    }
}

impl From<Fault> for Problem {
    /// An error with a position is in the scenario, otherwise in the request.
    fn from(fault: Fault) -> Self {
        let excerpt = fault.excerpt().and_then(Excerpt::line_and_column);
        let in_scenario = fault.place.is_some();
        let mut problem = Self::invalid(&fault.key.to_string(), fault.reason, fault.remedy);
        if in_scenario {
            problem.kind = "urn:stepcast:invalid-scenario".to_owned();
            problem.title = "invalid scenario".to_owned();
            (problem.line, problem.column) = excerpt.unzip();
        }
        problem
    }
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Fault(fault) => fault.into(),
            Stopped::Cancelled => Self::stopped(),
        }
    }
}

impl From<VaryError> for Problem {
    fn from(error: VaryError) -> Self {
        match error {
            VaryError::Axis { axis, fault } => Self::from(fault).at(format!("vary: {axis}")),
            VaryError::Document(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let busy = status == StatusCode::SERVICE_UNAVAILABLE;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if busy {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

pub(crate) async fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-found", "there is nothing here", "see /api for what there is")
}

pub(crate) async fn not_allowed() -> Problem {
    let reason = "this cannot be asked by this method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", reason, "see /api for what there is")
}
