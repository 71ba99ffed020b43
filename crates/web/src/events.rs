//! Streamed responses: one JSON object per line, until the client disconnects.

use crate::Shared;
use crate::problem::Problem;
use crate::work::{LONGEST, Queue, Work};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use stepcast_report::json;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

/// Media type of JSON lines.
pub(crate) const CONTENT_TYPE: &str = "application/x-ndjson";

/// Most lines buffered for a slow client.
const AHEAD: usize = 16;

/// The last line of a stream that ended with an error.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Last<'a> {
    Problem { problem: &'a Problem },
}

/// The channel to which work sends its events.
pub(crate) struct Events {
    lines: mpsc::Sender<Bytes>,
    token: CancellationToken,
}

impl Events {
    /// Sends an event; blocks while the client reads slowly, and cancels the work if the client has disconnected.
    pub(crate) fn send(&self, event: &impl Serialize) {
        let Ok(line) = json::line(event) else { return };
        if self.lines.blocking_send(line.into()).is_err() {
            self.token.cancel();
        }
    }

    /// The token that is cancelled when the client disconnects.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

/// A response that `work` streams once it has a slot in the queue.
pub(crate) fn respond(
    shared: Arc<Shared>,
    queue: fn(&Work) -> &Queue,
    work: impl FnOnce(&Events) -> Result<(), Problem> + Send + 'static,
) -> Response {
    streamed(shared, queue, Box::new(work))
}

/// Work that sends its results as events.
type Streaming = dyn FnOnce(&Events) -> Result<(), Problem> + Send;

fn streamed(shared: Arc<Shared>, queue: fn(&Work) -> &Queue, work: Box<Streaming>) -> Response {
    let (lines, receiver) = mpsc::channel(AHEAD);
    let token = queue(&shared.work).token();
    let events = Events { lines: lines.clone(), token: token.clone() };
    tokio::spawn(async move {
        let left = lines.clone();
        let turn = tokio::select! {
            turn = queue(&shared.work).turn() => turn,
            () = left.closed() => return,
        };
        let done = match turn {
            Err(problem) => Err(problem),
            Ok(turn) => {
                let work = spawn_blocking(move || {
                    let done = work(&events);
                    drop(turn);
                    if events.token.is_cancelled() { Err(Problem::stopped()) } else { done }
                });
                let watch = async {
                    left.closed().await;
                    token.cancel();
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    done = work => done.unwrap_or_else(|_| Err(Problem::fault("the work ended in a panic"))),
                    () = watch => return,
                    () = sleep(LONGEST) => {
                        token.cancel();
                        Err(Problem::too_long())
                    }
                }
            }
        };
        if let Err(problem) = &done {
            let line = json::line(&Last::Problem { problem }).unwrap_or_default();
            // Fails only if the client has disconnected.
            let _ = lines.send(line.into()).await;
        }
    });
    let lines = ReceiverStream::new(receiver).map(Ok::<Bytes, Infallible>);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], Body::from_stream(lines)).into_response()
}
