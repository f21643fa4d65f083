//! The settings of the server.
//!
//! ```text
//! flags ▷ environment ▷ TOML file ▷ defaults     (the left one wins)
//! ```
//!
//! [`table`] lists every setting once. Flags, variables, keys of the file, `--print-config`, the table in
//! `docs/server.md` and most of `CONFIG` are made from it.

pub mod error;
pub mod layers;
pub mod memory;
pub mod table;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use mayhap_command::Parameters;
use mayhap_engine::log::Policy;

use crate::logging::{Format, Level};
use crate::resp::decode;
use crate::tls::ClientCertificates;
use crate::users::Password;

pub use error::SettingsError;
pub use memory::Memory;
pub use table::Setting;

/// The default port for RESP.
pub const PORT: u16 = 6_399;
/// The default port for HTTP.
pub const HTTP_PORT: u16 = 6_390;
/// The default data folder.
pub const FOLDER: &str = "./mayhap-data";

/// The default share of the memory that filters may use. The rest is for connections, snapshots and the
/// system.
pub const MEMORY_PERCENT: u8 = 80;

/// The settings of the server. The default keeps nothing on disk and serves no HTTP: it is for programs that
/// embed the server. `mayhap serve` begins with [`of_program`](Self::of_program).
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port for RESP; 0: any free port; `None`: no TCP.
    pub port: Option<u16>,
    /// The addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// The port for RESP over TLS, on the same addresses; 0: any free port; `None`: no TLS.
    pub tls_port: Option<u16>,
    /// A PEM file with the certificate, followed by intermediate certificates.
    pub tls_cert: Option<PathBuf>,
    /// A PEM file with the private key.
    pub tls_key: Option<PathBuf>,
    /// A PEM file with the authorities that sign client certificates; `None`: clients are not asked for a
    /// certificate.
    pub tls_client_ca: Option<PathBuf>,
    /// Whether clients must present a certificate.
    pub tls_clients: ClientCertificates,
    /// Seconds that a client may take for the TLS handshake.
    pub tls_handshake_secs: u64,
    /// A Unix socket to listen on, in addition to TCP.
    pub unix_socket: Option<PathBuf>,
    /// An RDB file of a Redis or Valkey server to load at the start. It is not in the table because it is
    /// meant for a single start.
    pub load: Option<PathBuf>,
    /// The port for HTTP; 0: any free port; `None`: no HTTP.
    pub http_port: Option<u16>,
    /// The addresses to listen on for HTTP.
    pub http_bind: Vec<IpAddr>,
    /// Host names that HTTP requests may use, besides the addresses of the server and `localhost`; with or
    /// without a port.
    pub http_hosts: Vec<String>,
    /// Maximum number of open HTTP connections.
    pub http_max_clients: usize,
    /// The data folder; `None`: nothing is kept on disk.
    pub dir: Option<PathBuf>,
    /// When changes are synced to the disk.
    pub fsync: Policy,
    /// Seconds between two snapshots, if there were changes; 0: only when the log has grown long, and on
    /// request.
    pub save_interval_secs: u64,
    /// Threads that serve connections; 0: one per processor.
    pub workers: usize,
    /// Memory limit for all filters together; 0 bytes: no limit.
    pub max_memory: Memory,
    /// Memory limit for one filter, in bytes.
    pub max_filter_bytes: u64,
    /// Maximum number of open RESP connections (`maxclients`).
    pub max_clients: usize,
    /// Limits of one request.
    pub request_limits: decode::Limits,
    /// Memory limit for all client buffers, in bytes: partial requests, transactions and unread replies.
    /// Above it, the largest client is disconnected.
    pub buffers_limit: usize,
    /// Seconds without progress after which a connection with a partial request is closed; 0: never. Over
    /// HTTP, the time in which a whole request must arrive and the next one must begin.
    pub request_timeout_secs: u64,
    /// Seconds after which a connection that sends no request is closed (`timeout`); 0: never.
    pub idle_timeout_secs: u64,
    /// Bytes of replies that a client may leave unread. Above it, no more of its requests are read.
    pub output_limit: usize,
    /// `requirepass`.
    pub password: Option<Password>,
    /// The file the password was read from.
    pub password_file: Option<PathBuf>,
    /// The file with users.
    pub users: Option<PathBuf>,
    /// Users: each line is a name and rules, with hashes in place of passwords.
    pub user: Vec<String>,
    /// Commands to enable that are disabled by default.
    pub enable: Vec<String>,
    /// Commands, and categories with their `@`, that are disabled for all users.
    pub disable: Vec<String>,
    /// Whether the server may listen without a password on addresses that other machines can reach.
    pub unprotected: bool,
    /// Microseconds from which on a request is in the slow log; negative: none.
    pub slow_log_us: i64,
    /// Maximum number of requests in the slow log.
    pub slow_log_entries: usize,
    /// Milliseconds from which on an operation is an event of `LATENCY`; 0: none.
    pub latency_ms: u64,
    /// The lowest level that is logged.
    pub log_level: Level,
    /// The format of the log.
    pub log_format: Format,
    /// The defaults for new filters.
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
            tls_port: None,
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            tls_clients: ClientCertificates::Required,
            tls_handshake_secs: 10,
            unix_socket: None,
            load: None,
            http_port: None,
            http_bind: loopback,
            http_hosts: Vec::new(),
            http_max_clients: 256,
            dir: None,
            fsync: Policy::default(),
            save_interval_secs: 0,
            workers: 0,
            max_memory: Memory::Percent(MEMORY_PERCENT),
            max_filter_bytes: 1 << 40,
            max_clients: 10_000,
            request_limits: decode::Limits::default(),
            output_limit: 32 << 20,
            buffers_limit: 1 << 30,
            request_timeout_secs: 25,
            idle_timeout_secs: 0,
            password: None,
            password_file: None,
            users: None,
            user: Vec::new(),
            enable: Vec::new(),
            disable: Vec::new(),
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
    /// The defaults of `mayhap serve`: data in [`FOLDER`], HTTP on [`HTTP_PORT`].
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

    /// Whether no address, port or socket is set to listen on.
    #[must_use]
    pub fn listens_nowhere(&self) -> bool {
        self.port.is_none()
            && self.tls_port.is_none()
            && self.unix_socket.is_none()
            && self.http_port.is_none()
    }

    /// Returns the first address that other machines can reach.
    #[must_use]
    pub fn reachable_address(&self) -> Option<SocketAddr> {
        let all = |port: Option<u16>, bind: &[IpAddr]| -> Vec<(IpAddr, u16)> {
            port.into_iter().flat_map(|port| bind.iter().map(move |ip| (*ip, port))).collect()
        };
        let resp = all(self.port, &self.bind);
        let http = all(self.http_port, &self.http_bind);
        let tls = all(self.tls_port, &self.bind);
        resp.into_iter().chain(tls).chain(http).find(|(ip, _)| !ip.is_loopback()).map(SocketAddr::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::{Users, UsersError};

    #[test]
    fn listening_beyond_this_machine_needs_a_password_or_unprotected() {
        let everywhere: IpAddr = "0.0.0.0".parse().unwrap();
        let opens = |settings: &Settings| match Users::open(settings) {
            Ok(_) => true,
            Err(UsersError::Open { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        let mut settings = Settings::of_program();
        assert_eq!(settings.reachable_address(), None);
        assert!(opens(&settings));
        settings.http_bind.push(everywhere);
        assert_eq!(settings.reachable_address().unwrap().to_string(), "0.0.0.0:6390");
        assert!(!opens(&settings));
        settings.bind = vec![everywhere];
        assert_eq!(settings.reachable_address().unwrap().to_string(), "0.0.0.0:6399");
        assert!(!opens(&settings));
        let tls = Settings { port: None, http_port: None, tls_port: Some(6_390), ..settings.clone() };
        assert!(!opens(&tls), "TLS encrypts, but does not authenticate the client");
        assert!(opens(&Settings { unprotected: true, ..settings.clone() }));
        assert!(opens(&Settings { password: Some("secret".into()), ..settings.clone() }));
        // Users make no difference, unless none of them can log in without a password.
        let with = |user: &[&str]| Settings {
            user: user.iter().map(ToString::to_string).collect(),
            ..settings.clone()
        };
        assert!(!opens(&with(&["ada on >secret +@all"])));
        assert!(opens(&with(&["default off", "ada on >secret +@all"])));
        assert!(opens(&with(&["default on >secret ~* +@all"])));
        assert!(!opens(&with(&["default off", "ada on nopass +@read"])));
        assert!(opens(&with(&["default off", "ada off nopass +@read"])));
        let beside = Settings { password: Some("secret".into()), ..with(&["default on nopass +@all"]) };
        assert!(opens(&beside), "the password wins");
    }
}
