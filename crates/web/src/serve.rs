//! The server: listens until it receives a signal.

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

/// Time for running requests to finish after the first signal.
const GRACE: Duration = Duration::from_secs(10);
/// Time for cancelled requests to report this.
const FAREWELL: Duration = Duration::from_secs(3);

/// The address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The address to bind to.
    pub bind: IpAddr,
    /// The port; 0 for any free one.
    pub port: u16,
}

/// How the server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All running requests were finished.
    Finished,
    /// Some requests were cancelled.
    Stopped,
}

/// Serves until a signal arrives; `ready` receives the address, `stopping` is called when the shutdown begins.
pub fn serve(
    options: &Options,
    ready: impl FnOnce(SocketAddr),
    stopping: impl FnOnce() + Send + 'static,
) -> io::Result<Ended> {
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind((options.bind, options.port)).await?;
        let address = listener.local_addr()?;
        // Events are small: by default each would wait until the client has acknowledged the one before, some 40 ms.
        // If the option cannot be set, the connection is only slower.
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
        // Connections that are still open after this are dropped.
        let _ = timeout(FAREWELL, server).await;
        Ok(Ended::Stopped)
    })
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
