//! Listens, and distributes connections among the workers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc::UnboundedSender;

use crate::import::ImportError;
use crate::saving::FolderError;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::tls::TlsError;
use crate::users::UsersError;
use crate::worker::{self, Accepted};

/// The pause after a failed accept, which usually means that file descriptors have run out.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the server could not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The server cannot listen on an address.
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server cannot listen on a Unix socket.
    BindUnix {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system refused a thread or an event queue.
    Thread(io::Error),
    /// The data folder cannot be used.
    Folder {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: FolderError,
    },
    /// The RDB file of `--load` cannot be imported.
    Import(ImportError),
    /// The settings name nothing to listen on.
    NothingToListenOn,
    /// The TLS settings are invalid.
    Tls(TlsError),
    /// The user settings are invalid.
    Users(UsersError),
    /// The server would be reachable from other machines without a password.
    Exposed {
        /// The address.
        address: SocketAddr,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, .. } => write!(f, "cannot listen on {address}"),
            Self::BindUnix { path, .. } => write!(f, "cannot listen on {}", path.display()),
            Self::Thread(_) => f.write_str("cannot start a thread"),
            Self::Folder { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Import(error) => error.fmt(f),
            Self::NothingToListenOn => {
                f.write_str("nothing to listen on: set --port, --tls-port, --unix-socket or --http-port")
            }
            Self::Tls(error) => error.fmt(f),
            Self::Users(error) => error.fmt(f),
            Self::Exposed { address } => write!(
                f,
                "{address} is open to other machines and there is no password: set one with --password-file or \
                 MAYHAP_PASSWORD, or allow this with --unprotected"
            ),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { source, .. } | Self::BindUnix { source, .. } | Self::Thread(source) => Some(source),
            // The message contains that of the folder, so the source is the error below it.
            Self::Folder { source, .. } => std::error::Error::source(source),
            Self::Import(source) => std::error::Error::source(source),
            Self::Tls(_) | Self::Users(_) | Self::Exposed { .. } | Self::NothingToListenOn => None,
        }
    }
}

/// The sockets the server listens on.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: Vec<TcpListener>,
    tls: Vec<TcpListener>,
    unix: Option<UnixListener>,
}

impl Listeners {
    /// Clones the sockets, for a server that resumes after an aborted shutdown.
    pub(crate) fn try_clone(&self) -> Result<Self, StartError> {
        let again = |listeners: &[TcpListener]| -> Result<Vec<_>, StartError> {
            listeners.iter().map(TcpListener::try_clone).collect::<Result<_, _>>().map_err(StartError::Thread)
        };
        let unix = self.unix.as_ref().map(UnixListener::try_clone).transpose();
        Ok(Self { tcp: again(&self.tcp)?, tls: again(&self.tls)?, unix: unix.map_err(StartError::Thread)? })
    }

    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, StartError> {
        self.tcp.iter().map(TcpListener::local_addr).collect::<Result<_, _>>().map_err(StartError::Thread)
    }

    pub(crate) fn tls_addresses(&self) -> Result<Vec<SocketAddr>, StartError> {
        self.tls.iter().map(TcpListener::local_addr).collect::<Result<_, _>>().map_err(StartError::Thread)
    }
}

/// Listens on all addresses in `settings`. With port 0, every address gets the port that the first one got.
pub(crate) fn bind(settings: &Settings) -> Result<Listeners, StartError> {
    let tcp = bind_all(settings.port, settings)?;
    let tls = bind_all(settings.tls_port, settings)?;
    let unix = settings.unix_socket.as_ref().map(|path| {
        let refused = |source| StartError::BindUnix { path: path.clone(), source };
        if is_left_over(path) {
            std::fs::remove_file(path).map_err(refused)?;
        }
        let listener = UnixListener::bind(path).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(listener)
    });
    Ok(Listeners { tcp, tls, unix: unix.transpose()? })
}

fn bind_all(port: Option<u16>, settings: &Settings) -> Result<Vec<TcpListener>, StartError> {
    let mut listeners = Vec::new();
    let Some(mut port) = port else { return Ok(listeners) };
    for ip in &settings.bind {
        let address = SocketAddr::new(*ip, port);
        let refused = |source| StartError::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        port = listener.local_addr().map_err(refused)?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Whether `path` is a socket that no process listens on: one left by a server that died.
fn is_left_over(path: &Path) -> bool {
    is_socket(path)
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether `path` is a socket, and not a file that must not be removed.
pub(crate) fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// Starts the workers and the listening thread.
pub(crate) fn start(listeners: Listeners, shared: &Arc<Shared>) -> Result<Vec<JoinHandle<()>>, StartError> {
    let mut threads = Vec::new();
    let mut workers = Vec::new();
    for number in 0..shared.settings().worker_threads() {
        let (thread, sender) = worker::start(number, shared).map_err(StartError::Thread)?;
        threads.push(thread);
        workers.push(sender);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Thread)?;
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("listen".to_owned()).spawn(move || {
        runtime.block_on(listen(listeners, &shared, &workers));
    });
    threads.push(thread.map_err(StartError::Thread)?);
    Ok(threads)
}

async fn listen(listeners: Listeners, shared: &Arc<Shared>, workers: &[UnboundedSender<Accepted>]) {
    let handout = Handout { shared: Arc::clone(shared), workers: workers.to_vec(), next: Default::default() };
    let handout = Arc::new(handout);
    let mut tasks = tokio::task::JoinSet::new();
    let plain = listeners.tcp.into_iter().map(|listener| (listener, Accepted::Tcp as fn(_) -> _));
    let encrypted = listeners.tls.into_iter().map(|listener| (listener, Accepted::Tls as fn(_) -> _));
    for (listener, accepted) in plain.chain(encrypted) {
        let handout = Arc::clone(&handout);
        tasks.spawn(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // Each batch of replies leaves with one write: waiting for more gains nothing.
                        let _ = stream.set_nodelay(true);
                        match handout.has_room() {
                            true => handout.give(stream.into_std().map(accepted)),
                            false => refuse(stream).await,
                        }
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        });
    }
    if let Some(listener) = listeners.unix {
        let handout = Arc::clone(&handout);
        tasks.spawn(async move {
            let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => match handout.has_room() {
                        true => handout.give(stream.into_std().map(Accepted::Unix)),
                        false => refuse(stream).await,
                    },
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        });
    }
    shared.stopped().await;
    tasks.shutdown().await;
}

/// Distributes new connections to the workers in turn.
struct Handout {
    shared: Arc<Shared>,
    workers: Vec<UnboundedSender<Accepted>>,
    next: std::sync::atomic::AtomicUsize,
}

impl Handout {
    /// Whether there is room for one more connection. Counts a rejection if not.
    fn has_room(&self) -> bool {
        self.shared.clients().has_room()
    }

    fn give(&self, stream: io::Result<Accepted>) {
        let Ok(stream) = stream else { return };
        let next = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // A worker ends only when the server does.
        let _ = self.workers[next % self.workers.len()].send(stream);
    }
}

async fn refuse(mut stream: impl tokio::io::AsyncWrite + Unpin) {
    let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
}
