//! LZF, in which Redis compresses strings: runs of bytes as they are, and copies of what has come out already.
//!
//! ```text
//! 000nnnnn                      the n + 1 bytes behind it, as they are
//! lllddddd dddddddd             l + 2 bytes from d + 1 back, l from 1 to 6
//! 111ddddd llllllll dddddddd    l + 9 bytes from d + 1 back
//! ```

use super::super::DecodeError;
use crate::error::BuildError;

/// The most bytes that come out for one that goes in: three say "copy 264".
const MAX_RATIO: u64 = 88;

/// The `length` bytes these stand for, exactly, and no more than `limit`. Nothing is allocated that they cannot fill.
pub(super) fn decompress(packed: &[u8], length: u64, limit: u64) -> Result<Vec<u8>, DecodeError> {
    if length > limit {
        return Err(DecodeError::UnpacksTooLarge { limit });
    }
    if length > (packed.len() as u64).saturating_mul(MAX_RATIO) {
        return Err(DecodeError::BadField { field: "length of a compressed string", got: length });
    }
    // As long as 88 times what is in memory already at most.
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
            // Byte by byte in effect: a copy may reach into what it writes.
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
    fn runs_and_copies() {
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3, 9).unwrap(), b"abc");
        // "ab", and then 4 bytes from 2 back: over what the copy itself writes.
        assert_eq!(decompress(&[1, b'a', b'b', 2 << 5, 1], 6, 9).unwrap(), b"ababab");
        assert_eq!(decompress(&[0, b'z', 7 << 5, 255, 0], 265, 265).unwrap(), [b'z'; 265]);
        assert_eq!(decompress(&[], 0, 0).unwrap(), b"");
    }

    #[test]
    fn what_no_compressor_writes_is_an_error() {
        for (packed, length) in [
            (&[2, b'a', b'b'][..], 3),         // a run past the end
            (&[0, b'a'], 2),                   // too little
            (&[1, b'a', b'b'], 1),             // too much
            (&[1 << 5, 0], 3),                 // a copy of nothing
            (&[0, b'a', 1 << 5, 1], 4),        // from before the beginning
            (&[0, b'a', 1 << 5], 4),           // half a copy
            (&[0, b'a', 7 << 5, 255], 265),    // likewise
            (&[0, b'a', 7 << 5, 255, 0], 264), // a copy past the length
            (&[0, b'a'], 1 << 40),             // more than any three bytes can say
            (&[], 1),
            (&[], u64::MAX),
        ] {
            assert!(decompress(packed, length, u64::MAX).is_err(), "{packed:?}");
        }
    }
}
