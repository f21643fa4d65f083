//! Parses numbers in requests, as strictly as Redis does.

/// Parses a signed 64-bit integer: only digits, no spaces, no `+`, no leading zeros.
#[must_use]
pub fn integer(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let plain = match digits {
        [b'0'] => word.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !plain {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Parses a double, with or without a fraction or an exponent. Accepts `inf`; rejects `nan` and spaces.
#[must_use]
pub fn double(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    text.parse::<f64>().ok().filter(|number| !number.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        for (word, number) in
            [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(integer(word.as_bytes()), Some(number), "{word}");
        }
        for word in ["", "-", "+1", " 1", "1 ", "01", "-0", "1e3", "9223372036854775808", "0x10", "1.0", "²"]
        {
            assert_eq!(integer(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn doubles_may_be_infinite_but_not_nan() {
        assert_eq!(double(b"1e-300"), Some(1e-300));
        assert_eq!(double(b"inf"), Some(f64::INFINITY));
        for word in ["", "nan", " 1", "1 ", "0.1x"] {
            assert_eq!(double(word.as_bytes()), None, "{word}");
        }
    }
}
