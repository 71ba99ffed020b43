//! `stepcast serve`: the web page, its API, and their protection.
//!
//! Responses come from the same studies as on the command line, and charts are those of `report`. By default the
//! server listens on this machine only (`guard`). It reads no file that a request names (`uploads`), and does heavy
//! work in bounded queues that cancel the work of disconnected clients (`work`).
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod api;
mod assets;
mod connections;
mod edit;
mod events;
mod guard;
mod problem;
mod request;
mod serve;
mod study;
mod token;
mod uploads;
mod work;

pub use guard::Access;
pub use serve::{Ended, Options, serve};
pub use token::Token;

use axum::Router;
use axum::http::HeaderValue;
use axum::middleware;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use uploads::Uploads;
use work::Work;

/// The share of connections that may be uploads: one in this number.
const UPLOADING: usize = 4;

pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) token: Option<Token>,
    pub(crate) uploads: Uploads,
    pub(crate) work: Work,
    pub(crate) timelines: api::Timelines,
    pub(crate) policy: HeaderValue,
    pub(crate) specification: serde_json::Value,
}

/// The whole application; requests to it carry the token, if there is one; `stop` cancels all running work.
pub fn application(access: Access, token: Option<Token>, stop: CancellationToken) -> std::io::Result<Router> {
    Ok(assemble(access, token, stop)?.0)
}

fn assemble(
    access: Access,
    token: Option<Token>,
    stop: CancellationToken,
) -> std::io::Result<(Router, Arc<Shared>)> {
    let shared = Arc::new(Shared {
        access,
        token,
        uploads: Uploads::new((connections::most() / UPLOADING).max(1))?,
        work: Work::new(stop),
        timelines: api::Timelines::default(),
        policy: guard::policy(),
        specification: api::specification(),
    });
    // A compressor would hold events back until it has enough of them.
    let compressed = DefaultPredicate::new().and(NotForContentType::const_new(events::CONTENT_TYPE));
    let router = Router::new()
        .merge(assets::routes())
        .nest("/api", api::routes())
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::not_allowed)
        .layer(CompressionLayer::new().compress_when(compressed))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard::check))
        .with_state(Arc::clone(&shared));
    Ok((router, shared))
}
