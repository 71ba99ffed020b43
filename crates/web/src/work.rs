//! Bounded work queues, and responses that are streamed from them: fast and slow requests have separate queues, and work for
//! disconnected clients is cancelled.

use crate::Shared;
use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde::Serialize;
use std::convert::Infallible;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use stepcast_report::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

/// Most waiting requests for closed forms, and for the event engine and searches.
const WAITING: (usize, usize) = (512, 32);

/// Longest processing time of a request, excluding its time in the queue.
const LONGEST: Duration = Duration::from_secs(120);

pub(crate) fn check(token: &CancellationToken) -> ControlFlow<()> {
    if token.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

type Task = dyn FnOnce(&CancellationToken) -> Result<(), Problem> + Send;

pub(crate) struct Queue {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    stop: CancellationToken,
}

/// A slot of a queue, released when dropped.
pub(crate) struct Turn(
    #[expect(dead_code, reason = "held until the work is done")] [OwnedSemaphorePermit; 2],
);

impl Queue {
    fn new(places: usize, waiting: usize, stop: CancellationToken) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            waiting: Arc::new(Semaphore::new(places + waiting)),
            stop,
        }
    }

    /// A token that cancels one task; it is also cancelled with the server.
    pub(crate) fn token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    pub(crate) async fn turn(&self) -> Result<Turn, Problem> {
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => Problem::busy(),
            TryAcquireError::Closed => Problem::stopped(),
        })?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Problem::stopped())?;
        Ok(Turn([waiting, place]))
    }

    /// Runs `work` on a thread of its own once a slot is free. The token is cancelled when the client disconnects.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancellationToken) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (give, taken) = std::sync::mpsc::sync_channel(1);
        self.run_boxed(Box::new(move |token| {
            let done = work(token)?;
            give.send(done).map_err(|_| Problem::stopped())
        }))
        .await?;
        taken.try_recv().map_err(|_| Problem::stopped())
    }

    /// The non-generic part of [`Queue::run`].
    async fn run_boxed(&self, work: Box<Task>) -> Result<(), Problem> {
        let turn = self.turn().await?;
        let token = self.token();
        let guard = token.clone().drop_guard();
        let done = spawn_blocking(move || {
            let done = work(&token);
            drop(turn);
            if token.is_cancelled() { Err(Problem::stopped()) } else { done }
        });
        let done = timeout(LONGEST, done).await.map_err(|_| Problem::too_long())?;
        drop(guard);
        done.map_err(|_| Problem::fault("the work ended in a panic"))?
    }
}

pub(crate) struct Work {
    quick: Queue,
    heavy: Queue,
}

impl Work {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            quick: Queue::new(2 * cores, WAITING.0, stop.clone()),
            heavy: Queue::new(cores, WAITING.1, stop),
        }
    }

    /// For closed forms and other work that takes milliseconds.
    pub(crate) fn quick(&self) -> &Queue {
        &self.quick
    }

    /// For the event engine, searches and imports.
    pub(crate) fn heavy(&self) -> &Queue {
        &self.heavy
    }
}

/// Media type of streamed events: JSON lines.
pub(crate) const EVENTS: &str = "application/x-ndjson";

/// Most lines buffered for a slow client.
const AHEAD: usize = 16;

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
            let last = serde_json::json!({ "event": "problem", "problem": problem });
            let line = json::line(&last).unwrap_or_default();
            // Fails only if the client has disconnected.
            let _ = lines.send(line.into()).await;
        }
    });
    let lines = ReceiverStream::new(receiver).map(Ok::<Bytes, Infallible>);
    ([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(lines)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn a_full_queue_says_so() {
        let queue = Arc::new(Queue::new(1, 0, CancellationToken::new()));
        let (go, wait) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move { queue.run(move |_| Ok(wait.recv().is_ok())).await }
        });
        while queue.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(queue.run(|_| Ok(())).await, Err(Problem::busy()));
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Ok(true));
        assert_eq!(queue.run(|_| Ok(1)).await, Ok(1));
    }

    #[tokio::test]
    async fn work_ends_when_the_client_leaves() {
        let queue = Queue::new(1, 1, CancellationToken::new());
        let (ended, seen) = mpsc::channel();
        let work = queue.run(move |token| {
            while !token.is_cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            ended.send(()).map_err(|_| Problem::stopped())
        });
        assert!(timeout(Duration::from_millis(50), work).await.is_err());
        assert!(seen.recv_timeout(Duration::from_secs(10)).is_ok());
        assert!(queue.run(|_| Ok(())).await.is_ok(), "the place is free again");
    }

    #[tokio::test]
    async fn a_panic_is_a_fault_and_frees_the_place() {
        let queue = Queue::new(1, 0, CancellationToken::new());
        let gone: Result<(), Problem> = queue.run(|_| panic!("on purpose")).await;
        assert_eq!(gone.unwrap_err().status, 500);
        assert!(queue.run(|_| Ok(())).await.is_ok());
    }
}
