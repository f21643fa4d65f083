//! The server: sockets, RESP and sessions around an [`Engine`].
//!
//! ```text
//! Listener ─▶ worker threads ─▶ Connection ─▶ Decoder ─▶ Session ─▶ Engine ─▶ encode ─▶ one write
//! ```
//!
//! * A connection lives on one worker thread for all its life. Whatever came with one read is decoded at once, consecutive
//!   requests for filters are run as one batch, and all replies leave with one write.
//! * Sessions answer what is about the connection or the server itself; the engine answers the rest.
//! * [`Stop`] ends it: nothing new is accepted, what was received is answered, then the connections are closed.
#![forbid(unsafe_code)]

pub mod client;
mod config;
mod connection;
pub mod counters;
mod durable;
mod housekeeping;
pub mod http;
pub mod import;
mod info;
pub mod latency;
mod listen;
pub mod logging;
pub mod machine;
mod metrics;
mod overfull;
pub mod process;
pub mod resp;
pub mod saving;
mod session;
pub mod settings;
pub mod shared;
pub mod slow_log;
pub mod tls;
pub mod users;
mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use mayhap_command::Limits;
use mayhap_engine::{Engine, System};
use tls::Tls;
use users::{Users, UsersError};

pub use listen::StartError;
pub use saving::{SaveError, Saving};
pub use settings::Settings;
pub use shared::{Ending, Shared, Stop};

/// The version of Redis whose ways this server has: clients, and the suites of clients, read it to know what they may send. 8 is the first
/// that has `BF.*` and `CF.*` without a module, with the settings and replies that this server has; suites skip them for an older one.
pub const REDIS_VERSION: &str = "8.2.0";

/// The server, before it runs.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts with an engine of its own, which holds what the folder of the data has, if there is one.
    ///
    /// # Errors
    /// An address cannot be listened on, the folder cannot be used, or a thread cannot be made.
    pub fn start(settings: Settings) -> Result<Running, StartError> {
        let limits = Limits { filter_bytes: settings.max_filter_bytes, ..Limits::default() };
        Self::start_with(settings, Arc::new(Engine::new(limits, Arc::new(System))))
    }

    /// Starts with an engine that may hold something already, unless there is a folder of data.
    ///
    /// # Errors
    /// An address cannot be listened on, the folder cannot be used, or a thread cannot be made.
    pub fn start_with(settings: Settings, engine: Arc<Engine>) -> Result<Running, StartError> {
        if settings.is_deaf() {
            return Err(StartError::Deaf);
        }
        let users = Users::open(&settings).map_err(|error| match (&error, settings.reached_by_others()) {
            (UsersError::Open { name }, Some(address)) if name.as_bytes() == users::DEFAULT => {
                StartError::Exposed { address }
            }
            _ => StartError::Users(error),
        })?;
        let tls = Tls::open(&settings).map_err(StartError::Tls)?;
        let path = settings.dir.clone().unwrap_or_default();
        let folder = |source| StartError::Folder { path, source };
        let saving = Saving::open(settings.dir.as_deref(), engine.environment().now_ms());
        let saving = match saving {
            Ok(saving) => saving,
            Err(error) => return Err(folder(error)),
        };
        let shared = Arc::new(Shared::new(settings, (users, tls), engine, saving));
        // What cannot be listened on is better known before much data is read.
        let listeners = listen::bind(shared.settings())?;
        let addresses = listeners.addresses()?;
        shared.set_port(addresses.first().map_or(0, SocketAddr::port));
        let tls_addresses = listeners.tls_addresses()?;
        let http = http::start(&shared)?;
        let mut running = Running { shared, addresses, tls_addresses, http, listeners, threads: Vec::new() };
        let policy = running.shared.settings().fsync;
        let loaded = running.shared.saving().load(running.shared.engine(), policy);
        if let Err(error) = loaded {
            return Err(folder(error));
        }
        running.import().map_err(StartError::Import)?;
        running.shared.loaded();
        running.serve()?;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            port = running.shared.port(),
            workers = running.shared.settings().worker_threads(),
            filters = running.shared.engine().totals().names,
            "ready"
        );
        Ok(running)
    }
}

/// A server that runs. Dropping it stops the server and waits for its end.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    http: Option<http::Http>,
    /// Kept open to the end, so that it can serve again.
    listeners: listen::Listeners,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Where it listens for TCP; the port is the true one where 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it listens for TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Where it listens for HTTP.
    #[must_use]
    pub fn http_addresses(&self) -> &[SocketAddr] {
        self.http.as_ref().map_or(&[], http::Http::addresses)
    }

    /// The Unix socket it listens on.
    #[must_use]
    pub fn unix_socket(&self) -> Option<&Path> {
        self.shared.settings().unix_socket.as_deref()
    }

    /// What all its threads share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The handle that stops it.
    #[must_use]
    pub fn stop_handle(&self) -> Stop {
        Stop::of(&self.shared)
    }

    /// Waits until somebody stopped it, all connections are closed and everything is saved.
    ///
    /// # Errors
    /// The log could not be closed: what was not safe before may be lost.
    pub fn wait(mut self) -> Result<(), SaveError> {
        self.join()
    }

    /// Loads the RDB file of `--load`, if there is one; refuses a folder that holds half an import.
    fn import(&self) -> Result<(), import::ImportError> {
        let folder = self.shared.saving().folder();
        match &self.shared.settings().load {
            Some(path) => import::load(path, self.shared.engine(), folder).map(drop),
            None => import::check_unfinished(folder),
        }
    }

    /// Starts all threads.
    fn serve(&mut self) -> Result<(), StartError> {
        self.threads = listen::start(self.listeners.try_clone()?, &self.shared)?;
        self.threads.push(housekeeping::start(&self.shared).map_err(StartError::Thread)?);
        Ok(())
    }

    fn join(&mut self) -> Result<(), SaveError> {
        let saved = loop {
            for thread in self.threads.drain(..) {
                // A thread that panicked has said so on the way.
                let _ = thread.join();
            }
            let saved = self.shared.saving().close(self.shared.engine());
            if saved.is_ok() || self.shared.ends_at_any_price() {
                break saved;
            }
            // What came in the last moment could not be saved: as long as it runs, nothing is lost.
            tracing::error!(
                "it does not end, for what it has cannot be saved; asked once more it ends at once"
            );
            self.shared.resume();
            if let Err(error) = self.serve() {
                tracing::error!(%error, "cannot serve again");
                break saved;
            }
        };
        drop(self.http.take());
        if let Some(path) = self.unix_socket().filter(|path| listen::is_socket(path)) {
            let _ = std::fs::remove_file(path);
        }
        tracing::info!("stopped");
        saved
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop_handle().stop();
            // It is in the log.
            let _ = self.join();
        }
    }
}
