//! Thrift's compact protocol, as far as Parquet's footers and filter headers need it: reading, every length checked.
//!
//! ```text
//! structure  field* 00                 field   delta << 4 | type        or, with delta 0: then the number of the field, zigzag
//! list       size << 4 | type, values          size 15: then the size as a varint
//! map        size, key type << 4 | value type, keys and values in turn; an empty one is only its size
//! numbers    varint of the zigzag form (0, -1, 1, -2 …)        text, bytes    length, bytes
//! ```
//!
//! Unknown fields are skipped. Every value takes at least a byte, so the work is bounded by the input length; nesting has a limit.

use mayhap::DecodeError;

use crate::cursor::Cursor;

/// The deepest nesting of structures, lists and maps. Parquet's own needs seven.
const MAX_DEPTH: u32 = 32;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
    Uuid,
}

impl Type {
    fn from_number(number: u8) -> Result<Self, DecodeError> {
        Ok(match number {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return Err(DecodeError::BadField { field: "thrift type", got: number.into() }),
        })
    }
}

/// A field whose value comes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) id: i16,
    pub(super) kind: Type,
}

impl Field {
    /// `Ok` if the value is of this type.
    fn expect(self, kind: Type) -> Result<(), DecodeError> {
        if self.kind == kind {
            return Ok(());
        }
        Err(DecodeError::BadField { field: "thrift type", got: self.kind as u64 + 1 })
    }
}

/// Bytes in the compact protocol, read value by value.
#[derive(Clone, Debug)]
pub(super) struct Thrift<'a> {
    cursor: Cursor<'a>,
    depth: u32,
}

impl<'a> Thrift<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(bytes), depth: 0 }
    }

    /// The position.
    pub(super) const fn position(&self) -> usize {
        self.cursor.position()
    }

    /// Reads a structure: `each` is called with every field and reads its value, or [skips](Self::skip) it.
    pub(super) fn structure(
        &mut self,
        mut each: impl FnMut(&mut Self, Field) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.nested(|inside| {
            let mut last = 0_i16;
            loop {
                let head = inside.cursor.u8()?;
                if head == 0 {
                    return Ok(());
                }
                let id = match i16::from(head >> 4) {
                    0 => inside.integer()?,
                    delta => i64::from(last) + i64::from(delta),
                };
                last = i16::try_from(id)
                    .map_err(|_| DecodeError::BadField { field: "thrift field number", got: id as u64 })?;
                each(inside, Field { id: last, kind: Type::from_number(head & 15)? })?;
            }
        })
    }

    /// Reads a list of structures: `each` is called with the index and reads one structure.
    pub(super) fn structures(
        &mut self,
        field: Field,
        mut each: impl FnMut(&mut Self, u64) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        field.expect(Type::List)?;
        self.elements(Type::Struct, |inside, index| each(inside, index))
    }

    /// Reads a list of texts or byte strings: `each` is called with one of them and its index.
    pub(super) fn binaries(
        &mut self,
        field: Field,
        mut each: impl FnMut(&'a [u8], u64) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        field.expect(Type::List)?;
        self.elements(Type::Binary, |inside, index| each(inside.bytes()?, index))
    }

    fn elements(
        &mut self,
        expected: Type,
        mut each: impl FnMut(&mut Self, u64) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.nested(|inside| {
            let (size, kind) = inside.list_head()?;
            // Some writers omit the type of an empty list.
            if size > 0 && kind != expected as u8 + 1 {
                return Err(DecodeError::BadField { field: "thrift type", got: kind.into() });
            }
            (0..size).try_for_each(|index| each(inside, index))
        })
    }

    /// Reads a structure that is the value of a field.
    pub(super) fn structure_of(
        &mut self,
        field: Field,
        each: impl FnMut(&mut Self, Field) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        field.expect(Type::Struct)?;
        self.structure(each)
    }

    /// Reads a union, in which exactly one member is set. Returns the number of that member; `member` reads or skips its value.
    pub(super) fn union_of(
        &mut self,
        field: Field,
        name: &'static str,
        mut member: impl FnMut(&mut Self, Field) -> Result<(), DecodeError>,
    ) -> Result<i16, DecodeError> {
        let mut found = None;
        self.structure_of(field, |inside, field| {
            if found.replace(field.id).is_some() {
                return Err(DecodeError::BadField { field: name, got: field.id as u64 });
            }
            member(inside, field)
        })?;
        found.ok_or(DecodeError::BadField { field: name, got: 0 })
    }

    pub(super) fn i32(&mut self, field: Field) -> Result<i32, DecodeError> {
        field.expect(Type::I32)?;
        let number = self.integer()?;
        i32::try_from(number)
            .map_err(|_| DecodeError::BadField { field: "32-bit number", got: number as u64 })
    }

    pub(super) fn i64(&mut self, field: Field) -> Result<i64, DecodeError> {
        field.expect(Type::I64)?;
        self.integer()
    }

    pub(super) fn binary(&mut self, field: Field) -> Result<&'a [u8], DecodeError> {
        field.expect(Type::Binary)?;
        self.bytes()
    }

    /// Skips a value that is not needed.
    pub(super) fn skip(&mut self, field: Field) -> Result<(), DecodeError> {
        match field.kind {
            // In a field, a boolean's value is part of its type.
            Type::True | Type::False => Ok(()),
            kind => self.skip_value(kind),
        }
    }

    fn skip_value(&mut self, kind: Type) -> Result<(), DecodeError> {
        match kind {
            Type::True | Type::False | Type::Byte => self.cursor.take(1).map(drop),
            Type::I16 | Type::I32 | Type::I64 => self.varint().map(drop),
            Type::Double => self.cursor.take(8).map(drop),
            Type::Uuid => self.cursor.take(16).map(drop),
            Type::Binary => self.bytes().map(drop),
            Type::Struct => self.structure(Self::skip),
            Type::List | Type::Set => self.nested(|inside| match inside.list_head()? {
                (0, _) => Ok(()),
                (size, kind) => {
                    let kind = Type::from_number(kind)?;
                    (0..size).try_for_each(|_| inside.skip_value(kind))
                }
            }),
            Type::Map => self.nested(|inside| {
                let size = inside.size()?;
                if size == 0 {
                    return Ok(());
                }
                let types = inside.cursor.u8()?;
                let (key, value) = (Type::from_number(types >> 4)?, Type::from_number(types & 15)?);
                (0..size).try_for_each(|_| {
                    inside.skip_value(key)?;
                    inside.skip_value(value)
                })
            }),
        }
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(DecodeError::BadField { field: "thrift nesting", got: u64::from(MAX_DEPTH) + 1 });
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Returns the number of elements of a list, and the number of their type.
    fn list_head(&mut self) -> Result<(u64, u8), DecodeError> {
        let head = self.cursor.u8()?;
        let size = match head >> 4 {
            15 => self.size()?,
            size => self.at_most_what_is_left(size.into())?,
        };
        Ok((size, head & 15))
    }

    fn size(&mut self) -> Result<u64, DecodeError> {
        let size = self.varint()?;
        self.at_most_what_is_left(size)
    }

    /// Every element takes at least one byte.
    fn at_most_what_is_left(&self, size: u64) -> Result<u64, DecodeError> {
        let (at, left) = (self.cursor.position() as u64, self.cursor.left() as u64);
        if size > left {
            return Err(DecodeError::TooShort { need: at.saturating_add(size), got: at + left });
        }
        Ok(size)
    }

    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.varint()?;
        self.cursor.take(length)
    }

    fn integer(&mut self) -> Result<i64, DecodeError> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.cursor.u8()?;
            if shift == 63 && byte > 1 {
                return Err(DecodeError::BadField { field: "varint", got: byte.into() });
            }
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        Ok(number)
    }
}

