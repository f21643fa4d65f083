//! Values as the bytes of a snapshot: `.mayhap` encodings, which are written without a copy in between.

use std::fmt;
use std::io::{self, Write};

use mayhap::codec::{self, DecodeError};
use mayhap::{AtomicScalableBloom, ScalableBloom, ScalableCuckoo};

use crate::bits::Text;
use crate::context::Context;
use crate::mf::Holder;
use crate::refusal::Refusal;
use crate::value::Value;

/// What the bytes of a stored value are. The numbers are in files, and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Form {
    /// A filter of the `BF.*` family.
    Bloom = 1,
    /// A filter of the `CF.*` family.
    Cuckoo = 2,
    /// A filter of the `MF.*` family: its generation (u32) and when that was made (u64) in front of it.
    Filter = 3,
    /// A string: its bytes.
    Text = 4,
    /// A filter of the `MF.*` family that is still the list of its first items, with the same in front of it.
    Listed = 5,
}

impl Form {
    /// The form with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Bloom, Self::Cuckoo, Self::Filter, Self::Text, Self::Listed];
        all.into_iter().find(|form| *form as u8 == number)
    }
}

impl Value {
    /// What its bytes are; nothing for a filter that is not all there, which is never stored.
    #[must_use]
    pub fn form(&self) -> Option<Form> {
        match self {
            Self::Bloom(_) => Some(Form::Bloom),
            Self::Cuckoo(_) => Some(Form::Cuckoo),
            Self::Filter(holder) if holder.served_as_list() => Some(Form::Listed),
            Self::Filter(holder) => holder.is_ready().then_some(Form::Filter),
            Self::Text(_) => Some(Form::Text),
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) => None,
        }
    }

    /// Writes its bytes. It is held for oneself, so that its counts are those of its bits; nothing changes.
    ///
    /// # Errors
    /// Whatever `out` answers; [`io::ErrorKind::InvalidInput`] for a value without a [`form`](Self::form), and for memory that
    /// `context` refuses where a copy is needed.
    pub fn store(&mut self, out: &mut dyn Write, context: &Context<'_>) -> io::Result<()> {
        let refused = |refusal: Refusal| io::Error::new(io::ErrorKind::InvalidInput, refusal);
        match self {
            Self::Bloom(filter) => codec::encode_into::<ScalableBloom>(filter.get_mut(), out),
            Self::Cuckoo(filter) => codec::encode_into::<ScalableCuckoo>(filter, out),
            Self::Filter(holder) => {
                let (generation, created_ms) = holder.history();
                out.write_all(&generation.to_le_bytes())?;
                out.write_all(&created_ms.to_le_bytes())?;
                match holder.store_list(out) {
                    Some(written) => written,
                    None => out.write_all(&holder.encode(context).map_err(refused)?),
                }
            }
            Self::Text(text) => out.write_all(text.bytes()),
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The value in bytes of this form. Takes no more memory than in proportion to them.
    ///
    /// # Errors
    /// [`StoredError`] for anything but what [`store`](Self::store) wrote.
    pub fn load(form: Form, bytes: &[u8], context: &Context<'_>) -> Result<Self, StoredError> {
        Ok(match form {
            Form::Bloom => Self::Bloom(Box::new(AtomicScalableBloom::from(ScalableBloom::decode(bytes)?))),
            Form::Cuckoo => Self::Cuckoo(Box::new(ScalableCuckoo::decode(bytes)?)),
            Form::Filter | Form::Listed => {
                let too_short = DecodeError::TooShort { need: 12, got: bytes.len() as u64 };
                let Some((generation, rest)) = bytes.split_first_chunk() else {
                    return Err(too_short.into());
                };
                let Some((created_ms, rest)) = rest.split_first_chunk() else { return Err(too_short.into()) };
                let history = (u32::from_le_bytes(*generation), u64::from_le_bytes(*created_ms));
                let holder = match form {
                    Form::Listed => Holder::load_list(rest, context)?,
                    _ => Holder::decode(rest, context)?,
                };
                Self::Filter(Box::new(holder.with_history(history)))
            }
            Form::Text => Self::Text(Box::new(Text::new(bytes, context)?)),
        })
    }
}

/// Why a stored value could not be read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StoredError {
    /// The bytes are not those of a filter.
    Decode(DecodeError),
    /// It is refused as a client would be refused.
    Refused(Refusal),
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for StoredError {}

impl From<DecodeError> for StoredError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<Refusal> for StoredError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
