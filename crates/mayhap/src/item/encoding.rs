//! How another program turns its items into the bytes that it hashes.

use std::fmt;
use std::str::FromStr;

use super::{ItemValue, json, kryo5};

/// The bytes of an item as another program hashes them.
///
/// Most foreign filters do not record their encoding, and their bits do not show it. With the wrong encoding a
/// filter answers *no* for its own items. So the caller names the encoding when it reads such a filter. The filter
/// stores it, also in a `.mayhap` file, takes plain Rust values and encodes them itself:
///
/// | name | text | integers | used by |
/// |---|---|---|---|
/// | `bytes` | UTF-8 | little-endian, at their own width | RedisBloom, DCSO, Go; byte arrays anywhere |
/// | `utf8` | UTF-8 | decimal digits | Guava's `stringFunnel(UTF_8)`, Spark, Redisson's `StringCodec` |
/// | `utf16le` | UTF-16, little-endian | decimal digits in UTF-16 | Guava's `unencodedCharsFunnel` |
/// | `utf32le` | code points, 4 bytes each | decimal digits as code points | pyprobables |
/// | `i32le`, `i64le`, `u64le` | read as a decimal number | 4 or 8 bytes, little-endian | Guava's `integerFunnel`, `longFunnel`; Spark; fuse keys |
/// | `f32le`, `f64le` | read as a decimal number | as that float | columns of Parquet files |
/// | `decimal` | read as a decimal number | decimal digits | Redisson's `LongCodec`, `IntegerCodec` |
/// | `kryo5` | Kryo's `String` | 32 bits: Kryo's `Integer`; 64 bits: its `Long` | Redisson's default since 3.19 |
/// | `kryo5-int`, `kryo5-long` | read as a decimal number | Kryo's `Integer`, its `Long` | the same |
/// | `json` | a JSON string as Jackson writes it | not supported | Redisson's `JsonJacksonCodec` |
///
/// **Byte strings are never changed**: `&[u8]` and `Vec<u8>` count as encoded already. (So do numbers of `u128`
/// above `i128::MAX`.)
///
/// Some values cannot be encoded: the text `ada` as `i64le`, `u64::MAX` as `i64le`. No other program can have
/// inserted such an item, so a lookup answers *no*, except for false positives.
/// [`Filter::insert`](crate::Filter::insert) rejects it. `insert` of a single kind, which cannot fail, stores it with
/// a mark, so that only mayhap finds it again. Check beforehand with [`encode`](Self::encode).
///
/// ```
/// use mayhap::{ItemEncoding, ItemValue};
///
/// assert_eq!(ItemEncoding::Utf16Le.encode(ItemValue::Text("hé"))?.as_ref(), b"h\0\xe9\0");
/// assert_eq!(ItemEncoding::I32Le.encode(ItemValue::Text("-2"))?.as_ref(), b"\xfe\xff\xff\xff");
/// assert!(ItemEncoding::I32Le.encode(ItemValue::Text("3000000000")).is_err());
/// assert_eq!("utf16le".parse(), Ok(ItemEncoding::Utf16Le));
/// # Ok::<(), mayhap::EncodingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemEncoding {
    /// `bytes`.
    Bytes,
    /// `utf8`.
    Utf8,
    /// `utf16le`.
    Utf16Le,
    /// `utf32le`.
    Utf32Le,
    /// `i32le`.
    I32Le,
    /// `i64le`.
    I64Le,
    /// `u64le`.
    U64Le,
    /// `f32le`.
    F32Le,
    /// `f64le`.
    F64Le,
    /// `decimal`.
    Decimal,
    /// `kryo5`.
    Kryo5,
    /// `kryo5-int`.
    Kryo5Int,
    /// `kryo5-long`.
    Kryo5Long,
    /// `json`.
    Json,
}

