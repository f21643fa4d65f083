//! The errors of the commands on bitmaps and strings, in Redis's words.

use std::fmt;

use crate::refusal::Refusal;

/// Why a command on a bitmap or a string was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BitsRefusal {
    /// The offset is not a valid bit offset.
    Offset,
    /// `SETBIT`: the value is neither 0 nor 1.
    Bit,
    /// `BITPOS`: the bit is neither 0 nor 1.
    BitArgument,
    /// `BITOP NOT` with more than one source.
    NotOfMany,
    /// An unknown type of a bit field.
    FieldType,
    /// The overflow type is not `WRAP`, `SAT` or `FAIL`.
    Overflow,
    /// `BITFIELD_RO` with an operation that writes.
    FieldReadOnly,
    /// `SETRANGE`: a negative offset.
    RangeOffset,
    /// The string would exceed the maximum length.
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
