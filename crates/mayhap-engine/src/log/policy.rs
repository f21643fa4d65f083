//! The fsync policy.

use std::fmt;
use std::str::FromStr;

/// When records are synced, which makes them safe from a power loss. With every policy, committed records
/// survive the end of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Before replies leave.
    Always = 0,
    /// Within a second.
    #[default]
    EverySec = 1,
    /// When the operating system writes them.
    No = 2,
}

impl Policy {
    pub(super) const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Always,
            1 => Self::EverySec,
            _ => Self::No,
        }
    }

    /// Its name in settings, as in Redis.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySec => "everysec",
            Self::No => "no",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be one of always, everysec, no")
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        [Self::Always, Self::EverySec, Self::No]
            .into_iter()
            .find(|policy| name.eq_ignore_ascii_case(policy.name()))
            .ok_or(UnknownPolicy)
    }
}
