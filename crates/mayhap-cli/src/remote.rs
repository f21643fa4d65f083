//! A filter in a running server, mayhap's or Redis: `redis://[user:password@]host[:port]/name`, and `rediss://` for TLS.

mod connection;
mod family;
mod temporary;

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use redis::{ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, TlsCertificates};

pub(crate) use self::connection::{Connection, error_text};
pub(crate) use self::family::Family;
pub(crate) use self::temporary::TemporaryName;

use crate::error::{CliError, one_line};

/// The schemes of addresses.
const SCHEMES: [&str; 7] = ["redis", "rediss", "valkey", "valkeys", "redis+unix", "valkey+unix", "unix"];
/// The variable that redis-cli reads a password from.
const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

/// The most redirections to follow in a cluster.
const MOST_MOVES: u32 = 5;
/// The default port of Redis, used if an address has no port.
const REDIS_PORT: u16 = 6379;
/// The default port of mayhap's server.
const MAYHAP_PORT: u16 = mayhap_server::settings::PORT;
/// Longer names are cut in messages.
const MOST_SHOWN: usize = 1024;
/// The number of bytes shown of a longer name.
const SHOWN_OF_LONG: usize = 60;

/// The address of a filter: a server, and the filter's name there.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    info: ConnectionInfo,
    name: Vec<u8>,
    /// The server as messages name it: without the password.
    address: String,
    /// The address has no port, so Redis's default is used.
    has_no_port: bool,
}

/// Options for the connection to a server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Server")]
pub(crate) struct RemoteArgs {
    /// Read the password from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// TLS (rediss://): trust the CA certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    tls_ca: Option<PathBuf>,
    /// TLS: client certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// TLS: private key of the client certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl RemoteArgs {
    /// Reads the certificate files.
    fn certificates(&self) -> Result<TlsCertificates, CliError> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|cause| CliError::Read { name: path.display().to_string(), cause })
        };
        let client_tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(ClientTlsConfig { client_cert: read(certificate)?, client_key: read(key)? })
            }
            _ => None,
        };
        Ok(TlsCertificates { client_tls, root_cert: self.tls_ca.as_ref().map(read).transpose()? })
    }
}

impl Remote {
    /// The filter's name in the server.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The address as messages name it: `redis://host:port/name`.
    pub(crate) fn shown(&self) -> String {
        let name = shown_name(&self.name);
        match self.address.starts_with("unix:") {
            true => format!("{}?name={name}", self.address),
            false => format!("{}/{name}", self.address),
        }
    }

