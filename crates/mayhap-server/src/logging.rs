//! The log: one line per event on standard error, as text or as JSON.
//!
//! `info`: start, stop, snapshots, loading. `warn` and `error`: problems. `debug`: connections that open and
//! close. Passwords and items are never logged.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;

/// The lowest level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Failures that need action.
    Error,
    /// Problems that the server can handle.
    Warn,
    /// Regular work of the server: start, stop, snapshots, loading.
    Info,
    /// Connections.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The name in settings.
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

    /// Returns the level with this name.
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

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: text.
    Text,
    /// For programs: one JSON object per line.
    Json,
}

impl Format {
    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        [Self::Text, Self::Json].into_iter().find(|format| format.name() == name)
    }
}

/// Sends the log of the whole process to standard error. A second call has no effect.
pub fn start(level: Level, format: Format) {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level.filter());
    let _ = match format {
        Format::Json => log.json().flatten_event(true).with_target(false).try_init(),
        Format::Text => log.with_target(false).with_ansi(io::stderr().is_terminal()).try_init(),
    };
}
