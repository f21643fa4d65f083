//! What a named hash function returns: up to 64 bytes, kept on the stack.

use std::fmt;

/// The widest function here is SHA-512.
const MAX_BYTES: usize = 64;

/// The value of a [`NamedHash`](super::NamedHash), 32 to 512 bits wide.
///
/// The order is the same for all functions: the words as the published function returns them, each with the most significant
/// byte first. So the hex form reads like the number, and a pair `[h1, h2]` reads `h1` then `h2`. A program that stores its
/// words little-endian (Guava's `asBytes`, for example) has the bytes of each word in the opposite order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    // Bytes after `len` are zero, so the derived comparisons see only the hash.
    bytes: [u8; MAX_BYTES],
    len: u8,
}

impl Digest {
    #[inline]
    pub(super) fn from_u32s<const N: usize>(words: [u32; N]) -> Digest {
        Digest::from_bytes(words.map(u32::to_be_bytes).as_flattened())
    }

    #[inline]
    pub(super) fn from_u64s<const N: usize>(words: [u64; N]) -> Digest {
        Digest::from_bytes(words.map(u64::to_be_bytes).as_flattened())
    }

    /// Keeps the first 64 bytes; no function here returns more.
    #[inline]
    pub(super) fn from_bytes(source: &[u8]) -> Digest {
        let mut digest = Digest { bytes: [0; MAX_BYTES], len: 0 };
        for (to, from) in digest.bytes.iter_mut().zip(source) {
            *to = *from;
            digest.len += 1;
        }
        digest
    }

    /// The digest, most significant byte of each word first.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// The width of the digest in bits.
    #[inline]
    pub fn bits(&self) -> u32 {
        u32::from(self.len) * 8
    }

    /// The digest as a number; `None` if it is wider than 32 bits.
    #[inline]
    pub fn to_u32(&self) -> Option<u32> {
        self.to_u64().filter(|_| self.bits() <= u32::BITS).map(|value| value as u32)
    }

    /// The digest as a number; `None` if it is wider than 64 bits.
    #[inline]
    pub fn to_u64(&self) -> Option<u64> {
        self.to_u128().filter(|_| self.bits() <= u64::BITS).map(|value| value as u64)
    }

    /// The digest as a number, its first word in the high half; `None` if it is wider than 128 bits.
    #[inline]
    pub fn to_u128(&self) -> Option<u128> {
        (self.bits() <= u128::BITS)
            .then(|| self.as_bytes().iter().fold(0, |value, &byte| value << 8 | u128::from(byte)))
    }
}

/// Lower-case hex, two digits a byte.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_only_where_they_fit() {
        let narrow = Digest::from_u32s([0xdead_beef]);
        assert_eq!(narrow.to_u32(), Some(0xdead_beef));
        assert_eq!(narrow.to_u64(), Some(0xdead_beef));

        let wide = Digest::from_u64s([1, 2]);
        assert_eq!((wide.to_u32(), wide.to_u64()), (None, None));
        assert_eq!(wide.to_u128(), Some((1 << 64) + 2));
        assert_eq!(wide.to_string(), "00000000000000010000000000000002");

        let widest = Digest::from_bytes(&[0xab; 64]);
        assert_eq!((widest.bits(), widest.to_u128()), (512, None));
        assert_eq!(widest.as_bytes(), [0xab; 64]);
    }
}
