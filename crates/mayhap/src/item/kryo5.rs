//! Strings and whole numbers as Kryo 5 writes them with their class in front: what Redisson hashes by default since 3.19.
//!
//! ```text
//! Integer   02 │ zigzag, 7 bits a byte, the highest bit says "more"
//! Long      09 │ the same, at most nine bytes: the ninth has 8 bits
//! String    03 │ 81                                       none
//!           03 │ bytes, 80 added to the last one          2 to 32 characters, all of them ASCII
//!           03 │ length + 1 │ every UTF-16 unit           all others; one character, too
//!                │            └ in 1, 2 or 3 bytes each, as if it were a character: one past U+FFFF takes six
//!                └ in the first byte 80, "more" 40, and 6 bits; then 7 bits a byte
//! ```

const INTEGER: u8 = 2;
const STRING: u8 = 3;
const LONG: u8 = 9;
/// The longest string that has the short form.
const SHORT_CHARACTERS: usize = 32;

/// An `Integer`.
pub(super) fn int(number: i32) -> Vec<u8> {
    let zigzag = (number << 1) ^ (number >> 31);
    let mut bytes = vec![INTEGER];
    push_varint(&mut bytes, zigzag.cast_unsigned().into());
    bytes
}

/// A `Long`.
pub(super) fn long(number: i64) -> Vec<u8> {
    let zigzag = (number << 1) ^ (number >> 63);
    let mut bytes = vec![LONG];
    push_varint(&mut bytes, zigzag.cast_unsigned());
    bytes
}

/// A `String`.
pub(super) fn string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 6);
    bytes.push(STRING);
    if text.is_ascii() && (2..=SHORT_CHARACTERS).contains(&text.len()) {
        bytes.extend_from_slice(text.as_bytes());
        if let Some(last) = bytes.last_mut() {
            *last |= 0x80;
        }
        return bytes;
    }
    push_length(&mut bytes, text.encode_utf16().count() as u64 + 1);
    text.encode_utf16().for_each(|unit| push_unit(&mut bytes, unit));
    bytes
}

/// 7 bits a byte, low ones first; a ninth byte has no room for "more" and needs none.
fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    for _ in 0..8 {
        if number < 0x80 {
            break;
        }
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn push_length(bytes: &mut Vec<u8>, length: u64) {
    let more = if length >= 0x40 { 0x40 } else { 0 };
    bytes.push(0x80 | more | (length & 0x3f) as u8);
    if more != 0 {
        push_varint(bytes, length >> 6);
    }
}

fn push_unit(bytes: &mut Vec<u8>, unit: u16) {
    let continued = |shift: u32| 0x80 | (unit >> shift & 0x3f) as u8;
    match unit {
        0..0x80 => bytes.push(unit as u8),
        0x80..0x800 => bytes.extend([0xc0 | (unit >> 6) as u8, continued(0)]),
        0x800.. => bytes.extend([0xe0 | (unit >> 12) as u8, continued(6), continued(0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn numbers_are_those_that_redisson_hashed() {
        for (number, expected) in [
            (0, "0200"),
            (1, "0202"),
            (-1, "0201"),
            (63, "027e"),
            (64, "028001"),
            (127, "02fe01"),
            (128, "028002"),
            (-64, "027f"),
            (-65, "028101"),
            (i32::MAX, "02feffffff0f"),
            (i32::MIN, "02ffffffff0f"),
        ] {
            assert_eq!(hex(&int(number)), expected, "{number}");
        }
        for (number, expected) in [
            (0, "0900"),
            (1, "0902"),
            (-1, "0901"),
            (300, "09d804"),
            (i64::MAX, "09feffffffffffffffff"),
            (i64::MIN, "09ffffffffffffffffff"),
        ] {
            assert_eq!(hex(&long(number)), expected, "{number}");
        }
    }

    #[test]
    fn strings_are_those_that_redisson_hashed() {
        for (text, expected) in [
            ("", "0381"),
            ("a", "038261"),
            ("ab", "0361e2"),
            ("abc", "036162e3"),
            ("hello", "0368656c6cef"),
            ("café", "0385636166c3a9"),
            ("你好，世界", "0386e4bda0e5a5bdefbc8ce4b896e7958c"),
            ("😀 emoji", "0389eda0bdedb88020656d6f6a69"),
            ("user:12345", "03757365723a31323334b5"),
        ] {
            assert_eq!(hex(&string(text)), expected, "{text}");
        }
        assert_eq!(string(&"x".repeat(32)).len(), 1 + 32, "the longest in the short form");
        assert_eq!(hex(&string(&"x".repeat(33)))[..6], *"03a278");
        assert_eq!(hex(&string(&"x".repeat(63)))[..8], *"03c00178", "64 takes two bytes");
        assert_eq!(hex(&string(&"x".repeat(8191)))[..10], *"03c0800178", "8192 three");
        assert_eq!(string(&"名".repeat(40)).len(), 2 + 120);
    }
}
