//! Every setting, once.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use mayhap_command::parameters::{self, Parameter};

use super::{Settings, quantity};
use crate::logging::{Format, Level};
use crate::tls::ClientCertificates;
use crate::users;

/// One setting: a flag `--name`, a variable `MAYHAP_NAME`, a key `name` of the file.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// One of the server.
    Own(&'static Row),
    /// One that decides what new filters are like.
    Parameter(&'static Parameter),
}

/// What there is to know of a setting of the server.
#[derive(Debug)]
pub struct Row {
    /// As the file and the flag have it.
    pub name: &'static str,
    /// What the help calls its value.
    pub value_name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What it may be.
    pub allowed: &'static str,
    /// How many values it takes.
    pub shape: Shape,
    /// What it is.
    pub get: fn(&Settings) -> Shown,
    /// Sets it; `None` if the values make no sense, and then nothing changed.
    pub set: fn(&mut Settings, &[&str]) -> Option<()>,
}

/// How many values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One.
    One,
    /// Any number; in a variable with commas between them.
    Many,
    /// Yes or no; as a flag it takes none.
    Switch,
}

/// A value, as the file writes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// There is none.
    Nothing,
    /// A number.
    Number(i64),
    /// A number that is not whole.
    Fraction(f64),
    /// A text.
    Text(String),
    /// Several.
    Texts(Vec<String>),
    /// Yes or no.
    Switch(bool),
}

impl Setting {
    /// All of them, in the order of the manual.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Self::Own).chain(parameters::ALL.iter().map(Self::Parameter))
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|setting| setting.name() == name)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own(row) => row.name,
            Self::Parameter(parameter) => parameter.name,
        }
    }

    /// The variable of the environment.
    #[must_use]
    pub fn variable(self) -> String {
        format!("MAYHAP_{}", self.name().to_ascii_uppercase().replace('-', "_"))
    }

    /// What the help calls its value.
    #[must_use]
    pub const fn value_name(self) -> &'static str {
        match self {
            Self::Own(row) => row.value_name,
            Self::Parameter(_) => "VALUE",
        }
    }

    /// One line of help.
    #[must_use]
    pub const fn help(self) -> &'static str {
        match self {
            Self::Own(row) => row.help,
            Self::Parameter(_) => "For new filters, as CONFIG SET has it",
        }
    }

    /// What it may be.
    #[must_use]
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::Own(row) => row.allowed,
            Self::Parameter(parameter) => parameter.allowed,
        }
    }

    /// How many values it takes.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Self::Own(row) => row.shape,
            Self::Parameter(_) => Shape::One,
        }
    }

    /// What it is in `settings`.
    #[must_use]
    pub fn get(self, settings: &Settings) -> Shown {
        match self {
            Self::Own(row) => (row.get)(settings),
            Self::Parameter(parameter) => {
                let text = (parameter.get)(&settings.parameters);
                match (text.parse(), text.parse()) {
                    (Ok(number), _) => Shown::Number(number),
                    (_, Ok(fraction)) => Shown::Fraction(fraction),
                    _ => Shown::Text(text),
                }
            }
        }
    }

    /// Sets it. `None` if the values make no sense, and then nothing changed.
    pub fn set(self, settings: &mut Settings, values: &[&str]) -> Option<()> {
        match (self, values) {
            (Self::Own(row), [_]) => (row.set)(settings, values),
            (Self::Own(row), _) if row.shape == Shape::Many => (row.set)(settings, values),
            (Self::Parameter(parameter), [value]) => {
                (parameter.set)(&mut settings.parameters, value.as_bytes()).ok()
            }
            _ => None,
        }
    }
}

const OFF: &str = "off";

fn port(text: &str) -> Option<Option<u16>> {
    if text == OFF { Some(None) } else { Some(Some(text.parse().ok()?)) }
}

fn show_port(port: Option<u16>) -> Shown {
    port.map_or_else(|| Shown::Text(OFF.into()), |port| Shown::Number(port.into()))
}

fn addresses(values: &[&str]) -> Option<Vec<IpAddr>> {
    if values.is_empty() {
        return None;
    }
    let address =
        |text: &&str| if *text == "localhost" { "127.0.0.1".parse().ok() } else { text.parse().ok() };
    values.iter().map(address).collect()
}

