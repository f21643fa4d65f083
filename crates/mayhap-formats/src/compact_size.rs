//! Bitcoin's variable-length number: one byte, or a marker followed by 2, 4 or 8 bytes, little-endian.

use std::io::{self, Write};

use mayhap::DecodeError;

use crate::cursor::Cursor;

/// Reads the next number, which must have its shortest form. `field` names it in errors.
pub(super) fn read(cursor: &mut Cursor<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let (number, least) = match cursor.u8()? {
        0xfd => (cursor.u16_le()?.into(), 0xfd),
        0xfe => (cursor.u32_le()?.into(), 0x1_0000),
        0xff => (cursor.u64_le()?, 0x1_0000_0000),
        short => (short.into(), 0),
    };
    if number < least {
        return Err(DecodeError::BadField { field, got: number });
    }
    Ok(number)
}

/// Writes the number in its shortest form.
pub(super) fn write(number: u64, out: &mut dyn Write) -> io::Result<()> {
    let bytes = number.to_le_bytes();
    match number {
        0..=0xfc => out.write_all(&bytes[..1]),
        0xfd..=0xffff => out.write_all(&[0xfd, bytes[0], bytes[1]]),
        0x1_0000..=0xffff_ffff => {
            out.write_all(&[0xfe])?;
            out.write_all(&bytes[..4])
        }
        _ => {
            out.write_all(&[0xff])?;
            out.write_all(&bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for number in [0, 1, 0xfc, 0xfd, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, u64::MAX] {
            let mut bytes = Vec::new();
            write(number, &mut bytes).unwrap();
            let mut cursor = Cursor::new(&bytes);
            assert_eq!((read(&mut cursor, "N"), cursor.left()), (Ok(number), 0), "{number}");
        }
        for long in [&[0xfd, 0xfc, 0][..], &[0xfe, 0xff, 0xff, 0, 0], &[0xff, 1, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(matches!(read(&mut Cursor::new(long), "N"), Err(DecodeError::BadField { .. })));
        }
        assert_eq!(read(&mut Cursor::new(&[0xfd, 1]), "N"), Err(DecodeError::TooShort { need: 3, got: 2 }));
    }
}
