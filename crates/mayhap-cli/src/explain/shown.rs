//! How items, hashes and bits are shown.

use std::fmt::Write as _;

use mayhap::ItemHash;
use mayhap::explain::{BitProbe, CounterProbe};
use textwrap::core::display_width;

/// An item in quotes, or its hexadecimal digits if it is not text; at most `most` columns.
pub(super) fn item(bytes: &[u8], most: usize) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let escaped: String = text.escape_debug().collect();
            let mut shown = String::new();
            let mut columns = 0;
            for letter in escaped.chars() {
                columns += display_width(letter.encode_utf8(&mut [0; 4]));
                if columns > most {
                    shown.push('…');
                    break;
                }
                shown.push(letter);
            }
            format!("\"{shown}\"")
        }
        Err(_) => digits(bytes, most),
    }
}

/// The hexadecimal digits of bytes, in pairs; at most `most` characters.
pub(super) fn digits(bytes: &[u8], most: usize) -> String {
    let shown = (most / 3).max(1);
    let mut digits = String::new();
    for byte in bytes.iter().take(shown) {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x} ");
    }
    digits.truncate(digits.trim_end().len());
    if bytes.len() > shown {
        digits.push_str(" …");
    }
    digits
}

/// The 128 bits of a hash, the high half first.
pub(super) fn hash(hash: ItemHash) -> String {
    let digits = format!("{:032x}", hash.to_u128());
    format!("{} {}", &digits[..16], &digits[16..])
}

/// A fingerprint with all its digits, including leading zeros.
pub(super) fn hex(number: u64, bits: u32) -> String {
    format!("{number:#0width$x}", width = 2 + (bits as usize).div_ceil(4))
}

/// The lowest `bits` bits, the first one leftmost.
pub(super) fn first_bits(number: u64, bits: u32) -> String {
    (0..bits).map(|bit| if number >> bit & 1 == 1 { '1' } else { '0' }).collect()
}

/// Bits shown on either side of a probe.
const AROUND: u64 = 8;

/// The bits around a probe, which is in brackets; dots outside its word.
pub(super) fn around(probe: &BitProbe) -> String {
    let at = probe.position % 64;
    let mut shown = String::new();
    for place in 0..=2 * AROUND {
        let bit = (at + place).checked_sub(AROUND).filter(|&bit| bit < 64);
        let digit = match bit {
            Some(bit) if probe.word >> bit & 1 == 1 => '1',
            Some(_) => '0',
            None => '·',
        };
        if place == AROUND {
            let _ = write!(shown, "[{digit}]");
        } else {
            shown.push(digit);
        }
    }
    shown
}

/// The sixteen counters of a word, the probed one in brackets.
pub(super) fn counters_around(probe: &CounterProbe) -> String {
    let mut shown = String::new();
    for place in 0..16 {
        let count = probe.word >> (4 * place) & 15;
        let brackets = if place == probe.position % 16 { ("[", "]") } else { ("", "") };
        let _ = write!(shown, "{}{count:x}{}", brackets.0, brackets.1);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_shown_as_text_or_digits_and_cut() {
        assert_eq!(item(b"ada", 60), "\"ada\"");
        assert_eq!(item(b"a\"\n\x1b", 60), "\"a\\\"\\n\\u{1b}\"");
        assert_eq!(item(b"\xff\x00", 60), "ff 00");
        assert_eq!(item("é".repeat(100).as_bytes(), 3), "\"ééé…\"");
        assert_eq!(item("漢字漢字".as_bytes(), 5), "\"漢字…\"");
        assert_eq!(item(&[0xff; 100], 9), "ff ff ff …");
        assert_eq!(item(b"", 60), "\"\"");
    }

    #[test]
    fn fingerprints_have_all_their_digits() {
        assert_eq!(hex(0x2c, 12), "0x02c");
        assert_eq!(hex(1, 1), "0x1");
        assert_eq!(first_bits(0b0110, 4), "0110");
        assert_eq!(first_bits(1, 3), "100");
    }
}
