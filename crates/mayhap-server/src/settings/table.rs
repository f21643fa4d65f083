//! The table of all settings. Flags, variables, keys of the file, help texts and the manual are made from it.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use mayhap_command::parameters::{self, Parameter};

use super::{Memory, Settings};
use crate::logging::{Format, Level};
use crate::quantity;
use crate::tls::ClientCertificates;
use crate::users;

/// One setting. It is a flag `--name`, a variable `MAYHAP_NAME` and a key `name` of the file.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// A setting of the server itself.
    Own(&'static Row),
    /// A default for new filters.
    Parameter(&'static Parameter),
}

/// A row of the table: everything about one setting of the server.
#[derive(Debug)]
pub struct Row {
    /// The name, as in the file and in the flag.
    pub name: &'static str,
    /// The placeholder for the value in help texts.
    pub value_name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The values that are allowed, for error messages.
    pub allowed: &'static str,
    /// How many values it takes.
    pub shape: Shape,
    /// Returns the current value.
    pub get: fn(&Settings) -> Shown,
    /// Sets the value. Returns `None` and changes nothing if it is invalid.
    pub set: fn(&mut Settings, &[&str]) -> Option<()>,
}

/// How many values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    One,
    /// Any number, separated by commas in a variable.
    Many,
    /// A boolean. The flag has no value.
    Switch,
}

/// A value as it is written to the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The setting has no value.
    Nothing,
    /// A number.
    Number(i64),
    /// A number with a fractional part.
    Fraction(f64),
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A boolean.
    Switch(bool),
}

impl Setting {
    /// All settings, in the order of the manual.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Self::Own).chain(parameters::ALL.iter().map(Self::Parameter))
    }

    /// Returns the setting with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|setting| setting.name() == name)
    }

    /// The name of the setting.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own(row) => row.name,
            Self::Parameter(parameter) => parameter.name,
        }
    }

    /// The name of the environment variable.
    #[must_use]
    pub fn variable(self) -> String {
        format!("MAYHAP_{}", self.name().to_ascii_uppercase().replace('-', "_"))
    }

    /// The placeholder for the value in help texts.
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
            Self::Parameter(parameter) => parameter_help(parameter.name),
        }
    }

    /// The values that are allowed, for error messages.
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

    /// Returns the value in `settings`.
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

    /// Sets the value. Returns `None` and changes nothing if it is invalid.
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

/// Parses host names. One value may hold several, separated by commas.
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

/// Parses names of commands and categories. One value may hold several, separated by commas.
fn commands(values: &[&str]) -> Option<Vec<String>> {
    let words = values.iter().flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase());
    words.map(|word| users::off::is_known(&word).then_some(word)).collect()
}

const COMMANDS: &str = "names of commands and categories, for example debug or @dangerous";
const PORTS: &str = "a port from 0 (any free port) to 65535, or off";
const ADDRESSES: &str = "an IP address of this machine, for example 127.0.0.1, ::1 or 0.0.0.0 (all)";
const SECONDS: &str = "a number of seconds, for example 60, 5m or 1h";
const BYTES: &str = "a number of bytes, for example 512MiB or 4GiB";

/// The help for a default of new filters.
const fn parameter_help(name: &str) -> &'static str {
    match name.as_bytes() {
        b"bf-error-rate" => {
            "Target false-positive rate of new BF filters, between 0 and 1; a rate above 0.25 counts as 0.25"
        }
        b"bf-initial-size" => "Capacity of new BF filters, in items",
        b"bf-expansion-factor" => {
            "Growth of new BF filters: each new layer has this many times the capacity of the last; 0: filters do not grow"
        }
        b"bf-growth" => {
            "How new BF filters divide their false-positive rate among layers: redisbloom (the same layers as RedisBloom) or compact (less memory; RedisBloom can still read the dumps)"
        }
        b"bf-hash" => {
            "Hash of new BF filters: redisbloom (public seed; RedisBloom can read the dumps) or keyed (secret key for each filter; clients cannot construct false positives)"
        }
        b"cf-bucket-size" => {
            "Slots per bucket of new CF filters, from 1 to 255, at most half of cf-initial-size"
        }
        b"cf-initial-size" => "Capacity of new CF filters, in items",
        b"cf-max-iterations" => {
            "Evictions that an insert into a new CF filter tries before the filter grows or is full, from 1 to 65535"
        }
        b"cf-expansion-factor" => {
            "Growth of new CF filters: each new sub-filter has this many times the capacity of the last; 0: filters do not grow"
        }
        b"cf-max-expansions" => {
            "Sub-filters that a CF filter may have, from 1 to 65536; applies to existing filters as well"
        }
        b"cf-eviction" => {
            "How CF filters make room: redisbloom (the same sub-filters as RedisBloom) or thorough (fills more than four fifths before growing); applies to existing filters as well"
        }
        b"cf-hash" => "Hash of new CF filters: redisbloom or keyed, as in bf-hash",
        _ => "Default for new filters",
    }
}

