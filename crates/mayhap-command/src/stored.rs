//! Values as the bytes of a snapshot: `.mayhap` encodings, written without an intermediate copy.

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::Range;

use mayhap::codec::{self, DecodeError, Pieces};
use mayhap::{AtomicScalableBloom, Filter, ItemHash, ScalableBloom, ScalableCuckoo};
use mayhap_formats::redis_rdb::OwnType;
use mayhap_formats::{redis_bloom, redis_cuckoo};

use crate::bits::Text;
use crate::context::Context;
use crate::lost::Lost;
use crate::mf::Holder;
use crate::refusal::Refusal;
use crate::value::Value;

/// The form of a stored value. The numbers are in files and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Form {
    /// A `BF.*` filter.
    Bloom = 1,
    /// A `CF.*` filter.
    Cuckoo = 2,
    /// An `MF.*` filter, after its generation (u32) and creation time (u64).
    Filter = 3,
    /// A string: its bytes.
    Text = 4,
    /// An `MF.*` filter that is still the list of its first items, after the same two numbers.
    Listed = 5,
    /// The complete state of an `MF.*` key: also the next generation and the recipes of its filters.
    Holder = 6,
    /// A `BF.*` filter that is being loaded: the number of loaded pieces (u32), start and end of each (two u64), the filter so far.
    LoadingBloom = 7,
    /// The same for a `CF.*` filter.
    LoadingCuckoo = 8,
    /// A key whose data is lost: the kind of loss (u8).
    Lost = 9,
}

impl Form {
    /// Returns the form with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Bloom,
            Self::Cuckoo,
            Self::Filter,
            Self::Text,
            Self::Listed,
            Self::Holder,
            Self::LoadingBloom,
            Self::LoadingCuckoo,
            Self::Lost,
        ];
        all.into_iter().find(|form| *form as u8 == number)
    }

    /// May a payload of this type contain bytes of this form?
    #[must_use]
    pub const fn is_of(self, own: OwnType) -> bool {
        match own {
            OwnType::KeyedBloom => matches!(self, Self::Bloom),
            OwnType::KeyedCuckoo => matches!(self, Self::Cuckoo),
            _ => matches!(self, Self::Filter | Self::Listed | Self::Holder),
        }
    }

    /// The position in the bytes at which the encoded filter begins, or their end if there is none.
    fn filter_at(self, bytes: &[u8]) -> Result<usize, DecodeError> {
        Ok(match self {
            Self::Bloom | Self::Cuckoo => 0,
            Self::Filter => HISTORY_BYTES.min(bytes.len()),
            Self::Holder => Holder::head_bytes(bytes)?,
            Self::Text | Self::Listed | Self::LoadingBloom | Self::LoadingCuckoo | Self::Lost => bytes.len(),
        })
    }
}

const HISTORY_BYTES: usize = 12;

/// Writes the bytes of a value in pieces, while other requests use the value in between.
///
/// Requests with shared access may still insert into Bloom filters. Any other change to the value invalidates it.
#[derive(Debug)]
pub struct Copying {
    form: Form,
    /// The bytes before the pieces.
    head: Vec<u8>,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Filter(Pieces),
    /// The next byte.
    Text(usize),
}

impl Copying {
    /// The form of the bytes.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }
}

impl Value {
    /// The form of its bytes.
    #[must_use]
    pub fn form(&self) -> Form {
        match self {
            Self::Bloom(_) => Form::Bloom,
            Self::Cuckoo(_) => Form::Cuckoo,
            Self::Filter(holder) if !holder.is_plain() => Form::Holder,
            Self::Filter(holder) if holder.served_as_list() => Form::Listed,
            Self::Filter(_) => Form::Filter,
            Self::Text(_) => Form::Text,
            Self::LoadingBloom(_) => Form::LoadingBloom,
            Self::LoadingCuckoo(_) => Form::LoadingCuckoo,
            Self::Lost(_) => Form::Lost,
        }
    }

    /// Can its bytes be written in pieces?
    #[must_use]
    pub const fn has_pieces(&self) -> bool {
        !matches!(self, Self::LoadingBloom(_) | Self::LoadingCuckoo(_) | Self::Lost(_))
    }

