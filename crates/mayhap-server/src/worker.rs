//! Worker threads. A connection stays on one worker for its whole life.

use std::cell::RefCell;
use std::io;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mayhap_command::{Reply, Request, Scratch};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use crate::connection;
use crate::counters::Counters;
use crate::shared::{GRACE, Shared};
use crate::users::back_off::Source;

/// The number of bytes per read.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// The time that jobs have to end after the last connection was closed.
const LAST_JOBS: Duration = Duration::from_millis(100);

/// An accepted connection.
#[derive(Debug)]
pub(crate) enum Accepted {
    Tcp(std::net::TcpStream),
    Tls(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// Buffers that a worker uses for one connection after another. Idle connections need none of their own.
#[derive(Debug)]
pub(crate) struct WorkerBuffers {
    pub(crate) input: Box<[u8]>,
    pub(crate) out: Vec<u8>,
    pub(crate) words: Vec<&'static [u8]>,
    pub(crate) requests: Vec<Request<'static>>,
    pub(crate) replies: Vec<Reply>,
    pub(crate) scratch: Scratch,
    pub(crate) counters: Arc<Counters>,
}

impl WorkerBuffers {
    fn new(counters: Arc<Counters>) -> Self {
        Self {
            input: vec![0; READ_BYTES].into_boxed_slice(),
            out: Vec::with_capacity(READ_BYTES),
            words: Vec::new(),
            requests: Vec::new(),
            replies: Vec::new(),
            scratch: Scratch::default(),
            counters,
        }
    }
}

/// Reuses the allocation of `words` for words with another lifetime. The compiler removes the empty loop and
/// keeps the allocation.
pub(crate) fn empty_words<'a>(mut words: Vec<&[u8]>) -> Vec<&'a [u8]> {
    words.clear();
    words.into_iter().map(|_| -> &'a [u8] { &[] }).collect()
}

/// Reuses the allocation of `requests` for requests with another lifetime.
pub(crate) fn empty_requests<'a>(mut requests: Vec<Request<'_>>) -> Vec<Request<'a>> {
    requests.clear();
    requests.into_iter().map(|request| Request { command: request.command, words: &[] }).collect()
}

/// Starts a worker.
pub(crate) fn start(
    number: usize,
    shared: &Arc<Shared>,
) -> io::Result<(JoinHandle<()>, UnboundedSender<Accepted>)> {
    let (sender, receiver) = unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        LocalSet::new().block_on(&runtime, work(receiver, shared));
        // No connection is left that waits for a job.
        runtime.shutdown_timeout(LAST_JOBS);
    })?;
    Ok((thread, sender))
}

/// Serves connections until the sender is dropped and all connections are closed.
async fn work(mut accepted: UnboundedReceiver<Accepted>, shared: Arc<Shared>) {
    let buffers = Rc::new(RefCell::new(WorkerBuffers::new(shared.add_counters())));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            next = accepted.recv() => match next {
                Some(stream) => {
                    connections.spawn_local(serve(stream, Rc::clone(&buffers), Arc::clone(&shared)));
                }
                None => break,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    let all_closed = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all_closed).await;
}

async fn serve(stream: Accepted, buffers: Rc<RefCell<WorkerBuffers>>, shared: Arc<Shared>) {
    let address =
        |address: io::Result<std::net::SocketAddr>| address.map(|it| it.to_string()).unwrap_or_default();
    let encrypted = matches!(stream, Accepted::Tls(_));
    match stream {
        Accepted::Tcp(stream) | Accepted::Tls(stream) => {
            let client = shared.clients().add(
                address(stream.peer_addr()),
                address(stream.local_addr()),
                Source::of(stream.peer_addr().ok().map(|address| address.ip())),
                i64::from(stream.as_raw_fd()),
            );
            tracing::debug!(client = client.id, address = client.address, "connected");
            match (tokio::net::TcpStream::from_std(stream), shared.tls()) {
                (Ok(stream), Some(tls)) if encrypted => {
                    let shaken = tokio::select! {
                        shaken = tls.accept(stream) => shaken,
                        () = shared.stopped() => None,
                    };
                    if let Some(stream) = shaken {
                        connection::serve(stream, &client, &buffers, &shared).await;
                    }
                }
                (Ok(stream), _) => connection::serve(stream, &client, &buffers, &shared).await,
                (Err(_), _) => {}
            }
            shared.clients().remove(client.id);
            tracing::debug!(client = client.id, "disconnected");
        }
        Accepted::Unix(stream) => {
            let path = shared.settings().unix_socket.as_deref();
            let path = format!("{}:0", path.map_or_else(String::new, |path| path.display().to_string()));
            let client =
                shared.clients().add(path.clone(), path, Source::of(None), i64::from(stream.as_raw_fd()));
            tracing::debug!(client = client.id, address = client.address, "connected");
            if let Ok(stream) = tokio::net::UnixStream::from_std(stream) {
                connection::serve(stream, &client, &buffers, &shared).await;
            }
            shared.clients().remove(client.id);
            tracing::debug!(client = client.id, "disconnected");
        }
    }
}
