//! The server: listens until it receives a signal.

use crate::connections::accept;
use crate::{Access, Shared, Token, assemble};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Time for running requests to finish after the first signal.
const GRACE: Duration = Duration::from_millis(1000);
/// Time for cancelled requests to report this.
const FAREWELL: Duration = Duration::from_millis(400);

/// The address to listen on, and who may ask.
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
    clean(&shared);
    // Work that does not look at its cancellation ends with the process.
    runtime.shutdown_background();
    ended
}

/// Removes what lies on the disk: work that goes on would keep it.
fn clean(shared: &Arc<Shared>) {
    shared.uploads.remove();
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