    /// Starts to write its bytes in pieces. Needs exclusive access for a moment, so that its counts match its bits; nothing changes.
    /// `None` if the value is small: use [`store`](Self::store).
    pub fn copy_in_pieces(&mut self) -> Option<Copying> {
        let form = self.form();
        let (head, rest) = match self {
            Self::Bloom(filter) => (Vec::new(), Rest::Filter(Pieces::of(filter.get_mut()))),
            Self::Cuckoo(filter) => (Vec::new(), Rest::Filter(Pieces::of(&**filter))),
            Self::Filter(holder) => {
                let mut head = Vec::new();
                match form {
                    Form::Holder => holder.store_head(&mut head),
                    _ => head.extend_from_slice(&history(holder)),
                }
                (head, Rest::Filter(holder.served.body.pieces()?))
            }
            Self::Text(_) => (Vec::new(), Rest::Text(0)),
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) | Self::Lost(_) => return None,
        };
        Some(Copying { form, head, rest })
    }

    /// Appends the next piece, of about `most` bytes, and returns whether there are more. `None` if the value was replaced.
    pub fn next_piece(&self, copying: &mut Copying, most: usize, out: &mut Vec<u8>) -> Option<bool> {
        out.append(&mut copying.head);
        match (self, &mut copying.rest) {
            (Self::Text(text), Rest::Text(at)) => {
                let rest = text.bytes().get(*at..)?;
                let some = rest.len().min(most);
                out.extend_from_slice(&rest[..some]);
                *at += some;
                Some(some < rest.len())
            }
            (value, Rest::Filter(pieces)) => {
                let as_begun = match value {
                    Self::Bloom(filter) => pieces.next(filter.uncounted(), most, out),
                    Self::Cuckoo(filter) => pieces.next(&**filter, most, out),
                    Self::Filter(holder) => holder.served.body.next_piece(pieces, most, out),
                    _ => false,
                };
                as_begun.then_some(pieces.left() > 0)
            }
            _ => None,
        }
    }

    /// Writes its bytes. Needs exclusive access, so that its counts match its bits; nothing changes.
    ///
    /// # Errors
    /// Any error of `out`.
    pub fn store(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let form = self.form();
        match self {
            Self::Bloom(filter) => codec::encode_into::<ScalableBloom>(filter.get_mut(), out),
            Self::Cuckoo(filter) => codec::encode_into::<ScalableCuckoo>(filter, out),
            Self::Filter(holder) => {
                let mut head = Vec::new();
                match form {
                    Form::Holder => holder.store_head(&mut head),
                    _ => head.extend_from_slice(&history(holder)),
                }
                out.write_all(&head)?;
                match form {
                    Form::Listed => holder.store_list(out).unwrap_or(Ok(())),
                    // The list is in the head.
                    _ if holder.served_as_list() => Ok(()),
                    _ => holder.encode_into(out),
                }
            }
            Self::Text(text) => out.write_all(text.bytes()),
            Self::Lost(lost) => out.write_all(&[*lost as u8]),
            Self::LoadingBloom(loader) => {
                write_came(loader.came(), out)?;
                loader.filter().map_or(Ok(()), |filter| codec::encode_into(filter, out))
            }
            Self::LoadingCuckoo(loader) => {
                write_came(loader.came(), out)?;
                loader.filter().map_or(Ok(()), |filter| codec::encode_into(filter, out))
            }
        }
    }

    /// Loads a value of this form from its bytes, after [`seal`]. Needs memory in proportion to the bytes.
    ///
    /// # Errors
    /// [`StoredError`] for bytes that [`store`](Self::store) did not write.
    pub fn load(form: Form, bytes: &[u8], context: &Context<'_>) -> Result<Self, StoredError> {
        Ok(match form {
            Form::Bloom => Self::Bloom(Box::new(AtomicScalableBloom::from(ScalableBloom::decode(bytes)?))),
            Form::Cuckoo => Self::Cuckoo(Box::new(ScalableCuckoo::decode(bytes)?)),
            Form::Filter | Form::Listed => {
                let too_short = DecodeError::TooShort { need: HISTORY_BYTES as u64, got: bytes.len() as u64 };
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
            Form::Holder => Self::Filter(Box::new(Holder::load(bytes)?)),
            Form::Lost => {
                let lost = match *bytes {
                    [number] => Lost::from_number(number),
                    _ => None,
                };
                Self::Lost(lost.ok_or(BAD_LOSS)?)
            }
            Form::LoadingBloom => {
                let (came, rest) = read_came(bytes)?;
                let loader = redis_bloom::BloomLoader::resume(ScalableBloom::decode(rest)?, &came);
                Self::LoadingBloom(Box::new(loader.ok_or(BAD_PIECES)?))
            }
            Form::LoadingCuckoo => {
                let (came, rest) = read_came(bytes)?;
                let loader = redis_cuckoo::CuckooLoader::resume(ScalableCuckoo::decode(rest)?, &came);
                Self::LoadingCuckoo(Box::new(loader.ok_or(BAD_PIECES)?))
            }
        })
    }

    /// Loads a value from the next `bytes` bytes of `reader`, as [`load`](Self::load) does, or from bytes that were never [`seal`]ed. The
    /// bytes go straight into the value's memory; there is never a second copy. `None` if a value of this form must be read into memory
    /// first and loaded then.
    ///
    /// # Errors
    /// [`StoredError`]; also if `reader` fails. Some of the bytes may have been read then.
    pub fn read(
        form: Form,
        reader: &mut dyn Read,
        bytes: u64,
        sealed: bool,
        context: &Context<'_>,
    ) -> Option<Result<Self, StoredError>> {
        let too_short = DecodeError::TooShort { need: bytes, got: 0 };
        Some(match form {
            Form::Bloom => codec::read::<ScalableBloom>(reader, bytes, sealed)
                .map(|filter| Self::Bloom(Box::new(AtomicScalableBloom::from(filter))))
                .map_err(StoredError::from),
            Form::Cuckoo => codec::read(reader, bytes, sealed)
                .map(|filter| Self::Cuckoo(Box::new(filter)))
                .map_err(StoredError::from),
            Form::Filter => {
                let mut history = [0; HISTORY_BYTES];
                let rest = bytes.checked_sub(HISTORY_BYTES as u64)?;
                if reader.read_exact(&mut history).is_err() {
                    return Some(Err(too_short.into()));
                }
                let (generation, created_ms) = history.split_first_chunk()?;
                let (created_ms, _) = created_ms.split_first_chunk()?;
                let history = (u32::from_le_bytes(*generation), u64::from_le_bytes(*created_ms));
                codec::read::<Filter>(reader, rest, sealed)
                    .map(|filter| Holder::of(filter, context).with_history(history))
                    .map(|holder| Self::Filter(Box::new(holder)))
                    .map_err(StoredError::from)
            }
            Form::Text => match Text::zeroes(bytes, context) {
                Err(refusal) => Err(refusal.into()),
                Ok(mut text) => match reader.read_exact(text.bytes_mut()) {
                    Ok(()) => Ok(Self::Text(Box::new(text))),
                    Err(_) => Err(too_short.into()),
                },
            },
            Form::Listed | Form::Holder | Form::LoadingBloom | Form::LoadingCuckoo | Form::Lost => {
                return None;
            }
        })
    }

    /// Inserts items again that were new to a Bloom filter when they were logged, whatever the filter counts by now.
    pub fn put_back(&mut self, hashes: &[ItemHash]) {
        match self {
            Self::Bloom(filter) => filter.put_back(hashes),
            Self::Filter(holder) => holder.served.body.put_back(hashes),
            _ => {}
        }
    }
}

