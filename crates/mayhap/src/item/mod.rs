//! Items are bytes. Types with an unambiguous byte form are used without a copy.

mod by_hash;
mod encoding;
mod joined;
mod json;
mod kryo5;

pub use by_hash::ByHash;
pub use encoding::{EncodedItem, EncodingError, ItemEncoding, UnknownEncoding};

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// An item of a filter: a sequence of bytes.
///
/// Text is its UTF-8 bytes. Integers are their little-endian bytes at full width, so the same item
/// gives the same answer on every machine and from every language. The width is part of the item:
/// `7_u32` and `7_u64` are different items. `usize` always counts as `u64`.
///
/// | type | bytes |
/// |---|---|
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | as they are |
/// | `str`, `String`, `char` | UTF-8: `'a'` is the same item as `"a"` |
/// | `u8` to `u128`, `i8` to `i128` | little-endian, at their own width; `usize` and `isize` with 64 bits |
/// | `Ipv4Addr`, `Ipv6Addr`, `IpAddr` | 4 or 16 bytes in network order; an `IpAddr` is the same item as the address in it |
/// | `Path`, `OsStr` | the bytes in the system's encoding; for a path in UTF-8, the bytes of that text |
/// | `uuid::Uuid` (feature `uuid`) | its 16 bytes, most significant first |
/// | tuples of one to four items, `[&I; N]`, `[String; N]` | for each part its length as a little-endian `u64`, then its bytes |
/// | `&I`, `&mut I`, `Box<I>`, `Rc<I>`, `Arc<I>`, `Cow<I>` | the bytes of the item inside |
///
/// These encodings are frozen. [`ByHash`] makes an item of any other type with [`Hash`]; its encoding is not frozen.
///
/// A path is compared by its bytes: `a//b` and `a/b` are two items, although the two paths are equal.
///
/// ```
/// use mayhap::Bloom;
///
/// let mut seen = Bloom::new(1_000, 0.01)?;
/// seen.insert("https://example.org/");
/// seen.insert(&13_800_138_000_u64);
/// seen.insert(b"\x00\xff raw bytes");
/// assert!(seen.may_contain(&String::from("https://example.org/")));
/// assert!(seen.may_contain(&13_800_138_000_u64.to_le_bytes()));
/// seen.insert(&("ada", 1815_u16)); // a pair is one item
/// assert!(seen.may_contain(&("ada", 1815_u16)));
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

/// Encoded as text of one character.
impl Item for char {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.encode_utf8(&mut [0; 4]).as_bytes())
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        read(ItemValue::Text(self.encode_utf8(&mut [0; 4])))
    }
}

impl Item for Ipv4Addr {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.octets())
    }
}

impl Item for Ipv6Addr {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.octets())
    }
}

impl Item for IpAddr {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::V4(address) => address.with_bytes(read),
            Self::V6(address) => address.with_bytes(read),
        }
    }
}

impl Item for OsStr {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_encoded_bytes())
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        match self.to_str() {
            Some(text) => read(ItemValue::Text(text)),
            None => self.with_bytes(|bytes| read(ItemValue::Bytes(bytes))),
        }
    }
}

#[cfg(feature = "uuid")]
impl Item for uuid::Uuid {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

/// Implements [`Item`] for types that pass on to the item inside.
macro_rules! items_of {
    ($($outer:ty as $inner:ty),* $(,)?) => {$(
        impl Item for $outer {
            #[inline(always)]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let inner: &$inner = self.as_ref();
                inner.with_bytes(read)
            }

            fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
                let inner: &$inner = self.as_ref();
                inner.with_value(read)
            }
        }
    )*};
}

items_of!(OsString as OsStr, Path as OsStr, PathBuf as OsStr);

impl<T: Item + ?Sized> Item for &mut T {
    #[inline(always)]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        (**self).with_value(read)
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

    /// The bytes are frozen: filters in files depend on them.
    #[test]
    fn the_bytes_of_addresses_paths_and_characters_never_change() {
        assert_eq!(bytes(&'é'), "é".as_bytes());
        assert_eq!(bytes(&'\u{10348}'), b"\xf0\x90\x8d\x88");
        let (four, six) = (Ipv4Addr::new(192, 0, 2, 7), "2001:db8::1".parse::<Ipv6Addr>().unwrap());
        assert_eq!(bytes(&four), [192, 0, 2, 7]);
        assert_eq!(bytes(&IpAddr::V4(four)), bytes(&four));
        assert_eq!(bytes(&six), b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01");
        assert_eq!(bytes(&IpAddr::V6(six)), bytes(&six));
        assert_ne!(bytes(&four), bytes(&four.to_ipv6_mapped()));
        assert_eq!(bytes(Path::new("/tmp/é")), "/tmp/é".as_bytes());
        assert_eq!(bytes(&PathBuf::from("/tmp/é")), "/tmp/é".as_bytes());
        assert_eq!(bytes(OsStr::new("é")), "é".as_bytes());
        assert_eq!(bytes(&OsString::from("é")), "é".as_bytes());
        assert_ne!(bytes(Path::new("a//b")), bytes(Path::new("a/b")));
        assert_eq!(bytes(&&mut 7_u16), [7, 0]);
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt as _;
            let raw = OsStr::from_bytes(b"\xff");
            assert_eq!(bytes(raw), [0xff]);
            assert!(raw.with_value(|value| value == ItemValue::Bytes(b"\xff")));
        }
        assert!('é'.with_value(|value| value == ItemValue::Text("é")));
        assert!(Path::new("a").with_value(|value| value == ItemValue::Text("a")));
    }

