//! Items of several parts: tuples and arrays.

use std::hash::Hasher;

use xxhash_rust::xxh3::xxh3_64;

use super::Item;

/// Bytes that are joined from parts. It allocates only for more than `SHORT` bytes.
#[derive(Debug)]
pub(super) struct Joined {
    short: [u8; SHORT],
    len: usize,
    /// All bytes, as soon as they do not fit in `short`.
    long: Vec<u8>,
}

/// The number of bytes that need no allocation: enough for a pair of integers or of short texts.
const SHORT: usize = 96;

impl Joined {
    pub(super) const fn new() -> Self {
        Self { short: [0; SHORT], len: 0, long: Vec::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if !self.long.is_empty() {
            self.long.extend_from_slice(bytes);
        } else if end <= SHORT {
            self.short[self.len..end].copy_from_slice(bytes);
        } else {
            self.long.reserve(end);
            self.long.extend_from_slice(&self.short[..self.len]);
            self.long.extend_from_slice(bytes);
        }
        self.len = end;
    }

    /// Adds the length of a part in bytes, then its bytes. Two different lists of parts therefore never give the same bytes.
    pub(super) fn push_part<I: Item + ?Sized>(&mut self, part: &I) {
        part.with_bytes(|bytes| {
            self.push(&(bytes.len() as u64).to_le_bytes());
            self.push(bytes);
        });
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.len] } else { &self.long }
    }
}

/// Collects the bytes that a `Hash` writes. Numbers are little-endian and `usize` has 64 bits, so the same calls give the
/// same bytes on every platform.
impl Hasher for Joined {
    fn finish(&self) -> u64 {
        xxh3_64(self.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) {
        self.push(bytes);
    }

    fn write_u8(&mut self, number: u8) {
        self.push(&[number]);
    }

    fn write_u16(&mut self, number: u16) {
        self.push(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.push(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.push(&number.to_le_bytes());
    }

    fn write_u128(&mut self, number: u128) {
        self.push(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.push(&(number as u64).to_le_bytes());
    }

    fn write_i8(&mut self, number: i8) {
        self.push(&number.to_le_bytes());
    }

    fn write_i16(&mut self, number: i16) {
        self.push(&number.to_le_bytes());
    }

    fn write_i32(&mut self, number: i32) {
        self.push(&number.to_le_bytes());
    }

    fn write_i64(&mut self, number: i64) {
        self.push(&number.to_le_bytes());
    }

    fn write_i128(&mut self, number: i128) {
        self.push(&number.to_le_bytes());
    }

    fn write_isize(&mut self, number: isize) {
        self.push(&(number as i64).to_le_bytes());
    }
}

/// Implements [`Item`] for tuples of one to four items.
macro_rules! tuple_items {
    ($(($($part:ident $at:tt),*))*) => {$(
        /// The bytes are, for each part, its length in bytes as a little-endian `u64`, then its bytes.
        impl<$($part: Item),*> Item for ($($part,)*) {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let mut joined = Joined::new();
                $(joined.push_part(&self.$at);)*
                read(joined.as_bytes())
            }
        }
    )*};
}

tuple_items! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
}

/// The bytes are those of a tuple of these parts. An array of integers is not an item. The exception is `[u8; N]`: its
/// bytes are the item.
impl<I: Item + ?Sized, const N: usize> Item for [&I; N] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let mut joined = Joined::new();
        self.iter().for_each(|part| joined.push_part(*part));
        read(joined.as_bytes())
    }
}

/// The bytes are those of a tuple of these parts.
impl<const N: usize> Item for [String; N] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.each_ref().with_bytes(read)
    }
}
