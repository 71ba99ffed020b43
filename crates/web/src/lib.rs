//! `stepcast serve`: the web page, its API, their protection, and the server, which listens until it receives a signal.
//!
//! Responses come from the same studies as on the command line, and charts come from `report`. By default the
//! server listens on this machine only (`guard`). It reads no file that a request names (`uploads`), and does heavy
//! work in bounded queues that cancel the work of disconnected clients (`work`).
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod api;
mod assets;
mod connections;
mod edit;
mod guard;
mod problem;
mod request;
mod study;
mod uploads;
mod work;

pub use guard::{Access, Token};

use axum::http::HeaderValue;
use axum::{Router, middleware};
use connections::accept;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal;
use tokio::time::{sleep, timeout};
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
pub fn application(access: Access, token: Option<Token>, stop: CancellationToken) -> io::Result<Router> {
    Ok(assemble(access, token, stop)?.0)
}

fn assemble(
    access: Access,
    token: Option<Token>,
    stop: CancellationToken,
) -> io::Result<(Router, Arc<Shared>)> {
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
    let compressed = DefaultPredicate::new().and(NotForContentType::const_new(work::EVENTS));
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

/// Time for running requests to finish after the first signal.
const GRACE: Duration = Duration::from_millis(1000);
/// Time for cancelled requests to report this.
const FAREWELL: Duration = Duration::from_millis(400);

/// The address to listen on, and access control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub bind: IpAddr,
    /// The port; 0 for any free one.
    pub port: u16,
    pub token: Option<Token>,
}

/// How the server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Finished,
    Stopped,
}

/// Serves until a signal arrives; `ready` receives the address, `stopping` is called when the shutdown begins.
pub fn serve(
    options: &Options,
    ready: impl FnOnce(SocketAddr),
    stopping: impl FnOnce() + Send + 'static,
) -> io::Result<Ended> {
    let stop = CancellationToken::new();
    let (application, shared) =
        assemble(Access::from_address(options.bind), options.token.clone(), stop.clone())?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind((options.bind, options.port)).await?;
        let address = listener.local_addr()?;
        let leaving = CancellationToken::new();
        let server = accept(listener, application, leaving.clone());
        tokio::pin!(server);
        ready(address);
        tokio::select! {
            () = &mut server => return Ok(Ended::Finished),
            () = told() => {}
        }
        stopping();
        leaving.cancel();
        tokio::select! {
            () = &mut server => return Ok(Ended::Finished),
            () = told() => {}
            () = sleep(GRACE) => {}
        }
        stop.cancel();
        // Connections that are still open after this are dropped.
        let _ = timeout(FAREWELL, server).await;
        Ok(Ended::Stopped)
    });
    // Work that continues would keep files on the disk.
    shared.uploads.remove();
    // Work that ignores its cancellation ends with the process.
    runtime.shutdown_background();
    ended
}

/// Waits for Ctrl-C, or on Unix for SIGTERM.
async fn told() {
    #[cfg(unix)]
    {
        use signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = signal::ctrl_c().await;
}
