//! Connections: how many there are, how long they may be silent, and how they end.
//!
//! There are never more connections than the process has files for. If all places are taken, a new connection
//! displaces the one that has been idle longest, or else the one that has been sending its request longest; if there is
//! neither, it is answered 503 with Retry-After.
//!
//! A client that closes its side of the connection behind a request is answered. A client that has closed both sides looks
//! the same until something is sent to it: the server sends `100 Continue`, which clients ignore (RFC 9110, section 15.2), and
//! the machine of a departed client replies with a reset.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, service_fn};

/// Longest time for the head of a request, also of the next one on an idle connection.
const SILENCE: Duration = Duration::from_secs(20);

/// Longest time that a client may leave an answer unread.
const UNREAD: Duration = Duration::from_secs(20);

/// Longest time that a half-closed client is served.
const HALF_CLOSED: Duration = Duration::from_secs(60);

/// Time between two looks at a connection.
const LOOK: Duration = Duration::from_millis(250);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Most connections, however many files the process may open.
const MOST: usize = 512;

/// Open files for each connection: two of its own, its upload, and one for everything else.
#[cfg(unix)]
const FILES_EACH: u64 = 4;

const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// State of one connection.
#[derive(Debug)]
struct SlotUse {
    /// Requests that are not answered in full.
    open: usize,
    /// When the last answer ended.
    idle_since: Instant,
    /// When the client last stopped reading.
    unread_since: Option<Instant>,
    /// When a request body that is still incomplete began.
    receiving_since: Option<Instant>,
    /// Set while the response has not started: whether the client knows interim responses.
    waits: Option<bool>,
}

#[derive(Clone)]
struct ConnectionSlot {
    used: Arc<Mutex<SlotUse>>,
    displaced: CancellationToken,
}

impl ConnectionSlot {
    fn new() -> Self {
        let used = SlotUse {
            open: 0,
            idle_since: Instant::now(),
            unread_since: None,
            receiving_since: None,
            waits: None,
        };
        Self { used: Arc::new(Mutex::new(used)), displaced: CancellationToken::new() }
    }

    fn used(&self) -> MutexGuard<'_, SlotUse> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ConnectionSlots {
    taken: Mutex<Vec<ConnectionSlot>>,
    most: usize,
}

