//! Items are bytes. Types with an unambiguous byte form are used without a copy.

mod encoding;
mod json;
mod kryo5;

pub use encoding::{EncodedItem, EncodingError, ItemEncoding, UnknownEncoding};

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// An item of a filter: a sequence of bytes.
///
/// Text is its UTF-8 bytes. Integers are their little-endian bytes at full width, so the same item
/// gives the same answer on every machine and from every language. The width is part of the item:
/// `7_u32` and `7_u64` are different items. `usize` always counts as `u64`.
///
/// ```
/// use mayhap::Bloom;
///
/// let mut seen = Bloom::for_capacity(1_000, 0.01, 0)?;
/// seen.insert("https://example.org/");
/// seen.insert(&13_800_138_000_u64);
/// seen.insert(b"\x00\xff raw bytes");
/// assert!(seen.may_contain(&String::from("https://example.org/")));
/// assert!(seen.may_contain(&13_800_138_000_u64.to_le_bytes()));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
pub trait Item {
    /// Calls `read` with the item's bytes and returns its result.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;

    /// Calls `read` with the item's value, for filters of other programs, which have their own
    /// [encodings](ItemEncoding).
    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        self.with_bytes(|bytes| read(ItemValue::Bytes(bytes)))
    }
}

/// The value of an item before it is encoded as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemValue<'a> {
    /// Raw bytes.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A number.
    Integer {
        /// Its value.
        value: i128,
        /// The number of bits of its type: 8, 16, 32, 64 or 128.
        bits: u32,
    },
}

impl<'a> ItemValue<'a> {
    /// The bytes that [`Item::with_bytes`] passes for it.
    pub(crate) fn plain(self) -> EncodedItem<'a> {
        match self {
            Self::Bytes(bytes) => EncodedItem::Borrowed(bytes),
            Self::Text(text) => EncodedItem::Borrowed(text.as_bytes()),
            Self::Integer { value, bits } => {
                EncodedItem::short(&value.to_le_bytes()[..(bits as usize / 8).min(16)])
            }
        }
    }
}

/// Writes text as it is, numbers in decimal digits, and bytes that are not UTF-8 with replacement characters.
impl fmt::Display for ItemValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Self::Text(text) => f.write_str(text),
            Self::Integer { value, .. } => write!(f, "{value}"),
        }
    }
}

impl Item for [u8] {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl<const N: usize> Item for [u8; N] {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Item for Vec<u8> {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Item for str {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        read(ItemValue::Text(self))
    }
}

impl Item for String {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        read(ItemValue::Text(self))
    }
}

impl<T: Item + ?Sized> Item for &T {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        (**self).with_value(read)
    }
}

impl<T: Item + ?Sized> Item for Box<T> {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        (**self).with_value(read)
    }
}

impl<T: Item + ?Sized> Item for Rc<T> {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        (**self).with_value(read)
    }
}

impl<T: Item + ?Sized> Item for Arc<T> {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        (**self).with_value(read)
    }
}

impl<T: Item + ToOwned + ?Sized> Item for Cow<'_, T> {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        (**self).with_value(read)
    }
}

/// One macro for twelve one-line impls; it writes no types.
macro_rules! integer_items {
    ($($integer:ty as $wide:ty),*) => {$(
        impl Item for $integer {
            #[inline(always)]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                read(&(*self as $wide).to_le_bytes())
            }

            fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
                match i128::try_from(*self) {
                    Ok(value) => read(ItemValue::Integer { value, bits: <$wide>::BITS }),
                    // Only the upper half of `u128`.
                    Err(_) => self.with_bytes(|bytes| read(ItemValue::Bytes(bytes))),
                }
            }
        }
    )*};
}

integer_items!(
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    u128 as u128,
    usize as u64,
    i8 as i8,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    i128 as i128,
    isize as i64
);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<I: Item + ?Sized>(item: &I) -> Vec<u8> {
        item.with_bytes(<[u8]>::to_vec)
    }

    #[test]
    fn every_form_of_the_same_bytes_is_the_same_item() {
        let expected = b"caf\xc3\xa9".to_vec();
        assert_eq!(bytes("café"), expected);
        assert_eq!(bytes(&"café"), expected);
        assert_eq!(bytes(&String::from("café")), expected);
        assert_eq!(bytes(&expected), expected);
        assert_eq!(bytes(&expected[..]), expected);
        assert_eq!(bytes(b"caf\xc3\xa9"), expected);
        assert_eq!(bytes(&Box::<str>::from("café")), expected);
        assert_eq!(bytes(&Box::<[u8]>::from(&expected[..])), expected);
        assert_eq!(bytes(&Rc::<str>::from("café")), expected);
        assert_eq!(bytes(&Arc::<str>::from("café")), expected);
        assert_eq!(bytes(&Cow::Borrowed("café")), expected);
    }

    #[test]
    fn values_have_the_bytes_of_their_items() {
        fn agree<I: Item + ?Sized>(item: &I) {
            assert_eq!(item.with_value(|value| value.plain().as_ref().to_vec()), bytes(item));
        }
        agree("café");
        agree(&b"raw");
        agree(&-2_i8);
        agree(&u16::MAX);
        agree(&i64::MIN);
        agree(&7_usize);
        agree(&u128::MAX);
        agree(&i128::MIN);
        agree(&Arc::<str>::from("café"));
        assert_eq!((-7_i32).with_value(|value| value.to_string()), "-7");
    }

    #[test]
    fn integers_are_little_endian_at_their_own_width() {
        assert_eq!(bytes(&0x0102_u16), [2, 1]);
        assert_eq!(bytes(&-2_i32), [0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(&7_usize), bytes(&7_u64));
        assert_eq!(bytes(&-7_isize), bytes(&-7_i64));
        assert_ne!(bytes(&7_u32), bytes(&7_u64));
    }
}
