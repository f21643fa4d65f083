//! The fields of a module's value, from a host's callbacks or from the bytes of a dump.
//!
//! ```text
//! length   00nnnnnn │ 01nnnnnn n8 │ 10000000 n32 │ 10000001 n64      big-endian
//! string   length, bytes │ 11000000 i8 │ 11000001 i16 │ 11000010 i32: decimal digits │ 11000011 packed, length, LZF
//! field    2 length: an unsigned │ 4, 8 bytes: a double │ 5 string │ 0: the end
//! ```

use std::borrow::Cow;

use mayhap::DecodeError;

use super::lzf;
use crate::cursor::Cursor;

/// A source of the fields of a value, in order: the bytes of a dump, or the callbacks of a host (`RedisModule_LoadUnsigned` and similar).
pub trait LoadFields<'a> {
    /// Reads the next field, a number.
    ///
    /// # Errors
    /// [`DecodeError`] if there is no field left, or the field has another type.
    fn unsigned(&mut self) -> Result<u64, DecodeError>;

    /// Reads the next field, a double.
    ///
    /// # Errors
    /// [`DecodeError`] if there is no field left, or the field has another type.
    fn double(&mut self) -> Result<f64, DecodeError>;

    /// Reads the next field, a string.
    ///
    /// # Errors
    /// [`DecodeError`] if there is no field left, or the field has another type.
    fn string(&mut self) -> Result<Cow<'a, [u8]>, DecodeError>;
}

/// A destination for the fields of a value, in order: the bytes of a dump, or the callbacks of a host.
pub trait SaveFields {
    /// Writes a number.
    fn unsigned(&mut self, number: u64);

    /// Writes a double.
    fn double(&mut self, number: f64);

    /// Writes a string.
    fn string(&mut self, bytes: &[u8]);
}

const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

const INT_8: u8 = 0;
const INT_16: u8 = 1;
const INT_32: u8 = 2;
const LZF: u8 = 3;

/// Fields in the bytes of a dump.
#[derive(Debug)]
pub(super) struct DumpFields<'a> {
    cursor: Cursor<'a>,
    /// The largest uncompressed length of a compressed string.
    limit: u64,
}

/// A length, or the special encoding in its place.
enum Length {
    Plain(u64),
    Special(u8),
}

impl<'a> DumpFields<'a> {
    /// Reads fields from `bytes`. Compressed strings are limited to `limit` bytes uncompressed.
    pub(super) const fn new(bytes: &'a [u8], limit: u64) -> Self {
        Self { cursor: Cursor::new(bytes), limit }
    }

    fn any_length(&mut self) -> Result<Length, DecodeError> {
        let first = self.cursor.u8()?;
        Ok(match (first >> 6, first & 63) {
            (0, low) => Length::Plain(low.into()),
            (1, high) => Length::Plain(u64::from(high) << 8 | u64::from(self.cursor.u8()?)),
            (2, 0) => Length::Plain(self.cursor.u32_be()?.into()),
            (2, 1) => Length::Plain(self.cursor.u64_be()?),
            (3, special) => Length::Special(special),
            _ => return Err(DecodeError::BadField { field: "length", got: first.into() }),
        })
    }

    pub(super) fn length(&mut self) -> Result<u64, DecodeError> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Special(got) => {
                Err(DecodeError::BadField { field: "length", got: 0xc0 | u64::from(got) })
            }
        }
    }

    fn expect(&mut self, opcode: u64, field: &'static str) -> Result<(), DecodeError> {
        match self.length()? {
            got if got == opcode => Ok(()),
            got => Err(DecodeError::BadField { field, got }),
        }
    }

    /// Reads a string that has no opcode in front of it.
    pub(super) fn raw_string(&mut self) -> Result<Cow<'a, [u8]>, DecodeError> {
        let digits = |number: i32| Ok(Cow::Owned(number.to_string().into_bytes()));
        match self.any_length()? {
            Length::Plain(length) => Ok(Cow::Borrowed(self.cursor.take(length)?)),
            Length::Special(INT_8) => digits(i8::from_le_bytes(self.cursor.array()?).into()),
            Length::Special(INT_16) => digits(i16::from_le_bytes(self.cursor.array()?).into()),
            Length::Special(INT_32) => digits(i32::from_le_bytes(self.cursor.array()?)),
            Length::Special(LZF) => {
                let (packed, length) = (self.length()?, self.length()?);
                lzf::decompress(self.cursor.take(packed)?, length, self.limit).map(Cow::Owned)
            }
            Length::Special(got) => {
                Err(DecodeError::BadField { field: "string", got: 0xc0 | u64::from(got) })
            }
        }
    }

    /// `Ok` if the bytes end here.
    pub(super) fn end(self) -> Result<(), DecodeError> {
        self.cursor.finish()
    }

    /// `Ok` if both the value and the bytes end here.
    pub(super) fn finish(mut self) -> Result<(), DecodeError> {
        self.expect(END, "end of the value")?;
        self.cursor.finish()
    }
}

