//! Little-endian words from a byte slice, at any offset.
//!
//! Every function here is total: missing bytes read as zero, so no hash can panic on a short item.

/// The four bytes from `at` on; zero if they are not all there.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

/// The eight bytes from `at` on; zero if they are not all there.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

/// The first eight bytes; a shorter slice is padded with zero bytes.
///
/// Two overlapping reads instead of a loop: bits that both reads cover are the same bits, so `|` keeps them.
#[inline]
pub(super) fn padded_u64(bytes: &[u8]) -> u64 {
    match bytes {
        [] => 0,
        [a] => u64::from(*a),
        [a, b] => u64::from(u16::from_le_bytes([*a, *b])),
        [a, b, c] => u64::from(u32::from_le_bytes([*a, *b, *c, 0])),
        [_, _, _, _] | [_, _, _, _, _] | [_, _, _, _, _, _] | [_, _, _, _, _, _, _] => {
            let end = bytes.len() - 4;
            u64::from(u32_at(bytes, 0)) | u64::from(u32_at(bytes, end)) << (8 * end)
        }
        _ => u64_at(bytes, 0),
    }
}

/// The first four bytes; a shorter slice is padded with zero bytes.
#[inline]
pub(super) fn padded_u32(bytes: &[u8]) -> u32 {
    match bytes {
        [] => 0,
        [a] => u32::from(*a),
        [a, b] => u32::from(u16::from_le_bytes([*a, *b])),
        [a, b, c] => u32::from_le_bytes([*a, *b, *c, 0]),
        _ => u32_at(bytes, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 12] = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0x09, 0x1a, 0x2b, 0x3c];

    fn one_by_one(bytes: &[u8], width: usize) -> u64 {
        bytes.iter().take(width).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    #[test]
    fn padded_words_equal_the_byte_loop() {
        for len in 0..=BYTES.len() {
            assert_eq!(padded_u64(&BYTES[..len]), one_by_one(&BYTES[..len], 8), "{len} bytes");
            assert_eq!(u64::from(padded_u32(&BYTES[..len])), one_by_one(&BYTES[..len], 4), "{len} bytes");
        }
    }

    #[test]
    fn past_the_end_is_zero() {
        assert_eq!(u32_at(&BYTES, 8), 0x3c2b_1a09);
        assert_eq!(u32_at(&BYTES, 9), 0);
        assert_eq!(u64_at(&BYTES, 4), 0x3c2b_1a09_f8e7_d6c5);
        assert_eq!(u64_at(&BYTES, 5), 0);
        assert_eq!(u64_at(&BYTES, usize::MAX), 0);
    }
}
