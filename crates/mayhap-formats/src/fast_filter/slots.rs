//! Slots as other programs store them: consecutive, little-endian.

use std::io::{self, Write};

use mayhap::internals::Lines;
use mayhap::{DecodeError, Fingerprint};

use crate::cursor::Cursor;

/// The length of the extra bytes after the slots of C's 16-bit binary fuse filters.
pub(super) const C_EXTRA_BYTES: u64 = 4;

/// Returns the width of `slots` slots that take this many bytes. No two widths take the same number.
pub(super) fn width_of(bytes: u64, slots: u64, c_fuse: bool) -> Option<u32> {
    let extra = |width: u32| if c_fuse && width == 16 { C_EXTRA_BYTES } else { 0 };
    [8, 16, 32].into_iter().find(|&width| {
        let exactly = slots * u64::from(width / 8);
        bytes == exactly || bytes == exactly + extra(width)
    })
}

/// Reads all slots. Only C's extra bytes may follow.
pub(super) fn read_slots<F: Fingerprint>(
    mut cursor: Cursor<'_>,
    slots: u64,
    c_fuse: bool,
) -> Result<Lines, DecodeError> {
    if let Some(width) = width_of(cursor.left() as u64, slots, c_fuse).filter(|&width| width != F::BITS) {
        return Err(DecodeError::BadField { field: "fingerprint bits", got: width.into() });
    }
    let taken = cursor.take(slots * u64::from(F::BITS / 8))?;
    if c_fuse && F::BITS == 16 && cursor.left() as u64 == C_EXTRA_BYTES {
        cursor.rest();
    }
    cursor.finish()?;
    Ok(Lines::from_le_bytes(taken)?)
}

/// Writes the first `slots` slots of `lines`.
pub(super) fn write_slots<F: Fingerprint>(lines: &Lines, slots: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut left = usize::try_from(slots * u64::from(F::BITS / 8)).unwrap_or(usize::MAX);
    lines.for_each_le_bytes(|bytes| {
        let taken = left.min(bytes.len());
        left -= taken;
        out.write_all(&bytes[..taken])
    })
}

/// `Ok` if the stored number of slots is the one that follows from the other fields.
pub(super) fn check_length(got: u64, expected: u64) -> Result<(), DecodeError> {
    if got == expected { Ok(()) } else { Err(DecodeError::BadField { field: "number of slots", got }) }
}
