//! Text as Jackson writes it in JSON, quotes included: what Redisson's `JsonJacksonCodec` hashes for a `String`.

use std::fmt::Write;

/// The JSON string. Characters past U+FFFF are two escapes, all others past U+001F stand for themselves but for the quote and the backslash.
pub(super) fn string(text: &str) -> Vec<u8> {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\u{8}' => json.push_str("\\b"),
            '\t' => json.push_str("\\t"),
            '\n' => json.push_str("\\n"),
            '\u{c}' => json.push_str("\\f"),
            '\r' => json.push_str("\\r"),
            '\0'..' ' | '\u{10000}'.. => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(json, "\\u{unit:04X}");
                }
            }
            _ => json.push(character),
        }
    }
    json.push('"');
    json.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_those_that_redisson_hashed() {
        for (text, expected) in [
            ("", r#""""#),
            ("a", r#""a""#),
            ("café", r#""café""#),
            ("你好，世界", r#""你好，世界""#),
            ("😀 emoji", r#""\uD83D\uDE00 emoji""#),
        ] {
            assert_eq!(string(text), expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn reserved_json_characters_are_escaped() {
        assert_eq!(
            string("\"\\/\u{8}\t\n\u{c}\r\0\u{1f}\u{7f}"),
            b"\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001F\x7f\""
        );
        let text = "a \"quoted\" \\ line\n\u{1} 😀 é";
        assert_eq!(serde_json::from_slice::<String>(&string(text)).unwrap(), text);
    }
}
