//! What the server is told at its start.
//!
//! ```text
//! flags ▷ environment ▷ TOML file ▷ defaults     (the left one wins)
//! ```
//!
//! [`table`] has every setting once: flags, variables, keys of the file, `--print-config`, `docs/server.md` and most of `CONFIG`
//! are made from it.

pub mod error;
pub mod layers;
pub mod quantity;
pub mod table;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use mayhap_command::Parameters;

use crate::logging::{Format, Level};
use crate::resp::decode;

pub use error::SettingsError;
pub use table::Setting;

/// The port for RESP unless another is asked for.
pub const PORT: u16 = 6_399;
/// The port for HTTP unless another is asked for.
pub const HTTP_PORT: u16 = 6_390;
/// The folder for the data unless another is asked for.
pub const FOLDER: &str = "./mayhap-data";

/// What the server is told at its start. The default keeps nothing on disk and serves no HTTP: that is for programs that bring a
/// server along. `mayhap serve` begins with [`of_program`](Self::of_program).
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port for RESP; 0: any that is free; `None`: no TCP.
    pub port: Option<u16>,
    /// The addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// A Unix socket to listen on as well.
    pub unix_socket: Option<PathBuf>,
    /// The port for HTTP; 0: any that is free; `None`: no HTTP.
    pub http_port: Option<u16>,
    /// The addresses HTTP listens on.
    pub http_bind: Vec<IpAddr>,
    /// The folder for the data; `None`: nothing is kept on disk.
    pub dir: Option<PathBuf>,
    /// Seconds between two snapshots, if something changed; 0: none but at the end and when somebody asks.
    pub save_interval_secs: u64,
    /// Threads that serve connections; 0: one for each processor.
    pub workers: usize,
    /// Bytes all filters together may take; 0: any amount.
    pub max_memory_bytes: u64,
    /// Bytes one filter may take.
    pub max_filter_bytes: u64,
    /// Connections at the same time (`maxclients`).
    pub max_clients: usize,
    /// What one request may hold.
    pub request_limits: decode::Limits,
    /// Bytes of replies a client may leave unread before no more of its requests are read.
    pub output_limit: usize,
    /// `requirepass`.
    pub password: Option<String>,
    /// Where the password was read.
    pub password_file: Option<PathBuf>,
    /// Listen beyond this machine without a password?
    pub unprotected: bool,
    /// Microseconds from which on a request is in the slow log; negative: none is.
    pub slow_log_us: i64,
    /// Requests the slow log keeps.
    pub slow_log_entries: usize,
    /// Milliseconds from which on something is an event of `LATENCY`; 0: nothing is.
    pub latency_ms: u64,
    /// How much is logged.
    pub log_level: Level,
    /// How it looks.
    pub log_format: Format,
    /// What new filters are like.
    pub parameters: Parameters,
    /// The TOML file the settings were read from; `CONFIG REWRITE` writes it.
    pub config_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        let loopback = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        Self {
            port: Some(PORT),
            bind: loopback.clone(),
            unix_socket: None,
            http_port: None,
            http_bind: loopback,
            dir: None,
            save_interval_secs: 60,
            workers: 0,
            max_memory_bytes: 0,
            max_filter_bytes: 1 << 40,
            max_clients: 10_000,
            request_limits: decode::Limits::default(),
            output_limit: 32 << 20,
            password: None,
            password_file: None,
            unprotected: false,
            slow_log_us: 10_000,
            slow_log_entries: 128,
            latency_ms: 0,
            log_level: Level::Info,
            log_format: Format::Text,
            parameters: Parameters::default(),
            config_file: None,
        }
    }
}

impl Settings {
    /// What `mayhap serve` begins with: data in [`FOLDER`], HTTP on [`HTTP_PORT`].
    #[must_use]
    pub fn of_program() -> Self {
        Self { http_port: Some(HTTP_PORT), dir: Some(PathBuf::from(FOLDER)), ..Self::default() }
    }

    /// Threads that serve connections.
    #[must_use]
    pub fn worker_threads(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        }
    }

    /// The first address that others than this machine reach although no password is asked for. `unprotected` allows it.
    #[must_use]
    pub fn exposed(&self) -> Option<SocketAddr> {
        if self.unprotected || self.password.is_some() {
            return None;
        }
        let resp = self.port.into_iter().flat_map(|port| self.bind.iter().map(move |ip| (*ip, port)));
        let http =
            self.http_port.into_iter().flat_map(|port| self.http_bind.iter().map(move |ip| (*ip, port)));
        resp.chain(http).find(|(ip, _)| !ip.is_loopback()).map(SocketAddr::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_password_or_a_word_opens_the_door_to_others() {
        let everywhere: IpAddr = "0.0.0.0".parse().unwrap();
        let mut settings = Settings::of_program();
        assert_eq!(settings.exposed(), None);
        settings.http_bind.push(everywhere);
        assert_eq!(settings.exposed().unwrap().to_string(), "0.0.0.0:6390");
        settings.bind = vec![everywhere];
        assert_eq!(settings.exposed().unwrap().to_string(), "0.0.0.0:6399");
        let unprotected = Settings { unprotected: true, ..settings.clone() };
        assert_eq!(unprotected.exposed(), None);
        settings.password = Some("secret".into());
        assert_eq!(settings.exposed(), None);
    }
}