impl<'a> LoadFields<'a> for DumpFields<'a> {
    fn unsigned(&mut self) -> Result<u64, DecodeError> {
        self.expect(UNSIGNED, "field type (2 is a number)")?;
        self.length()
    }

    fn double(&mut self) -> Result<f64, DecodeError> {
        self.expect(DOUBLE, "field type (4 is a double)")?;
        self.cursor.f64_le()
    }

    fn string(&mut self) -> Result<Cow<'a, [u8]>, DecodeError> {
        self.expect(STRING, "field type (5 is a string)")?;
        self.raw_string()
    }
}

/// The bytes of a dump being written. Strings are written uncompressed; the server compresses them when it saves, if it is configured to.
impl SaveFields for Vec<u8> {
    fn unsigned(&mut self, number: u64) {
        put_length(self, UNSIGNED);
        put_length(self, number);
    }

    fn double(&mut self, number: f64) {
        put_length(self, DOUBLE);
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        put_length(self, STRING);
        put_length(self, bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Writes a length in as few bytes as possible.
pub(super) fn put_length(out: &mut Vec<u8>, length: u64) {
    match (u8::try_from(length), u32::try_from(length)) {
        (Ok(low @ 0..64), _) => out.push(low),
        (_, Ok(short @ 0..16_384)) => out.extend_from_slice(&(0x4000 | short as u16).to_be_bytes()),
        (_, Ok(wide)) => {
            out.push(0x80);
            out.extend_from_slice(&wide.to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

pub(super) fn put_end(out: &mut Vec<u8>) {
    put_length(out, END);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_their_shortest_form_and_read_back() {
        for (length, bytes) in [
            (0, &[0][..]),
            (63, &[63]),
            (64, &[0x40, 64]),
            (16_383, &[0x7f, 0xff]),
            (16_384, &[0x80, 0, 0, 0x40, 0]),
            (u32::MAX.into(), &[0x80, 255, 255, 255, 255]),
            (1 << 32, &[0x81, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX, &[0x81, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            let mut out = Vec::new();
            put_length(&mut out, length);
            assert_eq!(out, bytes);
            assert_eq!(DumpFields::new(bytes, u64::MAX).length(), Ok(length));
            assert!(DumpFields::new(&bytes[..bytes.len() - 1], u64::MAX).length().is_err());
        }
        assert!(DumpFields::new(&[0x82], u64::MAX).length().is_err());
        assert!(DumpFields::new(&[0xc0], u64::MAX).length().is_err());
    }

    #[test]
    fn errors_name_the_expected_field_type() {
        let mut out = Vec::new();
        out.unsigned(7);
        out.double(0.5);
        out.string(b"ada");
        put_end(&mut out);
        let mut fields = DumpFields::new(&out, u64::MAX);
        assert_eq!((fields.unsigned(), fields.double()), (Ok(7), Ok(0.5)));
        assert_eq!(fields.string().unwrap().as_ref(), b"ada");
        assert_eq!(fields.finish(), Ok(()));
        let refused = DumpFields::new(&out, u64::MAX).double().unwrap_err();
        assert_eq!(refused.to_string(), "header field field type (4 is a double) cannot be 2");
        assert!(DumpFields::new(&out[..1], u64::MAX).finish().is_err());
    }
}
