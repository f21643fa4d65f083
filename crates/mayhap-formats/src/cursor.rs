//! Reads the bytes of other programs field by field, without trusting them.

use mayhap::DecodeError;
use mayhap::internals::{Lines, WORDS_PER_LINE};

/// A slice of bytes and a position in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The position.
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    pub(crate) const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads the next `count` bytes.
    pub(crate) fn take(&mut self, count: u64) -> Result<&'a [u8], DecodeError> {
        let need = (self.at as u64).saturating_add(count);
        let too_short = DecodeError::TooShort { need, got: self.bytes.len() as u64 };
        let end = usize::try_from(need).map_err(|_| too_short.clone())?;
        let taken = self.bytes.get(self.at..end).ok_or(too_short)?;
        self.at = end;
        Ok(taken)
    }

    /// Reads the next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let taken = self.take(N as u64)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16_le(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32_le(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64_le(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f64_le(&mut self) -> Result<f64, DecodeError> {
        self.array().map(f64::from_le_bytes)
    }

    pub(crate) fn u32_be(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64_be(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// The bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// `Ok` if nothing is left.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            extra => Err(DecodeError::TrailingBytes { extra: extra as u64 }),
        }
    }

    /// Reads the next `count` little-endian 64-bit words as lines. Their presence is checked before anything is allocated.
    pub(crate) fn words_le(&mut self, count: u64) -> Result<Lines, DecodeError> {
        self.words(count, u64::from_le_bytes)
    }

    /// Reads the next `count` big-endian 64-bit words as lines.
    pub(crate) fn words_be(&mut self, count: u64) -> Result<Lines, DecodeError> {
        self.words(count, u64::from_be_bytes)
    }

    fn words(&mut self, count: u64, word: impl Fn([u8; 8]) -> u64) -> Result<Lines, DecodeError> {
        let (words, _) = self.take(count.saturating_mul(8))?.as_chunks::<8>();
        let mut lines = Lines::zeroed(words.len().div_ceil(WORDS_PER_LINE))?;
        for (to, &from) in lines.words_mut().iter_mut().zip(words) {
            *to = word(from);
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_nothing_is_read_past_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 0, 0, 0, 3, 9, 9]);
        assert_eq!((cursor.u8(), cursor.u16_le(), cursor.position()), (Ok(1), Ok(2), 3));
        assert_eq!(cursor.u32_be(), Ok(3 << 8 | 9));
        assert_eq!(cursor.finish(), Err(DecodeError::TrailingBytes { extra: 1 }));
        assert_eq!(cursor.u16_le(), Err(DecodeError::TooShort { need: 9, got: 8 }));
        assert_eq!(cursor.take(u64::MAX), Err(DecodeError::TooShort { need: u64::MAX, got: 8 }));
        assert!(cursor.words_le(u64::MAX).is_err());
        assert_eq!(cursor.rest(), [9]);
        assert_eq!(cursor.finish(), Ok(()));
    }
}
