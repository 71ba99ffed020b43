//! The API, version 1: one file for each endpoint.

pub(crate) mod catalog;
pub(crate) mod compare;
pub(crate) mod fuse;
pub(crate) mod layout;
pub(crate) mod map;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod replace;
pub(crate) mod scenario;
pub(crate) mod search;
pub(crate) mod sweep;
pub(crate) mod timeline;
pub(crate) mod uploads;

pub(crate) use timeline::Timelines;

use crate::Shared;
use crate::study::ask;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    let first = Router::new()
        .route("/examples", get(catalog::examples))
        .route("/keys", get(catalog::keys))
        .route("/methods", get(catalog::methods))
        .route("/models", get(catalog::models))
        .route("/devices", get(catalog::devices))
        .route("/networks", get(catalog::networks))
        .route("/scenario", post(scenario::describe))
        .route("/predict", post(predict::predict))
        .route("/compare", post(compare::compare))
        .route("/search", post(ask::<search::Body>))
        .route("/sweep", post(ask::<sweep::Body>))
        .route("/map", post(ask::<map::Body>))
        .route("/fuse", post(ask::<fuse::Body>))
        .route("/replace", post(ask::<replace::Body>))
        .route("/plan", post(ask::<plan::Body>))
        .route("/layout", post(ask::<layout::Body>))
        .route("/timeline", post(timeline::timeline))
        .route("/uploads", post(uploads::receive))
        .route("/uploads/{name}", get(uploads::download));
    Router::new().route("/", get(specification)).nest("/v1", first)
}

async fn specification(State(shared): State<Arc<Shared>>) -> Response {
    Json(&shared.specification.0).into_response()
}

/// Whether the client prefers a response of this media type.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let wanted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    wanted.split(',').any(|wanted| wanted.split(';').next().map(str::trim) == Some(kind))
}
