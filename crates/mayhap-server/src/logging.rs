//! The log: one line for each event on the standard error, for people or for machines.
//!
//! `info`: start, stop, saving, loading. `warn` and `error`: what went wrong. `debug`: connections that come and go. Passwords and
//! items are never logged.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What went wrong and matters.
    Error,
    /// What went wrong.
    Warn,
    /// What the server does on its own.
    Info,
    /// Connections.
    Debug,
    /// All there is.
    Trace,
}

impl Level {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// As settings have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    const fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

/// How the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}

impl Format {
    /// As settings have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        [Self::Text, Self::Json].into_iter().find(|format| format.name() == name)
    }
}

/// From now on the whole program logs to the standard error. Once is enough; a second time changes nothing.
pub fn start(level: Level, format: Format) {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level.filter());
    let _ = match format {
        Format::Json => log.json().flatten_event(true).with_target(false).try_init(),
        Format::Text => log.with_target(false).with_ansi(io::stderr().is_terminal()).try_init(),
    };
}
