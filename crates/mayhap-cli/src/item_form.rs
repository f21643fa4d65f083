//! How a line becomes an item: bytes for mayhap's own filters, a number for a bitmap, and for other programs' filters
//! the type that the program uses.

use std::fmt;

use mayhap::{Filter, Item, ItemEncoding, ItemValue};

/// How lines become the items of one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemForm {
    /// The bytes as they are.
    Bytes,
    /// Text, which the filter encodes.
    Text,
    /// A decimal integer of this size, signed or unsigned.
    Integer {
        /// 32 or 64.
        bits: u32,
        /// Whether negative numbers are allowed.
        signed: bool,
    },
    /// A floating-point number of 32 or 64 bits, stored as its bits.
    Float {
        /// 32 or 64.
        bits: u32,
    },
}

/// A line as an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LineItem<'a> {
    /// The bytes as they are.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A number.
    Integer {
        /// Its value.
        value: i128,
        /// The bits of its type.
        bits: u32,
    },
    /// The little-endian bytes of a floating-point number, and how many of them are used.
    Float([u8; 8], usize),
}

/// A line that is not a valid item for the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoSuchItem {
    got: String,
    form: ItemForm,
}

/// The most bytes of a line that an error message shows.
const SHOWN: usize = 60;

impl fmt::Display for NoSuchItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let want = match self.form {
            ItemForm::Bytes => "bytes".into(),
            ItemForm::Text => "text in UTF-8".into(),
            ItemForm::Integer { bits, signed: true } => format!("a signed {bits}-bit integer"),
            ItemForm::Integer { bits, signed: false } => format!("an integer from 0 to 2^{bits} - 1"),
            ItemForm::Float { .. } => "a number".into(),
        };
        write!(f, "{:?} is not {want}, which this filter requires", self.got)
    }
}

impl std::error::Error for NoSuchItem {}

impl ItemForm {
    /// The form of the items of `filter`.
    pub(crate) fn of(filter: &Filter) -> Self {
        match (filter, filter.items()) {
            (Filter::Bitmap(_), _) => Self::Integer { bits: 64, signed: false },
            (_, Some(encoding)) => Self::of_encoding(encoding),
            (_, None) => Self::Bytes,
        }
    }

    /// The form of items with this encoding.
    pub(crate) fn of_encoding(encoding: ItemEncoding) -> Self {
        match encoding {
            ItemEncoding::Utf8
            | ItemEncoding::Utf16Le
            | ItemEncoding::Utf32Le
            | ItemEncoding::Kryo5
            | ItemEncoding::Json => Self::Text,
            ItemEncoding::I32Le | ItemEncoding::Kryo5Int => Self::Integer { bits: 32, signed: true },
            ItemEncoding::I64Le | ItemEncoding::Decimal | ItemEncoding::Kryo5Long => {
                Self::Integer { bits: 64, signed: true }
            }
            ItemEncoding::U64Le => Self::Integer { bits: 64, signed: false },
            ItemEncoding::F32Le => Self::Float { bits: 32 },
            ItemEncoding::F64Le => Self::Float { bits: 64 },
            _ => Self::Bytes,
        }
    }

    /// Parses a line as an item.
    ///
    /// # Errors
    /// [`NoSuchItem`] if the line is not a valid item.
    #[inline]
    pub(crate) fn item(self, line: &[u8]) -> Result<LineItem<'_>, NoSuchItem> {
        if self == Self::Bytes {
            return Ok(LineItem::Bytes(line));
        }
        self.parse(line).ok_or_else(|| {
            let got: String = String::from_utf8_lossy(line).chars().take(SHOWN).collect();
            NoSuchItem { got, form: self }
        })
    }

    fn parse(self, line: &[u8]) -> Option<LineItem<'_>> {
        let text = std::str::from_utf8(line).ok()?;
        match self {
            Self::Bytes => Some(LineItem::Bytes(line)),
            Self::Text => Some(LineItem::Text(text)),
            Self::Integer { bits, signed } => {
                let value: i128 = text.trim().parse().ok()?;
                let fits = match (bits, signed) {
                    (32, true) => i32::try_from(value).is_ok(),
                    (_, true) => i64::try_from(value).is_ok(),
                    (_, false) => u64::try_from(value).is_ok(),
                };
                fits.then_some(LineItem::Integer { value, bits })
            }
            Self::Float { bits: 32 } => {
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&text.trim().parse::<f32>().ok()?.to_le_bytes());
                Some(LineItem::Float(bytes, 4))
            }
            Self::Float { .. } => Some(LineItem::Float(text.trim().parse::<f64>().ok()?.to_le_bytes(), 8)),
        }
    }
}

impl Item for LineItem<'_> {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Bytes(bytes) => read(bytes),
            Self::Text(text) => read(text.as_bytes()),
            Self::Integer { value, bits } => read(&value.to_le_bytes()[..*bits as usize / 8]),
            Self::Float(bytes, used) => read(&bytes[..*used]),
        }
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        match self {
            Self::Bytes(bytes) => read(ItemValue::Bytes(bytes)),
            Self::Text(text) => read(ItemValue::Text(text)),
            Self::Integer { value, bits } => read(ItemValue::Integer { value: *value, bits: *bits }),
            Self::Float(bytes, used) => read(ItemValue::Bytes(&bytes[..*used])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_lines_are_parsed_and_others_rejected() {
        let integer = ItemForm::Integer { bits: 32, signed: true };
        assert_eq!(integer.item(b"-7"), Ok(LineItem::Integer { value: -7, bits: 32 }));
        assert_eq!(
            integer.item(b"4294967296").unwrap_err().to_string(),
            "\"4294967296\" is not a signed 32-bit integer, which this filter requires"
        );
        assert!(ItemForm::Integer { bits: 64, signed: false }.item(b"-1").is_err());
        assert!(ItemForm::Text.item(b"\xff").is_err());
        assert_eq!(ItemForm::Bytes.item(b"\xff"), Ok(LineItem::Bytes(b"\xff")));
        let float = ItemForm::Float { bits: 64 }.item(b"1.5").unwrap();
        float.with_bytes(|bytes| assert_eq!(bytes, 1.5_f64.to_le_bytes()));
    }

    #[test]
    fn every_encoding_has_a_form() {
        for encoding in ItemEncoding::all() {
            let line: &[u8] = b"12";
            let item = ItemForm::of_encoding(encoding).item(line).unwrap();
            item.with_value(|value| encoding.encode(value).map(drop)).unwrap();
        }
    }
}