/// Every encoding with its number in encoded filters, which never changes, and its name.
const NAMED: [(ItemEncoding, u16, &str); 14] = [
    (ItemEncoding::Bytes, 1, "bytes"),
    (ItemEncoding::Utf8, 2, "utf8"),
    (ItemEncoding::Utf16Le, 3, "utf16le"),
    (ItemEncoding::Utf32Le, 4, "utf32le"),
    (ItemEncoding::I32Le, 5, "i32le"),
    (ItemEncoding::I64Le, 6, "i64le"),
    (ItemEncoding::U64Le, 7, "u64le"),
    (ItemEncoding::F32Le, 8, "f32le"),
    (ItemEncoding::F64Le, 9, "f64le"),
    (ItemEncoding::Decimal, 10, "decimal"),
    (ItemEncoding::Kryo5, 11, "kryo5"),
    (ItemEncoding::Kryo5Int, 12, "kryo5-int"),
    (ItemEncoding::Kryo5Long, 13, "kryo5-long"),
    (ItemEncoding::Json, 14, "json"),
];

/// Prefix of the plain bytes of an item that cannot be encoded. With it the item is found again, but it is never taken
/// for an item of the other program, and a filter read with a wrong encoding does not look right.
const NO_FORM: &[u8] = b"\0mayhap: no form\0";

impl ItemEncoding {
    /// All encodings.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMED.iter().map(|&(encoding, ..)| encoding)
    }

    /// The number in encoded filters.
    #[must_use]
    pub fn number(self) -> u16 {
        self.named().0
    }

    /// The encoding of this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        NAMED.iter().find(|&&(_, there, _)| there == number).map(|&(encoding, ..)| encoding)
    }

    /// The name that [`FromStr`] accepts.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.named().1
    }

    fn named(self) -> (u16, &'static str) {
        NAMED
            .iter()
            .find(|&&(encoding, ..)| encoding == self)
            .map_or((0, ""), |&(_, number, name)| (number, name))
    }

    /// Returns the bytes that the other program hashes for this item.
    ///
    /// # Errors
    /// [`EncodingError`] if this encoding cannot represent the value.
    pub fn encode(self, value: ItemValue<'_>) -> Result<EncodedItem<'_>, EncodingError> {
        if let ItemValue::Bytes(bytes) = value {
            return Ok(EncodedItem::Borrowed(bytes));
        }
        match self {
            Self::Bytes => Ok(value.plain()),
            Self::Utf8 => Ok(match value {
                ItemValue::Text(text) => EncodedItem::Borrowed(text.as_bytes()),
                _ => EncodedItem::Owned(value.to_string().into_bytes()),
            }),
            Self::Utf16Le => {
                Ok(EncodedItem::Owned(value.to_string().encode_utf16().flat_map(u16::to_le_bytes).collect()))
            }
            Self::Utf32Le => {
                let points = value.to_string().chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
                Ok(EncodedItem::Owned(points))
            }
            Self::I32Le => self.integer::<i32>(value).map(|number| EncodedItem::short(&number.to_le_bytes())),
            Self::I64Le => self.integer::<i64>(value).map(|number| EncodedItem::short(&number.to_le_bytes())),
            Self::U64Le => self.integer::<u64>(value).map(|number| EncodedItem::short(&number.to_le_bytes())),
            Self::F32Le => self.float::<f32>(value).map(|number| EncodedItem::short(&number.to_le_bytes())),
            Self::F64Le => self.float::<f64>(value).map(|number| EncodedItem::short(&number.to_le_bytes())),
            Self::Decimal => {
                self.integer::<i128>(value).map(|number| EncodedItem::Owned(number.to_string().into_bytes()))
            }
            Self::Kryo5 => match value {
                ItemValue::Text(text) => Ok(EncodedItem::Owned(kryo5::string(text))),
                ItemValue::Integer { bits: 32, .. } => Self::Kryo5Int.encode(value),
                ItemValue::Integer { bits: 64, .. } => Self::Kryo5Long.encode(value),
                _ => Err(self.refusal(value)),
            },
            Self::Kryo5Int => self.integer(value).map(|number| EncodedItem::short(&kryo5::int(number))),
            Self::Kryo5Long => self.integer(value).map(|number| EncodedItem::short(&kryo5::long(number))),
            Self::Json => match value {
                ItemValue::Text(text) => Ok(EncodedItem::Owned(json::string(text))),
                _ => Err(self.refusal(value)),
            },
        }
    }

    /// Calls `read` with the result of [`encode`](Self::encode). A value that cannot be encoded gets bytes that no
    /// other program hashes.
    ///
    /// The common cases avoid an [`EncodedItem`]: with it, a lookup of a number took 37 ns longer.
    #[inline]
    pub(crate) fn encode_with<R>(self, value: ItemValue<'_>, read: impl FnOnce(&[u8]) -> R) -> R {
        match (self, value) {
            (_, ItemValue::Bytes(bytes)) => read(bytes),
            (Self::Bytes | Self::Utf8, ItemValue::Text(text)) => read(text.as_bytes()),
            (Self::Bytes, ItemValue::Integer { value, bits }) => {
                read(&value.to_le_bytes()[..(bits as usize / 8).min(16)])
            }
            (Self::I64Le, ItemValue::Integer { value, .. }) if i64::try_from(value).is_ok() => {
                read(&(value as i64).to_le_bytes())
            }
            (Self::U64Le, ItemValue::Integer { value, .. }) if u64::try_from(value).is_ok() => {
                read(&(value as u64).to_le_bytes())
            }
            _ => match self.encode(value) {
                Ok(encoded) => read(encoded.as_ref()),
                Err(_) => read(&[NO_FORM, value.plain().as_ref()].concat()),
            },
        }
    }

    pub(super) fn integer<N: TryFrom<i128>>(self, value: ItemValue<'_>) -> Result<N, EncodingError> {
        let number = match value {
            ItemValue::Integer { value, .. } => Some(value),
            _ => value.to_string().parse().ok(),
        };
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| self.refusal(value))
    }

    fn float<N: FromStr>(self, value: ItemValue<'_>) -> Result<N, EncodingError> {
        value.to_string().parse().map_err(|_| self.refusal(value))
    }

    fn refusal(self, value: ItemValue<'_>) -> EncodingError {
        EncodingError { encoding: self, got: value.to_string().chars().take(60).collect() }
    }
}