/// Completes bytes that were written in pieces, so that [`Value::load`] accepts them. The caller must have checked that they are
/// unchanged since they were written.
///
/// # Errors
/// [`DecodeError`] for any other bytes.
pub fn seal(form: Form, bytes: &mut [u8]) -> Result<(), DecodeError> {
    let at = form.filter_at(bytes)?;
    match &mut bytes[at..] {
        [] => Ok(()),
        filter => codec::seal(filter),
    }
}

const BAD_LOSS: DecodeError = DecodeError::BadField { field: "kind of loss", got: 0 };
const BAD_PIECES: DecodeError = DecodeError::BadField { field: "loaded pieces", got: 0 };

fn history(holder: &Holder) -> [u8; HISTORY_BYTES] {
    let (generation, created_ms) = holder.history();
    let mut bytes = [0; HISTORY_BYTES];
    bytes[..4].copy_from_slice(&generation.to_le_bytes());
    bytes[4..].copy_from_slice(&created_ms.to_le_bytes());
    bytes
}

fn write_came(came: &[Range<u64>], out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = u32::try_from(came.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    for piece in came {
        bytes.extend_from_slice(&piece.start.to_le_bytes());
        bytes.extend_from_slice(&piece.end.to_le_bytes());
    }
    out.write_all(&bytes)
}

fn read_came(bytes: &[u8]) -> Result<(Vec<Range<u64>>, &[u8]), DecodeError> {
    const PIECE_BYTES: usize = 16;
    let too_short = DecodeError::TooShort { need: 4, got: bytes.len() as u64 };
    let (count, rest) = bytes.split_first_chunk().ok_or(too_short)?;
    let length = (u32::from_le_bytes(*count) as usize).saturating_mul(PIECE_BYTES);
    let too_short = DecodeError::TooShort { need: length as u64, got: rest.len() as u64 };
    let (pieces, rest) = rest.split_at_checked(length).ok_or(too_short)?;
    let number = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
    let pieces = pieces.as_chunks::<PIECE_BYTES>().0.iter();
    Ok((pieces.map(|piece| number(&piece[..8])..number(&piece[8..])).collect(), rest))
}

/// Why a stored value could not be read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StoredError {
    /// The bytes are not a valid filter.
    Decode(DecodeError),
    /// It is refused, with the error that a client would get.
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