/// The settings of the server itself.
pub static ROWS: &[Row] = &[
    Row {
        name: "port",
        value_name: "PORT",
        help: "Port for Redis clients; 0: any free port; off: no TCP",
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
        help: "Address to listen on for Redis clients, with or without TLS; may be given more than once",
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
        help: "Port for Redis clients that use TLS; 0: any free port; off: no TLS",
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
        help: "PEM file with the certificate of the server, followed by intermediate certificates",
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
        help: "PEM file with the private key of tls-cert",
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
        help: "PEM file with the certificate authorities that sign client certificates; without it clients are not asked for a certificate",
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
        help: "Whether a client must present a certificate that tls-client-ca signed: required or optional",
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
        help: "Seconds that a client may take for the TLS handshake before it is disconnected, from 1 to 3600",
        allowed: "a number of seconds from 1 to 3600",
        shape: Shape::One,
        get: |settings| show_number(settings.tls_handshake_secs),
        set: |settings, values| {
            settings.tls_handshake_secs =
                quantity::seconds(values[0]).ok().filter(|secs| (1..=3_600).contains(secs))?;
            Some(())
        },
    },
    Row {
        name: "unix-socket",
        value_name: "PATH",
        help: "Path of a Unix socket to listen on, in addition to TCP",
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
        help: "Port for HTTP (/health, /ready, /metrics, /api); 0: any free port; off: no HTTP",
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
        help: "Address to listen on for HTTP; may be given more than once",
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
        help: "Host name that HTTP requests may have in their Host header, besides the addresses of the server and localhost; may be given more than once",
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
        help: "Maximum number of open HTTP connections; they do not count towards max-clients",
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
        help: "Data folder; created if it does not exist",
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
        help: "When changes reach the disk: always (before the reply), everysec (within a second) or no (when the operating system writes them)",
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
        help: "Seconds between snapshots, if there were changes; 0: only when the log has grown past 64 MiB and past the size of the last snapshot",
        allowed: SECONDS,
        shape: Shape::One,
        get: |settings| show_number(settings.save_interval_secs),
        set: |settings, values| {
            settings.save_interval_secs = quantity::seconds(values[0]).ok()?;
            Some(())
        },
    },
    Row {
        name: "workers",
        value_name: "N",
        help: "Number of threads that serve Redis connections; 0: one per processor",
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
        help: "Memory limit for all filters together, in bytes or as a share of the memory of the machine or container; 0: no limit",
        allowed: "a number of bytes, for example 512MiB or 4GiB, or a share from 1% to 100%",
        shape: Shape::One,
        get: |settings| Shown::Text(settings.max_memory.to_text()),
        set: |settings, values| {
            settings.max_memory = Memory::read(values[0])?;
            Some(())
        },
    },
    Row {
        name: "max-filter-memory",
        value_name: "BYTES",
        help: "Memory limit for one filter, in bytes",
        allowed: BYTES,
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::format_bytes(settings.max_filter_bytes)),
        set: |settings, values| {
            settings.max_filter_bytes = quantity::bytes(values[0]).ok().filter(|bytes| *bytes > 0)?;
            Some(())
        },
    },
    Row {
        name: "max-clients",
        value_name: "N",
        help: "Maximum number of open Redis connections (Redis: maxclients)",
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
        help: "Maximum length of one item, name or value in a request, in bytes (Redis: proto-max-bulk-len)",
        allowed: "a number of bytes from 1MiB to 2GiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::format_bytes(settings.request_limits.word_bytes as u64)),
        set: |settings, values| {
            let bytes =
                quantity::bytes(values[0]).ok().filter(|bytes| (1 << 20..=2 << 30).contains(bytes))?;
            settings.request_limits.word_bytes = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "max-words",
        value_name: "N",
        help: "Maximum number of items, names and values in one request",
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
        help: "Maximum length of one request or transaction, in bytes (Redis: client-query-buffer-limit)",
        allowed: "a number of bytes from 1MiB to 16GiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::format_bytes(settings.request_limits.request_bytes as u64)),
        set: |settings, values| {
            let bytes =
                quantity::bytes(values[0]).ok().filter(|bytes| (1 << 20..=16 << 30).contains(bytes))?;
            settings.request_limits.request_bytes = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "max-unread",
        value_name: "BYTES",
        help: "Bytes of replies that a client may leave unread; above it, no more of its requests are read until it catches up",
        allowed: "a number of bytes from 64KiB to 1TiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::format_bytes(settings.output_limit as u64)),
        set: |settings, values| {
            let bytes =
                quantity::bytes(values[0]).ok().filter(|bytes| (64 << 10..=1 << 40).contains(bytes))?;
            settings.output_limit = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "max-buffers",
        value_name: "BYTES",
        help: "Memory limit for all client buffers (partial requests, transactions, unread replies), in bytes; above it, the largest client is disconnected",
        allowed: "a number of bytes from 1MiB to 1TiB",
        shape: Shape::One,
        get: |settings| Shown::Text(quantity::format_bytes(settings.buffers_limit as u64)),
        set: |settings, values| {
            let bytes =
                quantity::bytes(values[0]).ok().filter(|bytes| (1 << 20..=1 << 40).contains(bytes))?;
            settings.buffers_limit = usize::try_from(bytes).ok()?;
            Some(())
        },
    },
    Row {
        name: "request-timeout",
        value_name: "SECS",
        help: "Close connections whose request makes no progress for this many seconds; over HTTP, a whole request must arrive, and the next one must begin, within this time; 0: no limit",
        allowed: SECONDS,
        shape: Shape::One,
        get: |settings| show_number(settings.request_timeout_secs),
        set: |settings, values| {
            settings.request_timeout_secs = quantity::seconds(values[0]).ok()?;
            Some(())
        },
    },
    Row {
        name: "idle-timeout",
        value_name: "SECS",
        help: "Close connections that send no request for this many seconds (Redis: timeout); 0: never",
        allowed: SECONDS,
        shape: Shape::One,
        get: |settings| show_number(settings.idle_timeout_secs),
        set: |settings, values| {
            settings.idle_timeout_secs = quantity::seconds(values[0]).ok()?;
            Some(())
        },
    },
    Row {
        name: "password-file",
        value_name: "FILE",
        help: "File whose first line is the password of the default user; MAYHAP_PASSWORD sets it as well",
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
        help: "File with users, in the format of Redis's aclfile; ACL SAVE writes it",
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
        help: "Define a user: a name, then rules as in ACL SETUSER; may be given more than once",
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
        help: "Enable this command, which is disabled by default (debug); may be given more than once",
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
        help: "Disable this command, or a category such as @dangerous, for all users; may be given more than once",
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
        help: "Allow listening without a password on addresses that other machines can reach",
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
        help: "Record requests that take at least this many microseconds in SLOWLOG; 0: all requests; -1: none",
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
        help: "Maximum number of requests in SLOWLOG; the oldest are dropped",
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
        help: "Record operations that take at least this many milliseconds in LATENCY; 0: none",
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
        help: "Lowest level of log lines: error, warn, info, debug or trace",
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
        help: "Format of the log: text, or json (one object per line)",
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

    /// Every setting accepts the value it shows, and an invalid value changes nothing.
    #[test]
    fn every_setting_accepts_the_value_it_shows() {
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
    fn setting_names_are_unique() {
        let mut names: Vec<&str> = Setting::all().map(Setting::name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(Setting::find("max-memory").is_some() && Setting::find("max_memory").is_none());
    }
}
