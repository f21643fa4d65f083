//! Formats numbers: as C does, for replies that must look the same, and as doubles in replies.

/// The shortest text that identifies the number. Integers have no fraction; very large and very small numbers have an exponent of at
/// least two digits.
#[must_use]
pub fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    if number == 0.0 || (1e-4..1e17).contains(&number.abs()) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    with_exponent(digits, exponent.parse().unwrap_or(0))
}

/// Rust writes 1e-5; C writes 1e-05.
fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Like `%g` in C: six significant digits, no trailing zeros, and an exponent where that is shorter.
#[must_use]
pub fn general(number: f64) -> String {
    const DIGITS: i32 = 6;
    if number == 0.0 || !number.is_finite() {
        return number.to_string().to_lowercase();
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..DIGITS).contains(&exponent) {
        return with_exponent(without_zeros(digits), exponent);
    }
    let decimals = (DIGITS - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{number:.decimals$}")).to_owned()
}

/// Removes trailing zeros after the decimal point, and the point if nothing follows it.
fn without_zeros(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_formatted_as_in_c() {
        for (number, text) in [
            (0.005, "0.005"),
            (0.0025, "0.0025"),
            (0.01 / 3.0, "0.00333333"),
            (0.0000195, "1.95e-05"),
            (0.00012, "0.00012"),
            (0.000_099_999_99, "0.0001"),
            (1e-310, "1e-310"),
            (0.25, "0.25"),
            (123_456.7, "123457"),
            (1_234_567.0, "1.23457e+06"),
            (0.0, "0"),
        ] {
            assert_eq!(general(number), text);
        }
    }
}
