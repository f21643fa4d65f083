//! `CONFIG`: parameters under the names that Redis clients and tools use.

use std::io;

use mayhap::file::{self, Readers};
use mayhap_command::parameters;
use mayhap_command::server::SessionRefusal;
use mayhap_command::{Parameters, Refusal, Reply, Request};
use mayhap_engine::log::Policy;
use mayhap_engine::{glob, snapshot};

use crate::quantity;
use crate::session::help;
use crate::settings::{Memory, Settings};
use crate::shared::Shared;
use crate::tls::TlsError;
use crate::users::Password;

/// One parameter.
struct Knob {
    name: &'static str,
    get: fn(&Shared) -> String,
    set: Set,
}

/// Whether a parameter can be set, and how.
enum Set {
    /// Cannot be set while the server runs.
    Fixed,
    /// Accepts only its current value. Some clients set it to make sure.
    Same,
    /// Parses a value and returns the change to apply, or the reason why it is rejected.
    Live(fn(&str) -> Result<Apply, &'static str>),
    /// As `Live`, for values whose validity depends on the state of the server.
    Checked(fn(&Shared, &str) -> Result<Apply, String>),
    /// Accepts only its current value, and reads the certificates again.
    Reloads,
}

type Apply = Box<dyn FnOnce(&Shared)>;

const NOT_INTEGER: &str = "argument couldn't be parsed into an integer";
const NOT_MEMORY: &str = "argument must be a memory value";
const IMMUTABLE: &str = "can't set immutable config";
const UNSUPPORTED: &str = "only the value it has is supported";
const DUPLICATE: &str = "duplicate parameter";
const SAVE_PARAMETERS: &str = "Invalid save parameters";

const fn fixed(name: &'static str, get: fn(&Shared) -> String) -> Knob {
    Knob { name, get, set: Set::Fixed }
}

const fn same(name: &'static str, get: fn(&Shared) -> String) -> Knob {
    Knob { name, get, set: Set::Same }
}

const fn certificates(name: &'static str, get: fn(&Shared) -> String) -> Knob {
    Knob { name, get, set: Set::Reloads }
}

const fn live(
    name: &'static str,
    get: fn(&Shared) -> String,
    set: fn(&str) -> Result<Apply, &'static str>,
) -> Knob {
    Knob { name, get, set: Set::Live(set) }
}

fn path(path: Option<&std::path::Path>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

/// All parameters, in alphabetical order.
static KNOBS: &[Knob] = &[
    same("activedefrag", |_| "no".into()),
    fixed("appenddirname", |_| "appendonlydir".into()),
    fixed("appendfilename", |_| "appendonly.aof".into()),
    live(
        "appendfsync",
        |shared| shared.fsync().name().into(),
        |value| {
            let policy =
                value.parse::<Policy>().map_err(|_| "argument must be one of always, everysec, no")?;
            Ok(Box::new(move |shared| shared.set_fsync(policy)))
        },
    ),
    same("appendonly", |shared| if shared.engine().log().is_some() { "yes" } else { "no" }.into()),
    fixed("bind", |shared| {
        shared.settings().bind.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }),
    fixed("client-query-buffer-limit", |shared| shared.settings().request_limits.request_bytes.to_string()),
    fixed("cluster-enabled", |_| "no".into()),
    fixed("daemonize", |_| "no".into()),
    fixed("databases", |_| "1".into()),
    fixed("dbfilename", |_| snapshot::FILE.into()),
    fixed("dir", |shared| path(shared.saving().folder())),
    same("hz", |_| "10".into()),
    fixed("io-threads", |shared| shared.settings().worker_threads().to_string()),
    live(
        "latency-monitor-threshold",
        |shared| shared.latency().threshold_ms().to_string(),
        |value| {
            let millis: u64 = value.parse().map_err(|_| NOT_INTEGER)?;
            Ok(Box::new(move |shared| shared.latency().set_threshold_ms(millis)))
        },
    ),
    fixed("logfile", |_| String::new()),
    live(
        "maxclients",
        |shared| shared.clients().most().to_string(),
        |value| {
            let most: usize = value.parse().map_err(|_| NOT_INTEGER)?;
            if !(1..=1_000_000).contains(&most) {
                return Err("argument must be between 1 and 1000000 inclusive");
            }
            Ok(Box::new(move |shared| shared.clients().set_most(most)))
        },
    ),
    live(
        "maxmemory",
        |shared| shared.engine().budget().limit().to_string(),
        |value| {
            let bytes = quantity::redis_bytes(value).ok_or(NOT_MEMORY)?;
            Ok(Box::new(move |shared| shared.engine().budget().set_limit(bytes)))
        },
    ),
    fixed("maxmemory-clients", |shared| shared.settings().buffers_limit.to_string()),
    same("maxmemory-policy", |_| "noeviction".into()),
    same("notify-keyspace-events", |_| String::new()),
    fixed("port", |shared| shared.port().to_string()),
    same("protected-mode", |shared| if shared.settings().unprotected { "no" } else { "yes" }.into()),
    fixed("proto-max-bulk-len", |shared| shared.settings().request_limits.word_bytes.to_string()),
    Knob {
        name: "requirepass",
        // It is no secret that a password is set.
        get: |shared| if shared.users().default_user().is_open() { String::new() } else { "(hidden)".into() },
        set: Set::Checked(|shared, value| {
            let password = (!value.is_empty()).then(|| Password::from(value));
            if password.is_none() && shared.users().wants_passwords() {
                return Err("the server is open to other machines".into());
            }
            Ok(Box::new(move |shared| shared.users().set_password(password.as_ref())))
        }),
    },
    live(
        "save",
        |shared| match shared.save_interval().as_secs() {
            0 => String::new(),
            secs => format!("{secs} 1"),
        },
        |value| {
            let numbers: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
            let numbers = numbers.map_err(|_| SAVE_PARAMETERS)?;
            if numbers.len() % 2 != 0 || numbers.contains(&0) {
                return Err(SAVE_PARAMETERS);
            }
            // Redis has pairs of seconds and changes. We have one number of seconds; any change counts.
            let secs = numbers.iter().step_by(2).min().copied().unwrap_or(0);
            Ok(Box::new(move |shared| shared.set_save_interval_secs(secs)))
        },
    ),
    live(
        "slowlog-log-slower-than",
        |shared| shared.slow_log().threshold_us().to_string(),
        |value| {
            let micros: i64 = value.parse().map_err(|_| NOT_INTEGER)?;
            Ok(Box::new(move |shared| shared.slow_log().set_threshold_us(micros.max(-1))))
        },
    ),
    live(
        "slowlog-max-len",
        |shared| shared.slow_log().max_len().to_string(),
        |value| {
            const MOST: usize = 100_000;
            let most: usize = value.parse().map_err(|_| NOT_INTEGER)?;
            if most > MOST {
                return Err("argument must be between 0 and 100000 inclusive");
            }
            Ok(Box::new(move |shared| shared.slow_log().set_max_len(most)))
        },
    ),
    same("stop-writes-on-bgsave-error", |_| "no".into()),
    same("tcp-keepalive", |_| "0".into()),
    live(
        "timeout",
        |shared| shared.idle_timeout().map_or(0, |idle| idle.as_secs()).to_string(),
        |value| {
            const MOST: u64 = i32::MAX as u64;
            let secs: u64 = value.parse().map_err(|_| NOT_INTEGER)?;
            if secs > MOST {
                return Err("argument must be between 0 and 2147483647 inclusive");
            }
            Ok(Box::new(move |shared| shared.set_idle_timeout_secs(secs)))
        },
    ),
    certificates("tls-ca-cert-file", |shared| path(shared.settings().tls_client_ca.as_deref())),
    certificates("tls-cert-file", |shared| path(shared.settings().tls_cert.as_deref())),
    certificates("tls-key-file", |shared| path(shared.settings().tls_key.as_deref())),
    fixed("tls-port", |shared| shared.settings().tls_port.unwrap_or(0).to_string()),
    fixed("unixsocket", |shared| path(shared.settings().unix_socket.as_deref())),
];

/// Runs `CONFIG subcommand …`. The subcommand exists and the number of words is right.
///
/// # Errors
/// In Redis's words.
pub(crate) fn config(shared: &Shared, Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
    match words[1].to_ascii_lowercase().as_slice() {
        b"get" => Ok(get(shared, &words[2..])),
        b"set" => set(shared, &words[2..]),
        b"resetstat" => {
            shared.engine().statistics().reset();
            shared.slow_log().reset();
            shared.latency().reset(&[]);
            Ok(Reply::Ok)
        }
        b"rewrite" => rewrite(shared),
        _ => Ok(help::of(command)),
    }
}

/// Returns the parameters that match any of `patterns`, each once.
fn get(shared: &Shared, patterns: &[&[u8]]) -> Reply {
    let patterns: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let patterns: Vec<glob::Pattern> = patterns.iter().map(|pattern| glob::Pattern::new(pattern)).collect();
    let wanted = |name: &str| patterns.iter().any(|pattern| pattern.matches(name.as_bytes()));
    let parameters = shared.engine().parameters();
    let knobs = KNOBS.iter().filter(|knob| wanted(knob.name)).map(|knob| (knob.name, (knob.get)(shared)));
    let of_filters = parameters::ALL.iter().filter(|parameter| wanted(parameter.name));
    let of_filters = of_filters.map(|parameter| (parameter.name, (parameter.get)(&parameters)));
    let pair = |(name, value): (&str, String)| (Reply::bulk(name), Reply::bulk(value));
    Reply::Map(knobs.chain(of_filters).map(pair).collect())
}

/// Sets all parameters, or none if one is invalid.
fn set(shared: &Shared, words: &[&[u8]]) -> Result<Reply, Refusal> {
    if !words.len().is_multiple_of(2) {
        return Err(Refusal::Syntax);
    }
    let mut apply: Vec<Apply> = Vec::new();
    let mut names: Vec<&'static str> = Vec::new();
    let mut parameters: Option<Parameters> = None;
    for pair in words.chunks_exact(2) {
        let (name, value) = (pair[0], pair[1]);
        let knob = KNOBS.iter().find(|knob| knob.name.as_bytes().eq_ignore_ascii_case(name));
        let known = match (knob, parameters::find(name)) {
            (Some(knob), _) => knob.name,
            (None, Some(parameter)) => parameter.name,
            (None, None) => {
                let name = String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
                return Err(SessionRefusal::UnknownParameter(name).into());
            }
        };
        let refused = |why| Refusal::from(SessionRefusal::BadParameter { name: known, why });
        if names.contains(&known) {
            return Err(refused(DUPLICATE));
        }
        names.push(known);
        let Some(knob) = knob else {
            if let Some(parameter) = parameters::find(name) {
                let draft =
                    parameters.get_or_insert_with(|| Parameters::clone(&shared.engine().parameters()));
                (parameter.set)(draft, value)?;
            }
            continue;
        };
        let value = std::str::from_utf8(value).map_err(|_| refused("Invalid argument"))?;
        match &knob.set {
            Set::Fixed => return Err(refused(IMMUTABLE)),
            Set::Same if value.eq_ignore_ascii_case(&(knob.get)(shared)) => {}
            Set::Same => return Err(refused(UNSUPPORTED)),
            Set::Live(read) => apply.push(read(value).map_err(refused)?),
            Set::Reloads if value != (knob.get)(shared) => return Err(refused(UNSUPPORTED)),
            Set::Reloads => {
                let refused =
                    |why: TlsError| SessionRefusal::NotApplied { name: known, why: why.to_string() };
                shared.reload_certificates().map_err(refused)?;
            }
            Set::Checked(read) => {
                let refused = |why| SessionRefusal::NotApplied { name: known, why };
                apply.push(read(shared, value).map_err(refused)?);
            }
        }
    }
    for apply in apply {
        apply(shared);
    }
    if let Some(parameters) = parameters {
        shared.engine().set_parameters(|current| *current = parameters);
    }
    tracing::info!(parameters = names.join(" "), "parameters set");
    Ok(Reply::Ok)
}

/// Writes the current settings to the file they came from.
fn rewrite(shared: &Shared) -> Result<Reply, Refusal> {
    let Some(path) = shared.settings().config_file.as_ref() else {
        return Err(SessionRefusal::NoConfigFile.into());
    };
    let text = as_they_are(shared).to_toml();
    // A new file may contain passwords.
    let written = file::replace(path, Readers::Owner, |_| Ok(()), |out| out.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(Reply::Ok),
        Err(error) => Err(SessionRefusal::RewriteFailed(io::Error::from(error).to_string()).into()),
    }
}

/// Returns the settings with the changes made by `CONFIG SET`.
fn as_they_are(shared: &Shared) -> Settings {
    let (asked, limit) = (shared.settings().max_memory, shared.engine().budget().limit());
    Settings {
        // A share stays a share until `CONFIG SET` sets a number.
        max_memory: if asked.bytes() == limit { asked } else { Memory::Bytes(limit) },
        max_clients: shared.clients().most(),
        idle_timeout_secs: shared.idle_timeout().map_or(0, |idle| idle.as_secs()),
        fsync: shared.fsync(),
        save_interval_secs: shared.save_interval().as_secs(),
        slow_log_us: shared.slow_log().threshold_us(),
        slow_log_entries: shared.slow_log().max_len(),
        latency_ms: shared.latency().threshold_ms(),
        parameters: Parameters::clone(&shared.engine().parameters()),
        user: shared.users().settings_lines(shared.settings()),
        ..shared.settings().clone()
    }
}
