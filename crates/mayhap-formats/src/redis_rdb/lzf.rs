//! LZF, the compression of strings in Redis: literal runs, and copies of earlier output.
//!
//! ```text
//! 000nnnnn                      the next n + 1 bytes, unchanged
//! lllddddd dddddddd             l + 2 bytes from d + 1 back, l from 1 to 6
//! 111ddddd llllllll dddddddd    l + 9 bytes from d + 1 back
//! ```

use mayhap::{BuildError, DecodeError};

/// The largest number of output bytes per input byte: three bytes encode "copy 264".
const MAX_RATIO: u64 = 88;

/// Decompresses to exactly `length` bytes, at most `limit`. Allocates nothing that the input cannot fill.
pub(super) fn decompress(packed: &[u8], length: u64, limit: u64) -> Result<Vec<u8>, DecodeError> {
    if length > limit {
        return Err(DecodeError::UnpacksTooLarge { limit });
    }
    if length > (packed.len() as u64).saturating_mul(MAX_RATIO) {
        return Err(DecodeError::BadField { field: "length of a compressed string", got: length });
    }
    // At most 88 times the length of the input, which is in memory already.
    let length = length as usize;
    let mut out = Vec::new();
    out.try_reserve_exact(length).map_err(|_| BuildError::OutOfMemory { bytes: length as u64 })?;
    let damaged = |at: usize| DecodeError::BadField { field: "compressed string, at byte", got: at as u64 };
    let mut at = 0;
    let next = |at: &mut usize| {
        let byte = packed.get(*at).copied().ok_or(damaged(*at))?;
        *at += 1;
        Ok::<_, DecodeError>(usize::from(byte))
    };
    while at < packed.len() {
        let begin = at;
        let control = next(&mut at)?;
        if control < 32 {
            let run = packed.get(at..at + control + 1).ok_or(damaged(begin))?;
            at += run.len();
            out.extend_from_slice(run);
        } else {
            let mut copied = (control >> 5) + 2;
            if copied == 9 {
                copied += next(&mut at)?;
            }
            let back = (control & 31) << 8 | next(&mut at)?;
            let from = out.len().checked_sub(back + 1).ok_or(damaged(begin))?;
            if out.len() + copied > length {
                return Err(damaged(begin));
            }
            // Has the effect of a byte-by-byte copy: a copy may overlap its own output.
            for index in from..from + copied {
                out.push(out[index]);
            }
        }
        if out.len() > length {
            return Err(damaged(begin));
        }
    }
    if out.len() != length {
        return Err(DecodeError::BadField { field: "length of a compressed string", got: length as u64 });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::decompress;

    #[test]
    fn literal_runs_and_copies_are_decompressed() {
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3, 9).unwrap(), b"abc");
        // "ab", and then 4 bytes from 2 back, which overlap the copy's own output.
        assert_eq!(decompress(&[1, b'a', b'b', 2 << 5, 1], 6, 9).unwrap(), b"ababab");
        assert_eq!(decompress(&[0, b'z', 7 << 5, 255, 0], 265, 265).unwrap(), [b'z'; 265]);
        assert_eq!(decompress(&[], 0, 0).unwrap(), b"");
    }

    #[test]
    fn invalid_input_is_an_error() {
        for (packed, length) in [
            (&[2, b'a', b'b'][..], 3),         // a run past the end
            (&[0, b'a'], 2),                   // too little
            (&[1, b'a', b'b'], 1),             // too much
            (&[1 << 5, 0], 3),                 // a copy of nothing
            (&[0, b'a', 1 << 5, 1], 4),        // from before the beginning
            (&[0, b'a', 1 << 5], 4),           // half a copy
            (&[0, b'a', 7 << 5, 255], 265),    // likewise
            (&[0, b'a', 7 << 5, 255, 0], 264), // a copy past the length
            (&[0, b'a'], 1 << 40),             // more than three bytes can encode
            (&[], 1),
            (&[], u64::MAX),
        ] {
            assert!(decompress(packed, length, u64::MAX).is_err(), "{packed:?}");
        }
    }
}
