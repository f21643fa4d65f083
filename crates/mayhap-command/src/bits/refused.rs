//! What the commands on strings of bits refuse, in Redis's words.

use std::fmt;

use crate::refusal::Refusal;

/// Why a command on a string of bits was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BitsRefusal {
    /// Not the number of a bit.
    Offset,
    /// Neither 0 nor 1, for `SETBIT`.
    Bit,
    /// Neither 0 nor 1, for `BITPOS`.
    BitArgument,
    /// `BITOP NOT` has one source.
    NotOfMany,
    /// No such type of a bit field.
    FieldType,
    /// Neither `WRAP` nor `SAT` nor `FAIL`.
    Overflow,
    /// `BITFIELD_RO` with something that writes.
    FieldReadOnly,
    /// A negative offset, for `SETRANGE`.
    RangeOffset,
    /// Longer than a string may be.
    TooLong,
}

impl fmt::Display for BitsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset => f.write_str("ERR bit offset is not an integer or out of range"),
            Self::Bit => f.write_str("ERR bit is not an integer or out of range"),
            Self::BitArgument => f.write_str("ERR The bit argument must be 1 or 0."),
            Self::NotOfMany => f.write_str("ERR BITOP NOT must be called with a single source key."),
            Self::FieldType => f.write_str(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
            ),
            Self::Overflow => f.write_str("ERR Invalid OVERFLOW type specified"),
            Self::FieldReadOnly => f.write_str("ERR BITFIELD_RO only supports the GET subcommand"),
            Self::RangeOffset => f.write_str("ERR offset is out of range"),
            Self::TooLong => f.write_str("ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        }
    }
}

impl std::error::Error for BitsRefusal {}

impl From<BitsRefusal> for Refusal {
    fn from(refusal: BitsRefusal) -> Self {
        Self::Bits(refusal)
    }
}
