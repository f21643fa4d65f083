//! A key whose data is lost: it answers *not ready*, never *no*, until a client creates it again or deletes it.

use crate::refusal::Refusal;
use crate::run::Request;
use crate::traits::{AfterLoss, has_word};
use crate::value::Value;

/// What a key lost. The numbers are stored in files and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Lost {
    /// Its whole value.
    Value = 1,
    /// Changes to its value: items may be missing.
    Changes = 2,
    /// It is unknown whether the key existed.
    Unknown = 3,
}

impl Lost {
    /// Returns the loss with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Value, Self::Changes, Self::Unknown].into_iter().find(|lost| *lost as u8 == number)
    }

    /// A short description for lists.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Value => "what it held is lost",
            Self::Changes => "changes to it are lost",
            Self::Unknown => "it may be lost",
        }
    }

    /// May `request` run on a key with this loss? Only if it creates the key again.
    ///
    /// # Errors
    /// [`Refusal::Lost`].
    pub fn admit(self, request: &Request<'_>) -> Result<(), Refusal> {
        match request.command.traits.after_loss {
            AfterLoss::Creates => Ok(()),
            AfterLoss::CreatesUnless { word, from } if !has_word(request.words, from, &[word]) => Ok(()),
            AfterLoss::CreatesUnless { .. } | AfterLoss::Refused => Err(Refusal::Lost(self)),
        }
    }
}

impl Value {
    /// Returns the loss if no other data is left.
    #[must_use]
    pub const fn lost(&self) -> Option<Lost> {
        match self {
            Self::Lost(lost) => Some(*lost),
            _ => None,
        }
    }

    /// Records that this value replaces lost data. If it is abandoned before a generation of it answers, the loss is back.
    pub fn replaces(&mut self, lost: Lost) {
        if let Self::Filter(holder) = self {
            holder.replaces(lost);
        }
    }
}
