//! Errors of filters on remote servers.

use std::fmt;
use std::time::Duration;

use mayhap::BuildError;
use mayhap_formats::redisson::ConfigError;
use redis::{RedisError, Value};

use crate::descriptor::DescriptorError;
use crate::name::NameError;
use crate::plan::PlanError;

/// Why a request to a remote server failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RemoteError {
    /// The text is not the address of a server.
    Address {
        /// The reason.
        what: String,
    },
    /// A server cannot be reached, or refuses the login.
    Connect {
        /// Its address, without a password.
        address: String,
        /// The error of the client library.
        cause: RedisError,
    },
    /// A server answered with an error.
    Refused {
        /// The first word of the error, such as `ERR` or `WRONGTYPE`.
        code: String,
        /// The rest of the error.
        text: String,
    },
    /// A server sent a reply of a form that this command never returns.
    Reply {
        /// The expected form.
        expected: &'static str,
        /// The reply, shortened.
        got: String,
    },
    /// No server answered in time, after all retries.
    Patience {
        /// The time spent on retries.
        waited: Duration,
        /// The result of the last attempt.
        last: String,
    },
    /// The server is a replica, and the request needs the latest data or changes something.
    Replica {
        /// Its address, without a password.
        address: String,
    },
    /// The request may or may not have run, and must not run twice.
    Unsure {
        /// Why the outcome is unknown.
        last: String,
    },
    /// A bitmap or its config is missing or incomplete.
    Unready {
        /// The name of the filter.
        name: String,
        /// The missing part.
        what: &'static str,
    },
    /// The name is in use.
    Taken {
        /// The name.
        name: String,
    },
    /// The config that Redisson keeps for a bitmap is invalid.
    Config {
        /// The key of the config.
        name: String,
        /// The reason.
        cause: ConfigError,
    },
    /// The config of a filter changed between each read and its use.
    Changing {
        /// The name of the filter.
        name: String,
        /// The number of reads.
        tries: u32,
    },
    /// The filter has another layout than this operation requires.
    OtherLayout {
        /// The required layout, as a possessive: `Redisson's`.
        wanted: &'static str,
        /// The difference.
        why: String,
    },
    /// The caller's progress callback stopped the operation.
    Stopped,
    /// The parameters do not make a filter.
    Unbuildable(BuildError),
    /// The name is invalid.
    Name(NameError),
    /// The plan is invalid.
    Plan(PlanError),
    /// The value at the filter's name is not a valid descriptor.
    Descriptor {
        /// The filter's name.
        name: String,
        /// The reason.
        cause: DescriptorError,
    },
    /// There is no filter with this name.
    Missing {
        /// The name.
        name: String,
    },
    /// There is already a filter with this name.
    Exists {
        /// The name.
        name: String,
    },
    /// A shard is missing, incomplete, or holds something else.
    Shard {
        /// Its key.
        key: String,
        /// The reason.
        what: String,
    },
    /// A shard is at capacity and rejected the item.
    Full {
        /// Its key.
        key: String,
    },
    /// Another client is building this filter.
    Building {
        /// Milliseconds until its lock expires; after that, a retry succeeds if that client is dead.
        expires_ms: u64,
    },
    /// Another client took over the build. This build has ended.
    Overtaken {
        /// The generation that was being built.
        generation: u64,
    },
    /// The filter's descriptor was removed while the next generation was built: evicted, lost with its
    /// server, or deleted.
    Vanished {
        /// The filter's name.
        name: String,
        /// The generation that was being built.
        generation: u64,
    },
    /// The filter was replaced during every attempt.
    Unsteady {
        /// The number of attempts.
        attempts: u32,
    },
    /// The operating system returned no random numbers.
    Randomness,
}

impl RemoteError {
    /// An error for a reply that does not have the expected form.
    #[must_use]
    pub fn reply(expected: &'static str, got: &Value) -> Self {
        const SHOWN: usize = 100;
        let mut got = format!("{got:?}");
        if got.len() > SHOWN {
            let end = (0..=SHOWN).rev().find(|&end| got.is_char_boundary(end)).unwrap_or(0);
            got.truncate(end);
        }
        Self::Reply { expected, got }
    }

    /// The first word of the server's error reply, for [`Refused`](Self::Refused).
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { what } => write!(f, "invalid server address: {what}"),
            Self::Connect { address, cause } => write!(f, "cannot connect to {address}: {cause}"),
            Self::Refused { code, text } if text.is_empty() => write!(f, "the server refused: {code}"),
            Self::Refused { code, text } => write!(f, "the server refused: {code} {text}"),
            Self::Reply { expected, got } => write!(f, "the server answered {got}, not {expected}"),
            Self::Patience { waited, last } => {
                write!(f, "no answer in {:.1} s; last attempt: {last}", waited.as_secs_f64())
            }
            Self::Replica { address } => {
                write!(f, "{address} is a replica and may be stale; connect to its primary")
            }
            Self::Unsure { last } => {
                write!(f, "the request may have run and must not run twice: {last}")
            }
            Self::Name(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Descriptor { name, cause } => write!(f, "{name} is not a usable filter: {cause}"),
            Self::Missing { name } => write!(f, "there is no filter {name}"),
            Self::Exists { name } => write!(f, "filter {name} already exists"),
            Self::Shard { key, what } => write!(f, "shard {key} is not ready: {what}"),
            Self::Full { key } => write!(f, "shard {key} is at capacity"),
            Self::Building { expires_ms } => {
                write!(f, "another client is building; if it is dead, try again in {expires_ms} ms")
            }
            Self::Overtaken { generation } => {
                write!(f, "another client took over the build of generation {generation}")
            }
            Self::Vanished { name, generation } => {
                write!(f, "{name} was evicted, lost or deleted while its generation {generation} was built")
            }
            Self::Unsteady { attempts } => {
                write!(f, "filter was replaced during each of {attempts} attempts; giving up")
            }
            Self::Randomness => f.write_str("the operating system returned no random numbers"),
            Self::Unready { name, what } => write!(f, "{name} is not ready: {what}"),
            Self::Taken { name } => write!(f, "{name} already exists"),
            Self::Config { name, cause } => write!(f, "{name}: {cause}"),
            Self::Changing { name, tries } => {
                write!(f, "the config of {name} changed while it was used, {tries} times in a row")
            }
            Self::OtherLayout { wanted, why } => write!(f, "the filter does not have {wanted} layout: {why}"),
            Self::Stopped => f.write_str("stopped before the end"),
            Self::Unbuildable(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for RemoteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect { cause, .. } => Some(cause),
            Self::Name(error) => Some(error),
            Self::Plan(error) => Some(error),
            Self::Descriptor { cause, .. } => Some(cause),
            Self::Config { cause, .. } => Some(cause),
            Self::Unbuildable(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<BuildError> for RemoteError {
    fn from(cause: BuildError) -> Self {
        Self::Unbuildable(cause)
    }
}

impl From<NameError> for RemoteError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<PlanError> for RemoteError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
