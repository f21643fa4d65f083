//! What can go wrong with a filter on a remote server.

use std::fmt;
use std::time::Duration;

use mayhap::BuildError;
use mayhap::codec::redisson::ConfigError;
use redis::{RedisError, Value};

use crate::descriptor::DescriptorError;
use crate::name::NameError;
use crate::plan::PlanError;

/// Why a remote server did not give what it was asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RemoteError {
    /// Not the address of a server.
    Address {
        /// Why not.
        what: String,
    },
    /// A server is not there, or does not let us in.
    Connect {
        /// Its address, without a password.
        address: String,
        /// What the client library said.
        cause: RedisError,
    },
    /// A server answered with an error.
    Refused {
        /// Its first word, such as `ERR` or `WRONGTYPE`.
        code: String,
        /// The rest of it.
        text: String,
    },
    /// A server answered with something that this command never gives.
    Reply {
        /// What was to be expected.
        expected: &'static str,
        /// What came, shortened.
        got: String,
    },
    /// Nobody answered in time, however often they were asked.
    Patience {
        /// How long that was tried.
        waited: Duration,
        /// What the last try ended with.
        last: String,
    },
    /// A server is a replica of another, and the latest is to be known, or something is to be changed.
    Replica {
        /// Its address, without a password.
        address: String,
    },
    /// Something may have been done or not, and may not be done twice.
    Unsure {
        /// Why nobody knows.
        last: String,
    },
    /// A bitmap, or what says how to read it, is not there or not complete.
    Unready {
        /// The name of the filter.
        name: String,
        /// What is missing.
        what: &'static str,
    },
    /// There is something of this name already.
    Taken {
        /// The name.
        name: String,
    },
    /// What Redisson keeps beside a bitmap does not say how to read it.
    Config {
        /// The key it is kept at.
        name: String,
        /// What is wrong with it.
        cause: ConfigError,
    },
    /// Every time the config of a filter was read, it was another one by the time it was used.
    Changing {
        /// The name of the filter.
        name: String,
        /// How often it was read.
        tries: u32,
    },
    /// A filter is not of the layout that it has to be of here.
    OtherLayout {
        /// Whose layout that is.
        wanted: &'static str,
        /// What is different.
        why: String,
    },
    /// Whoever watched wanted no more of it.
    Stopped,
    /// A filter cannot be of these measurements.
    Unbuildable(BuildError),
    /// A filter cannot be called so.
    Name(NameError),
    /// A filter cannot be made of these numbers.
    Plan(PlanError),
    /// What has the filter's name is no filter of ours.
    Descriptor {
        /// The filter's name.
        name: String,
        /// Why not.
        cause: DescriptorError,
    },
    /// There is no filter of this name.
    Missing {
        /// The name.
        name: String,
    },
    /// There is a filter of this name already.
    Exists {
        /// The name.
        name: String,
    },
    /// A shard is missing, not complete, or something else.
    Shard {
        /// Its key.
        key: String,
        /// What is wrong with it.
        what: String,
    },
    /// A shard has as many items as it was made for.
    Full {
        /// Its key.
        key: String,
    },
    /// Somebody else is building this filter.
    Building {
        /// In how many milliseconds it may be tried again, if that one is dead.
        expires_ms: u64,
    },
    /// Somebody else took over the build, and this one is nothing any more.
    Overtaken {
        /// The generation that was being built.
        generation: u64,
    },
    /// What says where the filter is was removed while the next generation was built: evicted, lost with its server, or
    /// deleted.
    Vanished {
        /// The filter's name.
        name: String,
        /// The generation that was being built.
        generation: u64,
    },
    /// The filter was changed again and again while it was asked.
    Unsteady {
        /// How often it was looked at.
        looks: u32,
    },
    /// The system gives no random numbers.
    Randomness,
}

impl RemoteError {
    /// The error of a reply that is of another form than the command gives.
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

    /// The error reply of a server, by its first word.
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
            Self::Address { what } => write!(f, "not the address of a server: {what}"),
            Self::Connect { address, cause } => write!(f, "cannot connect to {address}: {cause}"),
            Self::Refused { code, text } if text.is_empty() => write!(f, "the server refused: {code}"),
            Self::Refused { code, text } => write!(f, "the server refused: {code} {text}"),
            Self::Reply { expected, got } => write!(f, "the server answered {got}, not {expected}"),
            Self::Patience { waited, last } => {
                write!(f, "no answer in {:.1} s; the last try: {last}", waited.as_secs_f64())
            }
            Self::Replica { address } => {
                write!(
                    f,
                    "{address} is a replica, which may not have heard of the latest: its master is to be asked"
                )
            }
            Self::Unsure { last } => {
                write!(f, "nobody knows whether it was done, and it may not be done twice: {last}")
            }
            Self::Name(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Descriptor { name, cause } => write!(f, "{name} is no filter that can be used: {cause}"),
            Self::Missing { name } => write!(f, "there is no filter {name}"),
            Self::Exists { name } => write!(f, "there is a filter {name} already"),
            Self::Shard { key, what } => write!(f, "shard {key} is not ready: {what}"),
            Self::Full { key } => write!(f, "shard {key} has as many items as it was made for"),
            Self::Building { expires_ms } => {
                write!(f, "somebody else is building; if that one is dead, try again in {expires_ms} ms")
            }
            Self::Overtaken { generation } => {
                write!(f, "somebody else took over the build of generation {generation}")
            }
            Self::Vanished { name, generation } => {
                write!(f, "{name} was evicted, lost or deleted while its generation {generation} was built")
            }
            Self::Unsteady { looks } => write!(f, "the filter was another at each of {looks} looks"),
            Self::Randomness => f.write_str("the system gives no random numbers"),
            Self::Unready { name, what } => write!(f, "{name} is not ready: {what}"),
            Self::Taken { name } => write!(f, "{name} is there already"),
            Self::Config { name, cause } => write!(f, "{name}: {cause}"),
            Self::Changing { name, tries } => {
                write!(f, "the config of {name} changed while it was used, {tries} times in a row")
            }
            Self::OtherLayout { wanted, why } => write!(f, "the filter is not of {wanted} layout: {why}"),
            Self::Stopped => f.write_str("stopped on the way"),
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