impl fmt::Display for ItemEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ItemEncoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        NAMED
            .iter()
            .find(|(.., there)| *there == name)
            .map(|&(encoding, ..)| encoding)
            .ok_or_else(|| UnknownEncoding { got: name.chars().take(60).collect() })
    }
}

/// An item as the other program's bytes.
#[derive(Clone, Debug)]
pub enum EncodedItem<'a> {
    /// Bytes of the caller.
    Borrowed(&'a [u8]),
    /// A few bytes: the buffer and the number of bytes in use.
    Short([u8; 16], u8),
    /// Newly allocated bytes.
    Owned(Vec<u8>),
}

impl EncodedItem<'_> {
    /// At most 16 bytes.
    pub(super) fn short(bytes: &[u8]) -> Self {
        let mut short = [0; 16];
        let len = bytes.len().min(16);
        short[..len].copy_from_slice(&bytes[..len]);
        Self::Short(short, len as u8)
    }
}

impl AsRef<[u8]> for EncodedItem<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Short(bytes, len) => &bytes[..usize::from(*len).min(16)],
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A value that an encoding cannot represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodingError {
    /// The encoding.
    pub encoding: ItemEncoding,
    /// The value, or its beginning.
    pub got: String,
}

impl fmt::Display for EncodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} cannot be encoded as {}", self.got, self.encoding)
    }
}

impl std::error::Error for EncodingError {}

/// A name of no encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEncoding {
    /// The name, or its beginning.
    pub got: String,
}

impl fmt::Display for UnknownEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item encoding {:?} is not known; there are", self.got)?;
        NAMED.iter().try_for_each(|(.., name)| write!(f, " {name}"))
    }
}