impl ConnectionSlots {
    fn new(most: usize) -> Self {
        Self { taken: Mutex::new(Vec::new()), most }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<ConnectionSlot>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection; none if all are busy.
    fn take(&self) -> Option<ConnectionSlot> {
        let mut taken = self.taken();
        if taken.len() >= self.most {
            let longest = |since: fn(&SlotUse) -> Option<Instant>| {
                let places = taken.iter().enumerate();
                places.filter_map(|(index, place)| Some((since(&place.used())?, index))).min()
            };
            let idle = longest(|used| (used.open == 0).then_some(used.idle_since));
            let (_, index) = idle.or_else(|| longest(|used| used.receiving_since))?;
            taken.swap_remove(index).displaced.cancel();
        }
        let place = ConnectionSlot::new();
        taken.push(place.clone());
        Some(place)
    }

    fn leave(&self, place: &ConnectionSlot) {
        self.taken().retain(|other| !Arc::ptr_eq(&other.used, &place.used));
    }
}

/// Accepts connections until `leaving`, and returns when all have ended.
pub(crate) async fn accept(listener: TcpListener, application: Router, leaving: CancellationToken) {
    let places = Arc::new(ConnectionSlots::new(most()));
    let tracker = TaskTracker::new();
    loop {
        let accepted: io::Result<(TcpStream, SocketAddr)> = tokio::select! {
            accepted = listener.accept() => accepted,
            () = leaving.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else {
            // The client has gone already, or there are no files left: connections that end free some.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Events are small: by default each would wait until the client has acknowledged the one before, some 40 ms.
        // If the option cannot be set, the connection is only slower.
        let _ = stream.set_nodelay(true);
        let Some(place) = places.take() else {
            // A client that does not read this learns of it by the end of the connection.
            let _ = stream.try_write(BUSY);
            continue;
        };
        let (places, application, leaving) = (Arc::clone(&places), application.clone(), leaving.clone());
        tracker.spawn(async move {
            serve(stream, &place, application, leaving).await;
            places.leave(&place);
        });
    }
    drop(listener);
    tracker.close();
    tracker.wait().await;
}

async fn serve(stream: TcpStream, place: &ConnectionSlot, application: Router, leaving: CancellationToken) {
    let Ok((stream, mut client)) = Client::of(stream) else { return };
    let watched = WatchedStream { inner: stream, place: place.clone() };
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let open = OpenRequest::new(place.clone());
        place.used().waits = Some(request.version() >= Version::HTTP_11);
        let mut application = application.clone();
        let request = request.map(|body| Body::new(ReceivedBody::new(body, place.clone())));
        async move {
            let response = application.call(request).await?;
            open.0.used().waits = None;
            // The request is open until the body has been sent, and dropped.
            let sent = move |frame| {
                let _open = &open;
                frame
            };
            Ok::<_, Infallible>(response.map(|body| body.map_frame(sent)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .half_close(true)
        .serve_connection(TokioIo::new(watched), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let mut look = interval(LOOK);
    let mut left = false;
    loop {
        tokio::select! {
            // The client is gone if this is an error.
            _ = connection.as_mut() => return,
            () = place.displaced.cancelled() => return,
            () = leaving.cancelled(), if !left => {
                left = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = look.tick() => {
                let (unread, waits) = {
                    let used = place.used();
                    (used.unread_since.is_some_and(|since| since.elapsed() > UNREAD), used.waits)
                };
                // Nobody else reads or writes meanwhile: the connection is driven by this task alone.
                if unread || waits.is_some_and(|told| client.has_left(told)) {
                    return;
                }
            }
        }
    }
}

/// The socket of a connection's client, to check whether it has gone.
struct Client {
    socket: std::net::TcpStream,
    closed_since: Option<Instant>,
}

impl Client {
    fn of(stream: TcpStream) -> io::Result<(TcpStream, Self)> {
        let stream = stream.into_std()?;
        let socket = stream.try_clone()?;
        Ok((TcpStream::from_std(stream)?, Self { socket, closed_since: None }))
    }

    /// Whether a client that waits for its answer has gone. `told` if it knows of interim responses.
    fn has_left(&mut self, told: bool) -> bool {
        match self.socket.peek(&mut [0]) {
            Ok(0) => {}
            Ok(_) => return false,
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
        if self.closed_since.is_none() && told {
            // If it has gone, the reply is found the next time.
            let _ = (&self.socket).write(CONTINUE);
        }
        let since = *self.closed_since.get_or_insert_with(Instant::now);
        since.elapsed() > HALF_CLOSED || !matches!(self.socket.take_error(), Ok(None))
    }
}

/// Most connections that the files of this process allow.
pub(crate) fn most() -> usize {
    #[cfg(unix)]
    {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let places = files.map_or(MOST as u64, |files| files / FILES_EACH);
        usize::try_from(places).unwrap_or(MOST).clamp(1, MOST)
    }
    #[cfg(not(unix))]
    MOST
}

/// A request that is not yet answered in full.
struct OpenRequest(ConnectionSlot);

impl OpenRequest {
    fn new(place: ConnectionSlot) -> Self {
        place.used().open += 1;
        Self(place)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut used = self.0.used();
        used.open -= 1;
        used.idle_since = Instant::now();
    }
}

/// The body of a request; its connection is receiving until all of it has come.
struct ReceivedBody {
    body: hyper::body::Incoming,
    place: ConnectionSlot,
}

impl ReceivedBody {
    fn new(body: hyper::body::Incoming, place: ConnectionSlot) -> Self {
        place.used().receiving_since = (!body.is_end_stream()).then(Instant::now);
        Self { body, place }
    }
}

impl HttpBody for ReceivedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.place.used().receiving_since = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        self.place.used().receiving_since = None;
    }
}

/// A stream that notes when its client stopped reading.
struct WatchedStream {
    inner: TcpStream,
    place: ConnectionSlot,
}

impl WatchedStream {
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        let mut used = self.place.used();
        match written {
            Poll::Pending => drop(used.unread_since.get_or_insert_with(Instant::now)),
            Poll::Ready(_) => used.unread_since = None,
        }
        written
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let places = ConnectionSlots::new(3);
        let [first, second, third] = [(); 3].map(|()| places.take().unwrap());
        let busy = OpenRequest::new(first.clone());
        drop(OpenRequest::new(second.clone()));
        let fourth = places.take().unwrap();
        assert!(third.displaced.is_cancelled(), "it never asked anything");
        let _also = OpenRequest::new(fourth.clone());
        let fifth = places.take().unwrap();
        assert!(second.displaced.is_cancelled() && !first.displaced.is_cancelled());
        let _last = OpenRequest::new(fifth.clone());
        assert!(places.take().is_none(), "nobody is idle");
        fourth.used().receiving_since = Some(Instant::now());
        let sixth = places.take().unwrap();
        assert!(fourth.displaced.is_cancelled(), "its request does not come");
        let _busy = OpenRequest::new(sixth.clone());
        drop(busy);
        assert!(places.take().is_some() && first.displaced.is_cancelled());
        places.leave(&fifth);
        assert_eq!(places.taken().len(), 2);
    }
}
