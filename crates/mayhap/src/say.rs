//! Numbers in human-readable form: `1.23 GiB`, `1,000,000`, `0.1%`, `1 in 1,000,000`.

/// Memory in binary units with three digits: `512 B`, `1.23 GiB`, `834 MiB`.
///
/// ```
/// # use mayhap::say;
/// assert_eq!(say::bytes(512), "512 B");
/// assert_eq!(say::bytes(64 << 20), "64.0 MiB");
/// ```
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    // 999.5 would be written with four digits: it belongs to the next unit.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A count with thousands separators: `1,000,000`.
///
/// ```
/// # use mayhap::say;
/// assert_eq!(say::count(19_999_999_999), "19,999,999,999");
/// assert_eq!(say::count(999), "999");
/// ```
#[must_use]
pub fn count(count: u64) -> String {
    grouped(count, ',')
}

/// A number of items.
///
/// ```
/// # use mayhap::say;
/// assert_eq!(say::items(1), "1 item");
/// assert_eq!(say::items(1_000), "1,000 items");
/// ```
#[must_use]
pub fn items(count: u64) -> String {
    format!("{} {}", self::count(count), if count == 1 { "item" } else { "items" })
}

/// A rate in percent, or `1 in N` if it is below 0.01 %, with at most three digits.
///
/// ```
/// # use mayhap::say;
/// assert_eq!(say::rate(0.01), "1%");
/// assert_eq!(say::rate(0.0123456), "1.23%");
/// assert_eq!(say::rate(1e-6), "1 in 1,000,000");
/// assert_eq!(say::rate(0.0), "never");
/// ```
#[must_use]
pub fn rate(rate: f64) -> String {
    if rate <= 0.0 {
        return "never".into();
    }
    // Rates are computed: 1e-4 may arrive as 0.99999e-4.
    if rate >= 0.999e-4 {
        if (0.9995..1.0).contains(&rate) {
            return nearly_all(rate * 100.0);
        }
        let percent = three_digits(rate * 100.0);
        let short = percent.trim_end_matches('0').trim_end_matches('.');
        return format!("{}%", if percent.contains('.') { short } else { &percent });
    }
    format!("1 in {}", count(rounded(1.0 / rate)))
}

/// With as many digits as needed to differ from 100 %.
fn nearly_all(percent: f64) -> String {
    let mut written = (1..16).map(|decimals| format!("{percent:.decimals$}%"));
    written.find(|written| !written.starts_with("100")).unwrap_or_else(|| "nearly 100%".into())
}

/// The share of non-members that are false positives: `1% of the non-members`, `1 in 1,000,000 non-members`.
#[must_use]
pub fn non_members(rate: f64) -> String {
    let said = self::rate(rate);
    if said.ends_with('%') { format!("{said} of the non-members") } else { format!("{said} non-members") }
}

/// A large number rounded to three digits, for estimates.
#[must_use]
pub fn rounded(value: f64) -> u64 {
    if !value.is_finite() || value < 1000.0 {
        return value.round() as u64;
    }
    let step = 10_f64.powi(value.log10().floor() as i32 - 2);
    ((value / step).round() * step) as u64
}

fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Three significant digits, written without an exponent: `1.23`, `12.3`, `123`, `0.0123`.
fn three_digits(value: f64) -> String {
    // The magnitude after rounding: 9.996 is 10.0, not 10.00.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let magnitude = rounded.abs().log10().floor();
    let decimals = if rounded == 0.0 { 0 } else { (2 - magnitude as i32).max(0) as usize };
    format!("{rounded:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_and_the_right_unit() {
        let said = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_317_590_656, "1.23 GiB"),
            (875_000_000, "834 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (9_999 * 1024, "9.76 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (number, words) in said {
            assert_eq!(bytes(number), words);
        }
    }

    #[test]
    fn rates_are_percent_or_one_in_many() {
        let said = [
            (0.999_999, "99.9999%"),
            (0.9996, "99.96%"),
            (1.0, "100%"),
            (0.5, "50%"),
            (0.1, "10%"),
            (0.001, "0.1%"),
            (0.009_996, "1%"),
            (1e-4, "0.01%"),
            (0.000_123_4, "0.0123%"),
            (1e-5, "1 in 100,000"),
            (3e-7, "1 in 3,330,000"),
            (1e-15, "1 in 1,000,000,000,000,000"),
        ];
        for (number, words) in said {
            assert_eq!(rate(number), words);
        }
    }

    #[test]
    fn large_numbers_keep_three_digits() {
        assert_eq!(rounded(999.4), 999);
        assert_eq!(rounded(1_234_567.0), 1_230_000);
    }
}
