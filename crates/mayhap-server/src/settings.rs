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
use mayhap_engine::log::Policy;

use crate::logging::{Format, Level};
use crate::resp::decode;
use crate::tls::ClientCertificates;
use crate::users::Password;

pub use error::SettingsError;
pub use quantity::Memory;
pub use table::Setting;

/// The port for RESP unless another is asked for.
pub const PORT: u16 = 6_399;
/// The port for HTTP unless another is asked for.
pub const HTTP_PORT: u16 = 6_390;
/// The folder for the data unless another is asked for.
pub const FOLDER: &str = "./mayhap-data";

/// The share of the memory that filters may take unless another is asked for: the rest is for connections, snapshots and the system.
pub const MEMORY_PERCENT: u8 = 80;

/// What the server is told at its start. The default keeps nothing on disk and serves no HTTP: that is for programs that bring a
/// server along. `mayhap serve` begins with [`of_program`](Self::of_program).
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port for RESP; 0: any that is free; `None`: no TCP.
    pub port: Option<u16>,
    /// The addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// The port for RESP over TLS, on the same addresses; 0: any that is free; `None`: no TLS.
    pub tls_port: Option<u16>,
    /// The certificate, and those between it and an authority: a PEM file.
    pub tls_cert: Option<PathBuf>,
    /// Its private key: a PEM file.
    pub tls_key: Option<PathBuf>,
    /// The authorities that sign the certificates of clients: a PEM file; `None`: clients are asked for none.
    pub tls_client_ca: Option<PathBuf>,
    /// Must they show one?
    pub tls_clients: ClientCertificates,
    /// Seconds a client may take to shake hands.
    pub tls_handshake_secs: u64,
    /// A Unix socket to listen on as well.
    pub unix_socket: Option<PathBuf>,
    /// An RDB file of a Redis or Valkey server to load at the start. It is no setting of the table: it is meant for one start.
    pub load: Option<PathBuf>,
    /// The port for HTTP; 0: any that is free; `None`: no HTTP.
    pub http_port: Option<u16>,
    /// The addresses HTTP listens on.
    pub http_bind: Vec<IpAddr>,
    /// Names that clients may call the HTTP server by, besides its addresses and `localhost`; with a port or without.
    pub http_hosts: Vec<String>,
    /// HTTP connections at the same time.
    pub http_max_clients: usize,
    /// The folder for the data; `None`: nothing is kept on disk.
    pub dir: Option<PathBuf>,
    /// When changes are safe from a power loss.
    pub fsync: Policy,
    /// Seconds between two snapshots, if something changed; 0: none but when the log has become long, and when somebody asks.
    pub save_interval_secs: u64,
    /// Threads that serve connections; 0: one for each processor.
    pub workers: usize,
    /// What all filters together may take; 0 bytes: any amount.
    pub max_memory: Memory,
    /// Bytes one filter may take.
    pub max_filter_bytes: u64,
    /// Connections at the same time (`maxclients`).
    pub max_clients: usize,
    /// What one request may hold.
    pub request_limits: decode::Limits,
    /// Bytes all connections together may make the server keep: requests that did not come whole, transactions, replies that
    /// nobody reads. Past it the connection that has most of them is closed.
    pub buffers_limit: usize,
    /// Seconds that a request may take to go on arriving, a connection to send its first one or a stranger to say who it is; 0: any time.
    pub request_timeout_secs: u64,
    /// Seconds after which a connection that asks for nothing is closed (`timeout`); 0: never.
    pub idle_timeout_secs: u64,
    /// Bytes of replies a client may leave unread before no more of its requests are read.
    pub output_limit: usize,
    /// `requirepass`.
    pub password: Option<Password>,
    /// Where the password was read.
    pub password_file: Option<PathBuf>,
    /// The file of users.
    pub users: Option<PathBuf>,
    /// Users: each a name and rules, with the hashes of passwords only.
    pub user: Vec<String>,
    /// Commands that are off unless they are named here.
    pub enable: Vec<String>,
    /// Commands, and categories with their `@`, that nobody may run.
    pub disable: Vec<String>,
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

    /// Is there nothing to listen on?
    #[must_use]
    pub fn is_deaf(&self) -> bool {
        self.port.is_none()
            && self.tls_port.is_none()
            && self.unix_socket.is_none()
            && self.http_port.is_none()
    }

    /// The first address that others than this machine reach.
    #[must_use]
    pub fn reached_by_others(&self) -> Option<SocketAddr> {
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
    fn only_a_password_or_a_word_opens_the_door_to_others() {
        let everywhere: IpAddr = "0.0.0.0".parse().unwrap();
        let opens = |settings: &Settings| match Users::open(settings) {
            Ok(_) => true,
            Err(UsersError::Open { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        let mut settings = Settings::of_program();
        assert_eq!(settings.reached_by_others(), None);
        assert!(opens(&settings));
        settings.http_bind.push(everywhere);
        assert_eq!(settings.reached_by_others().unwrap().to_string(), "0.0.0.0:6390");
        assert!(!opens(&settings));
        settings.bind = vec![everywhere];
        assert_eq!(settings.reached_by_others().unwrap().to_string(), "0.0.0.0:6399");
        assert!(!opens(&settings));
        let tls = Settings { port: None, http_port: None, tls_port: Some(6_390), ..settings.clone() };
        assert!(!opens(&tls), "TLS hides what is said, not who says it");
        assert!(opens(&Settings { unprotected: true, ..settings.clone() }));
        assert!(opens(&Settings { password: Some("secret".into()), ..settings.clone() }));
        // Users do not change it: nobody comes in without a password.
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