impl std::error::Error for UnknownEncoding {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_the_encoding() {
        for (encoding, number, name) in NAMED {
            assert_eq!((encoding.number(), encoding.name()), (number, name));
            assert_eq!(ItemEncoding::from_number(number), Some(encoding));
            assert_eq!(name.parse(), Ok(encoding));
        }
        assert_eq!(ItemEncoding::from_number(0), None);
        let unknown = "utf-8".parse::<ItemEncoding>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("item encoding \"utf-8\" is not known; there are bytes utf8"),
            "{unknown}"
        );
    }

    #[test]
    fn the_quick_way_gives_the_same_bytes() {
        let numbers = [0, -1, 7, i128::from(i64::MIN), i128::from(u64::MAX), i128::MAX];
        let numbers = numbers.map(|value| ItemValue::Integer { value, bits: 128 });
        let others = [ItemValue::Bytes(b"\xff"), ItemValue::Text("café"), ItemValue::Text("-12")];
        for encoding in ItemEncoding::all() {
            for value in numbers.into_iter().chain(others) {
                let expected = match encoding.encode(value) {
                    Ok(encoded) => encoded.as_ref().to_vec(),
                    Err(_) => [NO_FORM, value.plain().as_ref()].concat(),
                };
                assert_eq!(encoding.encode_with(value, <[u8]>::to_vec), expected, "{encoding} {value:?}");
            }
        }
    }

    #[test]
    fn byte_strings_pass_through_every_encoding() {
        for encoding in ItemEncoding::all() {
            let encoded = encoding.encode(ItemValue::Bytes(b"\xff\x00raw")).unwrap();
            assert_eq!(encoded.as_ref(), b"\xff\x00raw", "{encoding}");
        }
    }

    #[test]
    fn numbers_are_checked_against_their_width() {
        let text = |encoding: ItemEncoding, text| {
            encoding.encode(ItemValue::Text(text)).map(|item| item.as_ref().to_vec())
        };
        assert_eq!(text(ItemEncoding::I32Le, "2147483647"), Ok(vec![255, 255, 255, 127]));
        assert!(text(ItemEncoding::I32Le, "2147483648").is_err());
        assert!(text(ItemEncoding::U64Le, "-1").is_err());
        assert_eq!(text(ItemEncoding::Decimal, "+007"), Ok(b"7".to_vec()));
        assert_eq!(
            text(ItemEncoding::I64Le, "ada").unwrap_err().to_string(),
            "\"ada\" cannot be encoded as i64le"
        );
        {
            let bytes = |value| ItemEncoding::I64Le.encode_with(value, <[u8]>::to_vec);
            let marked = bytes(ItemValue::Text("ada"));
            assert_eq!(marked, b"\0mayhap: no form\0ada", "frozen: filters hold such items");
            assert_eq!(bytes(ItemValue::Text("7")), 7_i64.to_le_bytes());
        }
        assert_eq!(text(ItemEncoding::F64Le, "1.5"), Ok(1.5_f64.to_le_bytes().to_vec()));
        assert_eq!(text(ItemEncoding::Kryo5Int, "-65"), Ok(vec![2, 0x81, 1]));
        assert_eq!(text(ItemEncoding::Kryo5Long, "-65"), Ok(vec![9, 0x81, 1]));
        assert!(text(ItemEncoding::Kryo5Int, "2147483648").is_err());
    }

    #[test]
    fn kryo_tells_numbers_by_their_width_and_json_takes_none() {
        let number = |encoding: ItemEncoding, value, bits| {
            encoding.encode(ItemValue::Integer { value, bits }).map(|item| item.as_ref().to_vec())
        };
        assert_eq!(number(ItemEncoding::Kryo5, 1, 32), Ok(vec![2, 2]));
        assert_eq!(number(ItemEncoding::Kryo5, 1, 64), Ok(vec![9, 2]));
        assert_eq!(number(ItemEncoding::Kryo5Int, 1, 64), Ok(vec![2, 2]), "named, it is what it is called");
        assert!(number(ItemEncoding::Kryo5, 1, 16).is_err(), "a `Short` is another class");
        assert!(number(ItemEncoding::Kryo5, 1 << 31, 32).is_err(), "Java has no such `Integer`");
        assert!(number(ItemEncoding::Json, 1, 32).is_err());
    }
}