/// A number as a varint of its zigzag form.
pub(super) fn push_integer(number: i64, out: &mut Vec<u8>) {
    let mut zigzag = (number << 1 ^ number >> 63).cast_unsigned();
    while zigzag >= 128 {
        out.push(zigzag as u8 | 128);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: Type) -> Field {
        Field { id: 1, kind }
    }

    #[test]
    fn numbers_come_back_as_they_were_written() {
        for number in [0, -1, 1, 63, -64, 64, 1 << 31, -(1 << 31), i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            push_integer(number, &mut bytes);
            let mut thrift = Thrift::new(&bytes);
            assert_eq!(thrift.i64(field(Type::I64)), Ok(number));
            assert_eq!(thrift.position(), bytes.len());
            assert_eq!(Thrift::new(&bytes).i32(field(Type::I32)).is_ok(), i32::try_from(number).is_ok());
        }
        assert!(Thrift::new(&[0xff; 11]).i64(field(Type::I64)).is_err(), "longer than any number");
        assert!(Thrift::new(&[0x80; 9]).i64(field(Type::I64)).is_err(), "cut");
        assert!(Thrift::new(&[2]).i64(field(Type::I32)).is_err(), "another type");
    }

    /// One field of every type; the test looks at the last.
    #[test]
    fn unneeded_values_are_skipped() {
        let bytes = [
            &[0x11, 0x12, 0x13, 7, 0x14, 3, 0x15, 0x80, 1, 0x16, 4][..],
            &[0x17, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x18, 2, b'h', b'i'],
            &[0x19, 0x21, 1, 2, 0x1a, 0xf5, 2, 2, 4, 0x1b, 0, 0x1b, 1, 0x85, 1, b'x', 8],
            &[0x1c, 0x15, 2, 0, 0x1d, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
            &[0x08, 200, 1, 1, b'!', 0],
        ]
        .concat();
        let (mut seen, mut text) = (0, &[][..]);
        let mut thrift = Thrift::new(&bytes);
        thrift
            .structure(|inside, field| {
                seen += 1;
                if field.id == 100 {
                    text = inside.binary(field)?;
                    return Ok(());
                }
                inside.skip(field)
            })
            .unwrap();
        assert_eq!((seen, text, thrift.position()), (15, &b"!"[..], bytes.len()));
        for cut in 0..bytes.len() {
            assert!(Thrift::new(&bytes[..cut]).structure(Thrift::skip).is_err(), "cut to {cut}");
        }
    }

    #[test]
    fn nesting_and_sizes_are_bounded() {
        let deep = [0x1c; 1000];
        let refusal = Thrift::new(&deep).structure(Thrift::skip).unwrap_err();
        assert_eq!(refusal, DecodeError::BadField { field: "thrift nesting", got: 33 });
        let lists = [&[0x19][..], &[0x19; 1000]].concat();
        assert!(Thrift::new(&lists).structure(Thrift::skip).is_err());
        // A list of 2^56 elements, a text of as many bytes.
        for head in [[0x19, 0xf3], [0x18, 0xff]] {
            let long = [&head[..], &[0x80; 8], &[1]].concat();
            let refusal = Thrift::new(&long).structure(Thrift::skip).unwrap_err();
            assert!(matches!(refusal, DecodeError::TooShort { .. }), "{refusal}");
        }
        assert!(Thrift::new(&[0x1e, 0]).structure(Thrift::skip).is_err(), "type 14");
        assert!(
            Thrift::new(&[0x05, 0xfe, 0xff, 0x03, 2, 0x15, 2, 0]).structure(Thrift::skip).is_err(),
            "past 2^15"
        );
    }
}
