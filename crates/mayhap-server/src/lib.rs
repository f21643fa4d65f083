//! The server: sockets, RESP and sessions around an [`Engine`].
//!
//! ```text
//! Listener ─▶ worker threads ─▶ Connection ─▶ Decoder ─▶ Session ─▶ Engine ─▶ encode ─▶ one write
//! ```
//!
//! * A connection stays on one worker thread. All requests of one read are decoded together, consecutive
//!   filter requests run as one batch, and all replies leave with one write.
//! * Sessions answer requests about the connection or the server itself. The engine answers the rest.
//! * [`Stop`] ends the server: it accepts no new connections, answers the requests it has received, then
//!   closes the connections.
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
pub mod quantity;
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

/// The Redis version this server reports. Clients and their test suites read it to decide which commands to
/// send. Redis 8 is the first version that has `BF.*` and `CF.*` without a module, with the settings and
/// replies of this server; test suites skip these commands for older versions.
pub const REDIS_VERSION: &str = "8.2.0";

/// Starts the server.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts a server with its own engine. The engine is loaded from the data folder, if the settings name
    /// one.
    ///
    /// # Errors
    /// The server cannot listen on an address, use the data folder or start a thread.
    pub fn start(settings: Settings) -> Result<Running, StartError> {
        let limits = Limits { filter_bytes: settings.max_filter_bytes, ..Limits::default() };
        Self::start_with(settings, Arc::new(Engine::new(limits, Arc::new(System))))
    }

    /// Starts a server with the given engine. It must be empty if the settings name a data folder.
    ///
    /// # Errors
    /// The server cannot listen on an address, use the data folder or start a thread.
    pub fn start_with(settings: Settings, engine: Arc<Engine>) -> Result<Running, StartError> {
        if settings.listens_nowhere() {
            return Err(StartError::NothingToListenOn);
        }
        let users = Users::open(&settings).map_err(|error| match (&error, settings.reachable_address()) {
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
        // Listen before loading: an address in use should be reported before a long load.
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

/// A running server. Dropping it stops the server and waits until it has stopped.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    http: Option<http::Http>,
    /// Kept open to the end because an aborted shutdown resumes with them.
    listeners: listen::Listeners,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// The TCP addresses it listens on, with the actual port if port 0 was set.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The TLS addresses it listens on.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// The HTTP addresses it listens on.
    #[must_use]
    pub fn http_addresses(&self) -> &[SocketAddr] {
        self.http.as_ref().map_or(&[], http::Http::addresses)
    }

    /// The Unix socket it listens on, if any.
    #[must_use]
    pub fn unix_socket(&self) -> Option<&Path> {
        self.shared.settings().unix_socket.as_deref()
    }

    /// The state that all threads of the server share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns a handle that stops the server.
    #[must_use]
    pub fn stop_handle(&self) -> Stop {
        Stop::of(&self.shared)
    }

    /// Waits until the server was stopped, all connections are closed and everything is saved.
    ///
    /// # Errors
    /// The log could not be closed. Changes that were not synced before may be lost.
    pub fn wait(mut self) -> Result<(), SaveError> {
        self.join()
    }

    /// Loads the RDB file of `--load`, if there is one. Without `--load`, rejects a folder with an incomplete
    /// import.
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
                // A panic has been reported by the panic hook.
                let _ = thread.join();
            }
            let saved = self.shared.saving().close(self.shared.engine());
            if saved.is_ok() || self.shared.is_forced() {
                break saved;
            }
            // The last changes could not be saved. Memory is their only copy, so keep serving.
            tracing::error!(
                "shutdown aborted: unsaved changes could not be written; the server keeps running. \
                 Send the signal again to exit and lose them"
            );
            self.shared.resume();
            if let Err(error) = self.serve() {
                tracing::error!(%error, "cannot resume after the aborted shutdown: exiting, unsaved changes are lost");
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
            // `join` has logged the error.
            let _ = self.join();
        }
    }
}

/// Runs the code of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
