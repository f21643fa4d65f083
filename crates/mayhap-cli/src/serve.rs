//! `mayhap serve`: the server. Its flags are the server's settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use mayhap_server::settings::layers::CONFIG_VARIABLE;
use mayhap_server::settings::table::{Setting, Shape, Shown};
use mayhap_server::{Running, Server, Settings, logging};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::error::CliError;
use crate::interrupt;
use crate::output::{self, HEADING};

const ABOUT: &str = "Serve filters to every Redis client";

const AFTER_HELP: &str = "\
Every flag except --config, --print-config, --no-http and --load is also an
environment variable (--max-memory: MAYHAP_MAX_MEMORY) and a key of the TOML file of
--config (max-memory). A flag overrides a variable, a variable overrides the file. `CONFIG
SET` changes some settings at run time.

Every change is written to a log in --dir before its reply is sent, so a crash of
the process loses nothing. --fsync limits the loss at a power failure: nothing
(always), the last second (everysec), or what the system has not written yet (no).
When the log gets long, a snapshot in the background shortens it; SAVE, BGSAVE and
--save-interval write one as well. If the disk is full, changes are rejected until
there is room; lookups continue.

Ctrl-C or `kill` (SIGTERM) stops the server: it accepts no new connections, answers
the requests it has received and closes the log. If the log cannot be closed, the
server reports it and keeps running; a second signal stops it anyway. A second
signal during the shutdown exits immediately.

Examples:
  mayhap serve                                     127.0.0.1:6399, data in ./mayhap-data
  redis-cli -p 6399 BF.ADD seen ada                a first command
  mayhap serve --port 6379 --dir /var/lib/mayhap   the port of Redis
  mayhap serve --max-memory 4GiB --no-http
  mayhap serve --unix-socket /run/mayhap.sock --port off
  mayhap serve --bind 0.0.0.0 --password-file pw   reachable from other machines
  mayhap serve --users users.acl --port off --tls-port 6399 --tls-cert c.pem --tls-key k.pem
  mayhap serve --load dump.rdb                     the filters of a Redis server
  mayhap serve --print-config > mayhap.toml        all settings, to edit
  mayhap serve --config mayhap.toml";

/// Serve filters to every Redis client.
#[derive(Debug)]
pub(crate) struct Serve {
    config: Option<PathBuf>,
    print_config: bool,
    no_http: bool,
    load: Option<PathBuf>,
    flags: Vec<(Setting, Vec<String>)>,
}

/// The help of a setting, with its default if it has one.
fn help_of(setting: Setting, defaults: &Settings) -> String {
    let usual = match setting.get(defaults) {
        Shown::Number(number) => number.to_string(),
        Shown::Fraction(fraction) => fraction.to_string(),
        Shown::Text(text) if !text.is_empty() => text,
        Shown::Texts(texts) if !texts.is_empty() => texts.join(", "),
        Shown::Nothing | Shown::Text(_) | Shown::Texts(_) | Shown::Switch(_) => {
            return setting.help().to_owned();
        }
    };
    format!("{} [default: {usual}]", setting.help())
}

