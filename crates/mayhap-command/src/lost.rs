//! A name whose data is gone: it answers *not ready*, never *no*, until a client makes it again or deletes it.

use crate::refusal::Refusal;
use crate::run::Request;
use crate::value::Value;

/// What a name lost. The numbers are in files, and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Lost {
    /// All that it held.
    Value = 1,
    /// Changes to what it held: items may be missing in it.
    Changes = 2,
    /// It is not known whether there was such a name.
    Unknown = 3,
}

impl Lost {
    /// The loss with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Value, Self::Changes, Self::Unknown].into_iter().find(|lost| *lost as u8 == number)
    }

    /// In a few words, for lists.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Value => "what it held is lost",
            Self::Changes => "changes to it are lost",
            Self::Unknown => "it may be lost",
        }
    }

    /// May `request` run on a name that lost this? It may if it makes the name again.
    ///
    /// # Errors
    /// [`Refusal::Lost`].
    pub fn admit(self, request: &Request<'_>) -> Result<(), Refusal> {
        match request.command.name {
            "bf.reserve" | "bf.loadchunk" | "cf.reserve" | "cf.loadchunk" | "mf.reserve" | "mf.load"
            | "mf.build" => Ok(()),
            // What it held before cannot be answered.
            "set" if !request.words.iter().skip(3).any(|word| word.eq_ignore_ascii_case(b"get")) => Ok(()),
            _ => Err(Refusal::Lost(self)),
        }
    }
}

impl Value {
    /// What was lost, if this is all that is left.
    #[must_use]
    pub const fn lost(&self) -> Option<Lost> {
        match self {
            Self::Lost(lost) => Some(*lost),
            _ => None,
        }
    }

    /// It took the place of what was lost. As long as no generation of it serves, giving it up brings the loss back.
    pub fn replaces(&mut self, lost: Lost) {
        if let Self::Filter(holder) = self {
            holder.replaces(lost);
        }
    }
}