    /// Appends the default ports to an error, if the address has no port.
    pub(crate) fn with_ports(&self, what: String) -> String {
        match self.has_no_port {
            true => format!(
                "{what}; the address has no port, so {REDIS_PORT} (Redis) is used; mayhap's server listens on {MAYHAP_PORT} by \
                 default: add the port to the address"
            ),
            false => what,
        }
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the login.
    pub(crate) fn connect(&self, args: &RemoteArgs) -> Result<Connection, CliError> {
        let (mut info, certificates) = self.login(args)?;
        let mut address = self.address.clone();
        for _ in 0..MOST_MOVES {
            let opened = Connection::open(info.clone(), certificates.clone(), address);
            let mut connection = opened.map_err(|error| match error {
                CliError::Server { address, what } => {
                    CliError::Server { address, what: self.with_ports(what) }
                }
                error => error,
            })?;
            let Some((host, port)) = connection.moved(&self.name)? else { return Ok(connection) };
            // An empty host is the host of the node that answered.
            let (here, elsewhere) = match info.addr() {
                ConnectionAddr::Tcp(here, _) => (here, None),
                ConnectionAddr::TcpTls { host, insecure, tls_params, .. } => {
                    (host, Some((*insecure, tls_params.clone())))
                }
                _ => {
                    return Err(
                        connection.odd(&format!("is part of a cluster: the name is on {host}:{port}"))
                    );
                }
            };
            let host = if host.is_empty() { here.clone() } else { host };
            address = format!("redis{}://{host}:{port}", if elsewhere.is_some() { "s" } else { "" });
            let there = match elsewhere {
                Some((insecure, tls_params)) => ConnectionAddr::TcpTls { host, port, insecure, tls_params },
                None => ConnectionAddr::Tcp(host, port),
            };
            info = info.set_addr(there);
        }
        let what = format!("{}: more than {MOST_MOVES} redirections in the cluster", shown_name(&self.name));
        Err(CliError::Server { address, what })
    }

    /// The server as messages name it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What a login needs: the address with the password, and the certificates for TLS.
    ///
    /// # Errors
    /// A given file cannot be read.
    pub(crate) fn login(
        &self,
        args: &RemoteArgs,
    ) -> Result<(ConnectionInfo, Option<TlsCertificates>), CliError> {
        let mut settings = self.info.redis_settings().clone();
        if let Some(path) = &args.password_file {
            let read = fs::read_to_string(path);
            let text = read.map_err(|cause| CliError::Read { name: path.display().to_string(), cause })?;
            let Some(password) = text.lines().next().filter(|line| !line.is_empty()) else {
                let name = path.display().to_string();
                return Err(CliError::Input { name, what: "its first line has no password".into() });
            };
            settings = settings.set_password(password);
        } else if settings.password().is_none()
            && let Ok(password) = std::env::var(PASSWORD_VARIABLE)
            && !password.is_empty()
        {
            settings = settings.set_password(password);
        }
        let info = self.info.clone().set_redis_settings(settings);
        let encrypted = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let certificates = if encrypted { Some(args.certificates()?) } else { None };
        Ok((info, certificates))
    }
}

impl FromStr for Remote {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "not of the form redis://[user:password@]host[:port]/name";
        let (scheme, after_scheme) = text.split_once("://").ok_or(FORM)?;
        if !SCHEMES.contains(&scheme) {
            return Err(format!("{scheme}:// is not supported: use redis://, rediss:// or redis+unix://"));
        }
        let mut url = redis::parse_redis_url(text).ok_or(FORM)?;
        let socket = matches!(url.scheme(), "unix" | "redis+unix" | "valkey+unix");
        // The client library accepts a fragment that disables the check of the server's certificate.
        if matches!(url.scheme(), "rediss" | "valkeys") && url.fragment().is_some() {
            return Err(
                "the server's certificate is always checked: remove the part after the # (or write # as %23)"
                    .into(),
            );
        }
        if url.fragment().is_some() {
            return Err("an address cannot have a part after a #: write # as %23".into());
        }
        let known: &[&str] =
            if socket { &["name", "db", "user", "pass", "protocol"] } else { &["db", "protocol"] };
        if let Some((field, _)) = url.query_pairs().find(|(field, _)| !known.contains(&&**field)) {
            return Err(format!(
                "unknown field in the address: ?{field}; only ?db=N is known, and a ? in a name is %3F"
            ));
        }
        let name = if socket {
            let named = url.query_pairs().find(|(field, _)| field == "name");
            let name = named.map(|(_, name)| name.into_owned().into_bytes());
            name.ok_or("the filter has no name: redis+unix:///path/of/the/socket?name=NAME")?
        } else {
            // Read from the text as given: the URL parser drops dots and line feeds.
            let path = after_scheme
                .split('?')
                .next()
                .unwrap_or_default()
                .split_once('/')
                .map_or("", |(_, path)| path);
            let odd = |segment: &str| matches!(segment, "" | "." | "..");
            if !path.is_empty() && path.split('/').any(odd) {
                return Err(
                    "a part of the name is empty, . or ..: write / as %2F and . as %2E if they belong to the name".into()
                );
            }
            let name = percent_decoded(path);
            // The client library reads the path as the number of a database.
            let database = url.query_pairs().find(|(field, _)| field == "db").map(|(_, db)| db.into_owned());
            url.set_path(&database.unwrap_or_default());
            name
        };
        if name.is_empty() {
            return Err("the filter has no name: redis://host:port/NAME".into());
        }
        let has_no_port = !socket && url.port().is_none();
        let mut address = url.clone();
        // The rest is for messages.
        let _ = address.set_username("");
        let _ = address.set_password(None);
        address.set_query(None);
        let address = match socket {
            true => format!("unix:{}", address.path()),
            false => {
                address.set_path("");
                address.as_str().to_owned()
            }
        };
        let info = url.into_connection_info().map_err(|error| error.to_string())?;
        Ok(Self { info, name, address, has_no_port })
    }
}