impl Args for Serve {
    fn augment_args(command: Command) -> Command {
        let mut command = command.about(ABOUT).after_help(AFTER_HELP);
        let defaults = Settings::of_program();
        for setting in Setting::all() {
            let arg = Arg::new(setting.name()).long(setting.name()).help(help_of(setting, &defaults));
            command = command.arg(match setting.shape() {
                Shape::One => arg.value_name(setting.value_name()).allow_hyphen_values(true),
                Shape::Many => arg.value_name(setting.value_name()).action(ArgAction::Append),
                Shape::Switch => arg.action(ArgAction::SetTrue),
            });
        }
        command
            .mut_args(|arg| match Setting::find(arg.get_id().as_str()) {
                Some(Setting::Parameter(_)) => arg.help_heading("New filters"),
                _ => arg,
            })
            .arg(
                Arg::new("no-http")
                    .long("no-http")
                    .help("Disable HTTP, same as --http-port off")
                    .action(ArgAction::SetTrue),
            )
            .arg(
                Arg::new("load")
                    .long("load")
                    .value_name("DUMP.RDB")
                    .help("Load the filters and strings of a Redis or Valkey dump.rdb; needs an empty --dir")
                    .value_parser(clap::value_parser!(PathBuf)),
            )
            .arg(
                Arg::new("config")
                    .long("config")
                    .value_name("FILE")
                    .help("A TOML file with settings")
                    .value_parser(clap::value_parser!(PathBuf)),
            )
            .arg(
                Arg::new("print-config")
                    .long("print-config")
                    .help("Print all settings as a TOML file and exit")
                    .action(ArgAction::SetTrue),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Vec::new();
        for setting in Setting::all() {
            let name = setting.name();
            let values = match setting.shape() {
                Shape::Switch if matches.get_flag(name) => vec!["true".to_owned()],
                Shape::Switch => continue,
                Shape::One | Shape::Many => match matches.get_many::<String>(name) {
                    Some(values) => values.cloned().collect(),
                    None => continue,
                },
            };
            flags.push((setting, values));
        }
        Ok(Self {
            config: matches.get_one::<PathBuf>("config").cloned(),
            print_config: matches.get_flag("print-config"),
            no_http: matches.get_flag("no-http"),
            load: matches.get_one::<PathBuf>("load").cloned(),
            flags,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Serve {
    /// Serves until it is asked to stop.
    pub(crate) fn run(&self) -> Result<(), CliError> {
        let settings = self.settings()?;
        if self.print_config {
            return output::to_stdout(|out, _| Ok(out.write_all(settings.to_toml().as_bytes())?));
        }
        let _polite = interrupt::polite();
        logging::start(settings.log_level, settings.log_format);
        let running = Server::start(settings)?;
        greet(&running)?;
        read_certificates_on_request(&running);
        let stop = running.stop_handle();
        thread::spawn(move || {
            interrupt::wait();
            if stop.stop_once_saved().is_err() {
                interrupt::refuse();
                interrupt::wait();
                // Still saves what it can.
                stop.stop();
            }
        });
        // Exit without freeing memory: the system frees it immediately, while freeing a million filters takes a second.
        std::mem::forget(Arc::clone(running.shared()));
        running.wait().map_err(CliError::Save)
    }

    /// Merges flags, environment, file and defaults, in this order of precedence.
    fn settings(&self) -> Result<Settings, CliError> {
        let mut settings = Settings::of_program();
        let named = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
        if let Some(path) = self.config.as_deref().or(named.as_deref().map(Path::new)) {
            settings.apply_file(path)?;
        }
        settings.apply_environment(|name| std::env::var_os(name))?;
        for (setting, values) in &self.flags {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            settings.apply_flag(*setting, &values)?;
        }
        if self.no_http {
            settings.http_port = None;
        }
        settings.load.clone_from(&self.load);
        settings.read_password()?;
        Ok(settings)
    }
}

/// Reloads the certificates on SIGHUP, if there are any. Errors go to the log.
fn read_certificates_on_request(running: &Running) {
    if running.tls_addresses().is_empty() {
        return;
    }
    let shared = Arc::clone(running.shared());
    if let Ok(mut signals) = Signals::new([SIGHUP]) {
        thread::spawn(move || signals.forever().for_each(|_| drop(shared.reload_certificates())));
    }
}

/// Prints where the server listens, and a first command to try.
fn greet(running: &Running) -> Result<(), CliError> {
    output::to_stdout(|out, _| {
        let settings = running.shared().settings();
        writeln!(out, "{HEADING}mayhap {} is ready{HEADING:#}", env!("CARGO_PKG_VERSION"))?;
        for address in running.addresses() {
            writeln!(out, "  RESP  {address}")?;
        }
        for address in running.tls_addresses() {
            writeln!(out, "  TLS   {address}")?;
        }
        if let Some(path) = running.unix_socket() {
            writeln!(out, "  RESP  {}", path.display())?;
        }
        for address in running.http_addresses() {
            writeln!(out, "  HTTP  http://{address}/metrics")?;
        }
        if let Some(folder) = &settings.dir {
            let filters = running.shared().engine().totals().names;
            let filters = if filters == 1 { "1 filter".to_owned() } else { format!("{filters} filters") };
            writeln!(out, "  data  {} ({filters} loaded)", folder.display())?;
        }
        let password = if settings.password.is_some() { "-a PASSWORD " } else { "" };
        match (running.addresses().first(), running.unix_socket()) {
            (Some(address), _) => {
                writeln!(out, "  try   redis-cli -p {} {password}BF.ADD seen ada", address.port())?;
            }
            (None, Some(path)) => {
                writeln!(out, "  try   redis-cli -s {} {password}BF.ADD seen ada", path.display())?;
            }
            (None, None) => {}
        }
        Ok(out.flush()?)
    })
}