    #[cfg(feature = "uuid")]
    #[test]
    fn the_bytes_of_a_uuid_never_change() {
        let uuid = uuid::Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let expected: Vec<u8> = (0..16).map(|i| i * 0x11).collect();
        assert_eq!(bytes(&uuid), expected);
    }

    /// These bytes are frozen as well.
    #[test]
    fn the_bytes_of_tuples_and_arrays_never_change() {
        let pair = b"\x03\0\0\0\0\0\0\0ada\x02\0\0\0\0\0\0\0\x17\x07".to_vec();
        assert_eq!(bytes(&("ada", 1815_u16)), pair);
        assert_eq!(bytes(&(String::from("ada"), &1815_u16)), pair);
        assert_eq!(bytes(&("a",)), b"\x01\0\0\0\0\0\0\0a");
        assert_eq!(bytes(&["a", "bc"]), bytes(&("a", "bc")));
        assert_eq!(bytes(&["a".to_owned(), "bc".to_owned()]), bytes(&("a", "bc")));
        assert_eq!(bytes(&[&1_u8, &2]), bytes(&(1_u8, 2_u8)));
        assert_eq!(bytes(&[1, 2]), [1, 2], "an array of bytes is bytes");
        assert_eq!(bytes(&(1_u8, 2_u16, 3_u32, 4_u64)).len(), 4 * 8 + 15);
    }

    #[test]
    fn parts_are_never_mixed_up() {
        let mut seen = std::collections::HashSet::new();
        let mut check = |bytes: Vec<u8>| assert!(seen.insert(bytes));
        check(bytes(&("a", "bc")));
        check(bytes(&("ab", "c")));
        check(bytes(&("abc", "")));
        check(bytes(&("", "abc")));
        check(bytes(&("abc",)));
        check(bytes(&("a", "b", "c")));
        check(bytes(&("", "a", "bc")));
        check(bytes(&("a", "bc", "")));
        check(bytes(&(("a", "b"), "c")));
        check(bytes(&("a", ("b", "c"))));
        check(bytes(&(("a",), ("b",), ("c",))));
        check(bytes(&(7_u16, 7_u32)));
        check(bytes(&(7_u32, 7_u16)));
    }

    #[test]
    fn long_parts_are_complete() {
        for len in [0, 1, 79, 80, 81, 95, 96, 97, 200, 5000] {
            let text = "x".repeat(len);
            let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, b'y'];
            expected.extend((len as u64).to_le_bytes());
            expected.extend(text.as_bytes());
            expected.extend([1, 0, 0, 0, 0, 0, 0, 0, b'z']);
            assert_eq!(bytes(&("y", text.as_str(), "z")), expected, "{len}");
        }
    }

    #[test]
    fn any_value_with_hash_is_an_item() {
        #[derive(Hash, PartialEq, Eq)]
        enum Event {
            Open(u64),
            Close(u64),
        }
        assert_eq!(bytes(&ByHash(Event::Open(7))), bytes(&ByHash(&Event::Open(7))));
        assert_ne!(bytes(&ByHash(Event::Open(7))), bytes(&ByHash(Event::Open(8))));
        assert_ne!(bytes(&ByHash(Event::Open(7))), bytes(&ByHash(Event::Close(7))));
        assert_ne!(bytes(&ByHash(("a", "bc"))), bytes(&ByHash(("ab", "c"))));
        assert_ne!(bytes(&ByHash("a")), bytes("a"));
        // Numbers have the same bytes on every platform.
        assert_eq!(bytes(&ByHash(0x0102_u16)), [2, 1]);
        assert_eq!(bytes(&ByHash(0x0102_u32)), [2, 1, 0, 0]);
        assert_eq!(bytes(&ByHash(7_usize)), bytes(&ByHash(7_u64)));
        assert_eq!(bytes(&ByHash(-7_isize)), bytes(&ByHash(-7_i64)));
        assert_eq!(bytes(&ByHash(-7_i128)), (-7_i128).to_le_bytes());
        assert_eq!(bytes(&ByHash(7_u128)), 7_u128.to_le_bytes());
        assert_eq!(bytes(&ByHash(-7_i16)), (-7_i16).to_le_bytes());
        let long = vec![1_u64; 100];
        assert_eq!(bytes(&ByHash(&long)).len(), 8 + 800);
    }
}