/// A name for messages: on one line, and shortened.
fn shown_name(name: &[u8]) -> String {
    let (shown, rest) = match name.len() {
        long if long > MOST_SHOWN => (&name[..SHOWN_OF_LONG], format!("… ({long} bytes)")),
        _ => (name, String::new()),
    };
    one_line(&String::from_utf8_lossy(shown)) + &rest
}

/// Replaces `%20` and the like with the bytes they stand for.
fn percent_decoded(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(text: &str) -> Remote {
        text.parse().unwrap_or_else(|what| panic!("{text}: {what}"))
    }

    #[test]
    fn an_address_is_a_server_and_a_name() {
        let plain = remote("redis://localhost/seen");
        assert_eq!(plain.info.addr(), &ConnectionAddr::Tcp("localhost".into(), 6379));
        assert_eq!((plain.name(), plain.shown().as_str()), (&b"seen"[..], "redis://localhost/seen"));
        let said = plain.with_ports("no server listens there".into());
        assert!(said.contains("6379") && said.contains("6399"), "{said}");
        let full = remote("redis://ada:s%40cret@[::1]:6399/users/7%00%ff?db=3");
        assert_eq!(full.with_ports("no server listens there".into()), "no server listens there");
        assert_eq!(full.info.addr(), &ConnectionAddr::Tcp("::1".into(), 6399));
        assert_eq!(full.name(), b"users/7\0\xff");
        let settings = full.info.redis_settings();
        assert_eq!(
            (settings.username(), settings.password(), settings.db()),
            (Some("ada"), Some("s@cret"), 3)
        );
        assert!(!full.shown().contains("cret") && full.shown().starts_with("redis://[::1]:6399/users/7"));
        let socket = remote("redis+unix:///run/mayhap.sock?name=seen%20it&pass=secret");
        assert_eq!(socket.info.addr(), &ConnectionAddr::Unix("/run/mayhap.sock".into()));
        assert_eq!(socket.info.redis_settings().password(), Some("secret"));
        assert_eq!(
            (socket.name(), socket.shown().as_str()),
            (&b"seen it"[..], "unix:/run/mayhap.sock?name=seen it")
        );
    }

    #[test]
    fn names_are_what_was_written_and_short_in_messages() {
        assert_eq!(remote("redis://localhost/a%2F%2E%2E%23").name(), b"a/..#");
        let lines = remote("redis://localhost/a\nb%0Ac");
        assert_eq!((lines.name(), lines.shown().as_str()), (&b"a\nb\nc"[..], "redis://localhost/a\\nb\\nc"));
        let long = remote(&format!("redis://localhost/{}", "x".repeat(5_000)));
        assert_eq!(long.name().len(), 5_000);
        assert!(long.shown().len() < 200 && long.shown().ends_with("… (5000 bytes)"), "{}", long.shown());
    }

    #[test]
    fn tls_is_asked_for_by_the_scheme_and_always_checks_the_server() {
        let remote = remote("rediss://ada:secret@localhost:6400/seen");
        let ConnectionAddr::TcpTls { host, port, insecure, .. } = remote.info.addr() else {
            panic!("{:?}", remote.info.addr());
        };
        assert_eq!((host.as_str(), *port, *insecure), ("localhost", 6400, false));
        assert_eq!(remote.shown(), "rediss://localhost:6400/seen");
    }

    #[test]
    fn invalid_addresses_are_rejected_with_the_reason() {
        for (text, what) in [
            ("seen.mayhap", "not of the form"),
            ("http://localhost/seen", "is not supported"),
            ("redis://localhost:99999/seen", "not of the form"),
            ("redis://localhost/seen#1", "%23"),
            ("redis://localhost/seen?d=1", "?db=N"),
            ("redis://localhost/a/../b", "%2E"),
            ("redis://localhost/a//b", "%2F"),
            ("redis://localhost/./b", "%2E"),
            ("redis://localhost", "has no name"),
            ("redis://localhost:6399/", "has no name"),
            ("redis+unix:///run/mayhap.sock", "has no name"),
            ("rediss://localhost/seen#insecure", "certificate"),
            ("redis://localhost/seen?db=x", "database"),
            ("redis://0.0.0.0/seen", "wildcard"),
        ] {
            let said = text.parse::<Remote>().map(|remote| remote.shown()).unwrap_err();
            assert!(said.contains(what), "{text}: {said}");
        }
    }
}
