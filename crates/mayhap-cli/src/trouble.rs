//! What can go wrong in the program; each is one line.

use std::{fmt, io};

use mayhap::BuildError;
use mayhap::advise::NeedsError;

/// Why the program could not do what it was asked to.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum Trouble {
    /// The command line makes no sense.
    Usage(String),
    /// The numbers make no sense together.
    Needs(NeedsError),
    /// The answer could not be written.
    Write(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => f.write_str(what),
            Self::Needs(error) => match flag(error) {
                Some(flag) => write!(f, "{flag}: {error}"),
                None => error.fmt(f),
            },
            Self::Write(error) => write!(f, "cannot write the answer: {error}"),
        }
    }
}

/// The flag whose value is at fault, where it is one.
fn flag(error: &NeedsError) -> Option<&'static str> {
    Some(match error {
        NeedsError::Build(BuildError::CapacityOutOfRange { .. }) => "--items",
        NeedsError::Build(BuildError::RateOutOfRange { .. } | BuildError::RateTooLow { .. }) => "--fpr",
        NeedsError::EmptyRange { .. } | NeedsError::MoreItemsThanRange { .. } => "--range",
        NeedsError::EmptyItems => "--item-bytes",
        NeedsError::NoMemory | NeedsError::TooLittleMemory { .. } => "--memory",
        NeedsError::NoDeletes => "--deletes",
        NeedsError::NoLookups => "--lookups",
        _ => return None,
    })
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Usage(_) => None,
            Self::Needs(error) => Some(error),
            Self::Write(error) => Some(error),
        }
    }
}

impl From<NeedsError> for Trouble {
    fn from(error: NeedsError) -> Self {
        Self::Needs(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// The first thing clap says, and its tip, without the usage text around them.
impl From<&clap::Error> for Trouble {
    fn from(error: &clap::Error) -> Self {
        let said = error.render().to_string();
        let mut paragraphs = said.split("\n\n");
        let one_line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let first = one_line(paragraphs.next().unwrap_or_default());
        let tip = paragraphs.map(one_line).find(|text| text.starts_with("tip: "));
        let tip = tip.map(|tip| format!(" ({tip})")).unwrap_or_default();
        Self::Usage(format!("{}{tip}", first.trim_start_matches("error: ")))
    }
}
