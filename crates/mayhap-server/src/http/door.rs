//! HTTP connections: limits on their number and on their time.
//!
//! A request has `request-timeout` in total, from its first byte to its answer. Writing the answer and
//! waiting for the next request together have the same time again. The first request counts from the moment
//! the connection is accepted.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::shared::Shared;

/// The pause after a failed accept, which usually means that file descriptors have run out.
const PAUSE: Duration = Duration::from_millis(50);
/// The limit for the head of a request and for read-ahead, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 43\r\nconnection: close\r\n\r\n\
{\"error\":\"max number of clients reached\"}\r\n";

/// Accepts connections until its task is dropped, and serves each in a task of its own.
pub(super) async fn listen(listener: TcpListener, router: Router, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if !shared.clients().enter_http(shared.settings().http_max_clients) => {
                    // One attempt to write: a slow client must not block the loop.
                    let _ = stream.try_write(FULL);
                }
                Ok((stream, address)) => {
                    let place = Place(Arc::clone(&shared));
                    connections.spawn(serve(stream, address, router.clone(), place));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One of the `http-max-clients` connections. Dropping it makes room for another.
struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.clients().leave_http();
    }
}

async fn serve(stream: TcpStream, address: SocketAddr, router: Router, place: Place) {
    let _ = stream.set_nodelay(true);
    let local = stream.local_addr().ok();
    let clock = Arc::new(Clock::start(place.0.request_timeout()));
    let service = TowerToHyperService::new(router);
    let answering = Arc::clone(&clock);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        answering.begins();
        request.extensions_mut().insert(ConnectInfo(address));
        if let Some(local) = local {
            request.extensions_mut().insert(Local(local));
        }
        let (answer, clock) = (service.call(request), Arc::clone(&answering));
        async move {
            let answer = answer.await;
            clock.waits();
            answer
        }
    });
    let stream = TokioIo::new(Watched { stream, clock: Arc::clone(&clock) });
    let connection = http1::Builder::new().max_buf_size(HEAD_BYTES).serve_connection(stream, service);
    // Counted before the connection is dropped: a client that sees it closed finds it in the count.
    let overdue = async {
        clock.over().await;
        tracing::debug!(%address, "HTTP connection closed: request-timeout exceeded");
        place.0.clients().http_overdue();
    };
    tokio::select! {
        _ = connection => {}
        () = overdue => {}
    }
}

/// The local address of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local(pub(super) SocketAddr);

/// The deadline of a connection.
struct Clock {
    started: Instant,
    patience: Option<Duration>,
    /// Milliseconds after `started`.
    due_ms: AtomicU64,
    /// Whether the connection is between two requests.
    waits: AtomicBool,
}

impl Clock {
    fn start(patience: Option<Duration>) -> Self {
        // The first request counts from here, not from its first byte.
        let clock = Self {
            started: Instant::now(),
            patience,
            due_ms: AtomicU64::new(0),
            waits: AtomicBool::new(false),
        };
        clock.wind();
        clock
    }

    fn wind(&self) {
        let due = self.started.elapsed().saturating_add(self.patience.unwrap_or_default());
        self.due_ms.store(u64::try_from(due.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bytes of a request arrived. Only the first byte after an answer extends the deadline.
    fn begins(&self) {
        if self.waits.swap(false, Ordering::Relaxed) {
            self.wind();
        }
    }

    /// The answer is ready: it is written, and the next request may come.
    fn waits(&self) {
        self.waits.store(true, Ordering::Relaxed);
        self.wind();
    }

    /// Returns when the deadline has passed. Never returns if there is no limit.
    async fn over(&self) {
        if self.patience.is_none() {
            return std::future::pending().await;
        }
        loop {
            let due = self.started + Duration::from_millis(self.due_ms.load(Ordering::Relaxed));
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// A stream that reports arriving bytes to the clock.
struct Watched {
    stream: TcpStream,
    clock: Arc<Clock>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.clock.begins();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