/// Host names; several may stand in one value.
fn hosts(values: &[&str]) -> Option<Vec<String>> {
    let words = values.iter().flat_map(|value| value.split(',')).map(str::trim);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let is_host = |word: &str| !word.is_empty() && word.bytes().all(fits);
    words.map(|word| is_host(word).then(|| word.to_ascii_lowercase())).collect()
}

fn show_addresses(addresses: &[IpAddr]) -> Shown {
    Shown::Texts(addresses.iter().map(IpAddr::to_string).collect())
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn show_path(path: Option<&PathBuf>) -> Shown {
    path.map_or(Shown::Nothing, |path| Shown::Text(path.display().to_string()))
}

fn show_number(number: impl TryInto<i64>) -> Shown {
    Shown::Number(number.try_into().unwrap_or(i64::MAX))
}

fn number<T: std::str::FromStr + PartialOrd>(text: &str, range: &RangeInclusive<T>) -> Option<T> {
    text.parse().ok().filter(|number| range.contains(number))
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Commands and categories; several may stand in one value.
fn commands(values: &[&str]) -> Option<Vec<String>> {
    let words = values.iter().flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase());
    words.map(|word| users::off::is_known(&word).then_some(word)).collect()
}

const COMMANDS: &str = "names of commands and categories, for example debug or @dangerous";
const PORTS: &str = "a port from 0 (any that is free) to 65535, or off";
const ADDRESSES: &str = "an IP address of this machine, for example 127.0.0.1, ::1 or 0.0.0.0 (all)";
const SECONDS: &str = "a number of seconds, for example 60, 5m or 1h";
const BYTES: &str = "a number of bytes, for example 512MiB or 4GiB";

/// Those of the server itself.
pub static ROWS: &[Row] = &[
    Row {
        name: "port",
        value_name: "PORT",
        help: "The port for Redis clients; 0: any that is free; off: none",
        allowed: PORTS,
        shape: Shape::One,
        get: |settings| show_port(settings.port),
        set: |settings, values| {
            settings.port = port(values[0])?;
            Some(())
        },
    },
    Row {
        name: "bind",
        value_name: "ADDR",
        help: "An address to listen on; may be given more than once",
        allowed: ADDRESSES,
        shape: Shape::Many,
        get: |settings| show_addresses(&settings.bind),
        set: |settings, values| {
            settings.bind = addresses(values)?;
            Some(())
        },
    },
    Row {
        name: "tls-port",
        value_name: "PORT",
        help: "The port for Redis clients that use TLS; 0: any that is free; off: none",
        allowed: PORTS,
        shape: Shape::One,
        get: |settings| show_port(settings.tls_port),
        set: |settings, values| {
            settings.tls_port = port(values[0])?;
            Some(())
        },
    },
    Row {
        name: "tls-cert",
        value_name: "FILE",
        help: "The server's certificate and those behind it, in PEM",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.tls_cert.as_ref()),
        set: |settings, values| {
            settings.tls_cert = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "tls-key",
        value_name: "FILE",
        help: "The private key of the certificate, in PEM",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.tls_key.as_ref()),
        set: |settings, values| {
            settings.tls_key = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "tls-client-ca",
        value_name: "FILE",
        help: "The authorities whose certificates clients are asked for, in PEM; without it they are asked for none",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.tls_client_ca.as_ref()),
        set: |settings, values| {
            settings.tls_client_ca = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "tls-client-certs",
        value_name: "WORD",
        help: "Whether a client must have such a certificate: required or optional",
        allowed: "required or optional",
        shape: Shape::One,
        get: |settings| Shown::Text(settings.tls_clients.name().into()),
        set: |settings, values| {
            settings.tls_clients = ClientCertificates::find(values[0])?;
            Some(())
        },
    },
    Row {
        name: "tls-handshake",
        value_name: "SECS",
        help: "How long a client may take to begin with TLS",
        allowed: "a number of seconds from 1 to 3600",
        shape: Shape::One,
        get: |settings| show_number(settings.tls_handshake_secs),
        set: |settings, values| {
            settings.tls_handshake_secs =
                quantity::seconds(values[0]).filter(|secs| (1..=3_600).contains(secs))?;
            Some(())
        },
    },
    Row {
        name: "unix-socket",
        value_name: "PATH",
        help: "A socket file to listen on as well",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.unix_socket.as_ref()),
        set: |settings, values| {
            settings.unix_socket = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "http-port",
        value_name: "PORT",
        help: "The port for /health, /ready, /metrics and /api; 0: any that is free; off: none",
        allowed: PORTS,
        shape: Shape::One,
        get: |settings| show_port(settings.http_port),
        set: |settings, values| {
            settings.http_port = port(values[0])?;
            Some(())
        },
    },
    Row {
        name: "http-bind",
        value_name: "ADDR",
        help: "An address HTTP listens on; may be given more than once",
        allowed: ADDRESSES,
        shape: Shape::Many,
        get: |settings| show_addresses(&settings.http_bind),
        set: |settings, values| {
            settings.http_bind = addresses(values)?;
            Some(())
        },
    },
    Row {
        name: "http-hosts",
        value_name: "HOST",
        help: "A name clients may use for the HTTP server in Host, besides its addresses and localhost; may be given more than once",
        allowed: "a host name, with a port or without, for example filters.example.org",
        shape: Shape::Many,
        get: |settings| Shown::Texts(settings.http_hosts.clone()),
        set: |settings, values| {
            settings.http_hosts = hosts(values)?;
            Some(())
        },
    },
    Row {
        name: "http-max-clients",
        value_name: "N",
        help: "HTTP connections at the same time, besides max-clients",
        allowed: "a number from 1 to 1000000",
        shape: Shape::One,
        get: |settings| show_number(settings.http_max_clients),
        set: |settings, values| {
            settings.http_max_clients = number(values[0], &(1..=1_000_000))?;
            Some(())
        },
    },
    Row {
        name: "dir",
        value_name: "DIR",
        help: "The folder for the data, which is made if need be",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.dir.as_ref()),
        set: |settings, values| {
            settings.dir = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "fsync",
        value_name: "WHEN",
        help: "When changes are safe from a power loss: always (before the reply), everysec or no (when the system likes)",
        allowed: "always, everysec or no",
        shape: Shape::One,
        get: |settings| Shown::Text(settings.fsync.name().into()),
        set: |settings, values| {
            settings.fsync = values[0].parse().ok()?;
            Some(())
        },
    },
    Row {
        name: "save-interval",
        value_name: "SECS",
        help: "How often a snapshot is written when something changed; 0: only when the log has become long",
        allowed: SECONDS,
        shape: Shape::One,
        get: |settings| show_number(settings.save_interval_secs),
        set: |settings, values| {
            settings.save_interval_secs = quantity::seconds(values[0])?;
            Some(())
        },
    },
    Row {
        name: "workers",
        value_name: "N",
        help: "Threads that serve connections; 0: one for each processor",
        allowed: "a number from 0 to 1024",
        shape: Shape::One,
        get: |settings| show_number(settings.workers),
        set: |settings, values| {
            settings.workers = number(values[0], &(0..=1_024))?;
            Some(())
        },
    },
    Row {
        name: "max-memory",
        value_name: "BYTES",
        help: "What all filters together may take, in bytes or as a share of the memory there is; 0: any amount",
        allowed: "a number of bytes, for example 512MiB or 4GiB, or a share from 1% to 100%",
        shape: Shape::One,
        get: |settings| Shown::Text(settings.max_memory.say()),
        set: |settings, values| {
            settings.max_memory = quantity::Memory::read(values[0])?;
            Some(())
        },
    },
    Row {
        name: "max-filter-memory",
        value_name: "BYTES",
        help: "What one filter may take",
        allowed: BYTES,
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::say_bytes(settings.max_filter_bytes)),
        set: |settings, values| {
            settings.max_filter_bytes = quantity::bytes(values[0]).filter(|bytes| *bytes > 0)?;
            Some(())
        },
    },
    Row {
        name: "max-clients",
        value_name: "N",
        help: "Connections at the same time",
        allowed: "a number from 1 to 1000000",
        shape: Shape::One,
        get: |settings| show_number(settings.max_clients),
        set: |settings, values| {
            settings.max_clients = number(values[0], &(1..=1_000_000))?;
            Some(())
        },
    },
    Row {
        name: "max-word",
        value_name: "BYTES",
        help: "The longest item, name or value in a request (proto-max-bulk-len)",
        allowed: "a number of bytes from 1MiB to 2GiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::say_bytes(settings.request_limits.word_bytes as u64)),
        set: |settings, values| {
            let bytes = quantity::bytes(values[0]).filter(|bytes| (1 << 20..=2 << 30).contains(bytes))?;
            settings.request_limits.word_bytes = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "max-words",
        value_name: "N",
        help: "The most items, names and values in a request",
        allowed: "a number from 1024 to 16777216",
        shape: Shape::One,
        get: |settings| show_number(settings.request_limits.words),
        set: |settings, values| {
            settings.request_limits.words = number(values[0], &(1_024..=16 << 20))?;
            Some(())
        },
    },
    Row {
        name: "max-request",
        value_name: "BYTES",
        help: "The longest request with all its words, and the longest transaction (client-query-buffer-limit)",
        allowed: "a number of bytes from 1MiB to 16GiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::say_bytes(settings.request_limits.request_bytes as u64)),
        set: |settings, values| {
            let bytes = quantity::bytes(values[0]).filter(|bytes| (1 << 20..=16 << 30).contains(bytes))?;
            settings.request_limits.request_bytes = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "max-unread",
        value_name: "BYTES",
        help: "Replies a client may leave unread before no more of its requests are read",
        allowed: "a number of bytes from 64KiB to 1TiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::say_bytes(settings.output_limit as u64)),
        set: |settings, values| {
            let bytes = quantity::bytes(values[0]).filter(|bytes| (64 << 10..=1 << 40).contains(bytes))?;
            settings.output_limit = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "max-buffers",
        value_name: "BYTES",
        help: "Half requests, transactions and unread replies of all clients; past it who has most is closed",
        allowed: "a number of bytes from 1MiB to 1TiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::say_bytes(settings.buffers_limit as u64)),
        set: |settings, values| {
            let bytes = quantity::bytes(values[0]).filter(|bytes| (1 << 20..=1 << 40).contains(bytes))?;
            settings.buffers_limit = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "request-timeout",
        value_name: "SECS",
        help: "Close a connection whose request stops arriving for this many seconds; over HTTP, one whose request has not arrived or that has asked for nothing since; 0 disables",
        allowed: SECONDS,
        shape: Shape::One,
        get: |settings| show_number(settings.request_timeout_secs),
        set: |settings, values| {
            settings.request_timeout_secs = quantity::seconds(values[0])?;
            Some(())
        },
    },
    Row {
        name: "idle-timeout",
        value_name: "SECS",
        help: "A connection is closed that asks for nothing for so long (timeout); 0: none is",
        allowed: SECONDS,
        shape: Shape::One,
        get: |settings| show_number(settings.idle_timeout_secs),
        set: |settings, values| {
            settings.idle_timeout_secs = quantity::seconds(values[0])?;
            Some(())
        },
    },
    Row {
        name: "password-file",
        value_name: "FILE",
        help: "The first line of this file is the password; MAYHAP_PASSWORD is one, too",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.password_file.as_ref()),
        set: |settings, values| {
            settings.password_file = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "users",
        value_name: "FILE",
        help: "A file of users, as Redis's aclfile; ACL SAVE writes it",
        allowed: "a path",
        shape: Shape::One,
        get: |settings| show_path(settings.users.as_ref()),
        set: |settings, values| {
            settings.users = Some(path(values[0])?);
            Some(())
        },
    },
    Row {
        name: "user",
        value_name: "RULES",
        help: "A user: a name and rules as in ACL SETUSER; may be given more than once",
        allowed: "a name and rules, for example ada on #HASH ~a:* +@read, where HASH is the SHA-256 of the password",
        shape: Shape::Many,
        get: |settings| Shown::Texts(settings.user.clone()),
        set: |settings, values| {
            settings.user = values.iter().map(|line| users::settings_line(line)).collect::<Option<_>>()?;
            Some(())
        },
    },
    Row {
        name: "enable",
        value_name: "COMMAND",
        help: "A command that is off unless it is named here: debug; may be given more than once",
        allowed: COMMANDS,
        shape: Shape::Many,
        get: |settings| Shown::Texts(settings.enable.clone()),
        set: |settings, values| {
            settings.enable = commands(values)?;
            Some(())
        },
    },
    Row {
        name: "disable",
        value_name: "COMMAND",
        help: "A command, or a category such as @dangerous, that nobody may run; may be given more than once",
        allowed: COMMANDS,
        shape: Shape::Many,
        get: |settings| Shown::Texts(settings.disable.clone()),
        set: |settings, values| {
            settings.disable = commands(values)?;
            Some(())
        },
    },
    Row {
        name: "unprotected",
        value_name: "",
        help: "Listen beyond this machine even without a password",
        allowed: "true or false",
        shape: Shape::Switch,
        get: |settings| Shown::Switch(settings.unprotected),
        set: |settings, values| {
            settings.unprotected = switch(values[0])?;
            Some(())
        },
    },
    Row {
        name: "slow-log",
        value_name: "MICROS",
        help: "Requests that take so many microseconds are in SLOWLOG; -1: none is",
        allowed: "a number of microseconds, or -1",
        shape: Shape::One,
        get: |settings| Shown::Number(settings.slow_log_us),
        set: |settings, values| {
            settings.slow_log_us = number(values[0], &(-1..=i64::MAX))?;
            Some(())
        },
    },
    Row {
        name: "slow-log-entries",
        value_name: "N",
        help: "Requests SLOWLOG keeps",
        allowed: "a number from 0 to 100000",
        shape: Shape::One,
        get: |settings| show_number(settings.slow_log_entries),
        set: |settings, values| {
            settings.slow_log_entries = number(values[0], &(0..=100_000))?;
            Some(())
        },
    },
    Row {
        name: "latency-threshold",
        value_name: "MILLIS",
        help: "What takes so many milliseconds is an event of LATENCY; 0: nothing is",
        allowed: "a number of milliseconds",
        shape: Shape::One,
        get: |settings| show_number(settings.latency_ms),
        set: |settings, values| {
            settings.latency_ms = values[0].parse().ok()?;
            Some(())
        },
    },
    Row {
        name: "log-level",
        value_name: "LEVEL",
        help: "How much is logged: error, warn, info, debug or trace",
        allowed: "error, warn, info, debug or trace",
        shape: Shape::One,
        get: |settings| Shown::Text(settings.log_level.name().into()),
        set: |settings, values| {
            settings.log_level = Level::find(values[0])?;
            Some(())
        },
    },
    Row {
        name: "log-format",
        value_name: "FORMAT",
        help: "How the log looks: text or json",
        allowed: "text or json",
        shape: Shape::One,
        get: |settings| Shown::Text(settings.log_format.name().into()),
        set: |settings, values| {
            settings.log_format = Format::find(values[0])?;
            Some(())
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What a setting shows is what it takes, and nonsense changes nothing.
    #[test]
    fn every_setting_takes_back_what_it_shows() {
        let mut settings = Settings::of_program();
        settings.unix_socket = Some("there".into());
        settings.password_file = Some("secret".into());
        settings.users = Some("users".into());
        (settings.tls_cert, settings.tls_key) = (Some("cert".into()), Some("key".into()));
        settings.tls_client_ca = Some("ca".into());
        settings.user = vec!["ada off ~a:* resetchannels -@all +@read".into()];
        let before = settings.clone();
        for setting in Setting::all() {
            let values = match setting.get(&settings) {
                Shown::Nothing => panic!("{} shows nothing", setting.name()),
                Shown::Number(number) => vec![number.to_string()],
                Shown::Fraction(fraction) => vec![fraction.to_string()],
                Shown::Text(text) => vec![text],
                Shown::Texts(texts) => texts,
                Shown::Switch(yes) => vec![yes.to_string()],
            };
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            assert_eq!(setting.set(&mut settings, &values), Some(()), "{}: {values:?}", setting.name());
            assert_eq!(setting.set(&mut settings, &[""]), None, "{}", setting.name());
        }
        assert_eq!(format!("{settings:?}"), format!("{before:?}"));
    }

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<&str> = Setting::all().map(Setting::name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(Setting::find("max-memory").is_some() && Setting::find("max_memory").is_none());
    }
}
