//! Listening, until told to stop.

use crate::{Access, application};
use axum::serve::ListenerExt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// What is under way may take so long after the first signal before it is stopped.
const GRACE: Duration = Duration::from_secs(10);
/// And so long to say so.
const FAREWELL: Duration = Duration::from_secs(3);

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The address to bind to.
    pub bind: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All that was under way was finished.
    Finished,
    /// Some of it was stopped.
    Stopped,
}

/// Serves until a signal comes; `ready` is told the address, `stopping` that the end has begun.
pub fn serve(
    options: &Options,
    ready: impl FnOnce(SocketAddr),
    stopping: impl FnOnce() + Send + 'static,
) -> io::Result<Ended> {
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind((options.bind, options.port)).await?;
        let address = listener.local_addr()?;
        // Events are small: by default each would wait until the client has acknowledged the one before, some 40 ms.
        // A connection that refuses this is only slower.
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        let stop = CancellationToken::new();
        let leaving = CancellationToken::new();
        let application = application(Access::of(options.bind), stop.clone())?;
        ready(address);
        let server = axum::serve(listener, application)
            .with_graceful_shutdown(leaving.clone().cancelled_owned())
            .into_future();
        tokio::pin!(server);
        tokio::select! {
            ended = &mut server => return ended.map(|()| Ended::Finished),
            () = told() => {}
        }
        stopping();
        leaving.cancel();
        tokio::select! {
            ended = &mut server => return ended.map(|()| Ended::Finished),
            () = told() => {}
            () = sleep(GRACE) => {}
        }
        stop.cancel();
        // Whoever does not read to the end is left.
        let _ = timeout(FAREWELL, server).await;
        Ok(Ended::Stopped)
    })
}

/// Waits for Ctrl-C, or on Unix for being asked to terminate.
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
