//! Numbers as users write them, in flags of the program and in settings: `1e9`, `1_000_000`, `10M`, `64MiB`, `1%`,
//! `1-in-1M`, `0..999`, `90s`.

use std::fmt;
use std::time::Duration;

/// Why a text is not a quantity. The caller adds the text and the flag.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is empty.
    Empty,
    /// Not a number followed by a unit.
    NotANumber {
        /// A valid example.
        example: &'static str,
    },
    /// A number followed by an unknown unit.
    UnknownUnit {
        /// The unknown unit.
        unit: String,
        /// The known units.
        known: &'static str,
        /// The unit that was probably meant.
        meant: Option<&'static str>,
    },
    /// A count below zero.
    Negative,
    /// A count that is not a whole number.
    NotWhole,
    /// The number is too large.
    TooLarge {
        /// The largest allowed number.
        limit: u64,
    },
    /// A rate outside the range.
    RateOutOfRange,
    /// Not two numbers with `..` between them.
    NotARange,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the value is empty"),
            Self::NotANumber { example } => write!(f, "not a number; write for example {example}"),
            Self::UnknownUnit { unit, meant: Some(meant), .. } => {
                write!(f, "unknown unit {unit:?}, did you mean {meant}?")
            }
            Self::UnknownUnit { unit, known, meant: None } => {
                write!(f, "unknown unit {unit:?}; known units: {known}")
            }
            Self::Negative => f.write_str("must not be negative"),
            Self::NotWhole => f.write_str("must be a whole number"),
            Self::TooLarge { limit } => write!(f, "must be at most {limit}"),
            Self::RateOutOfRange => f.write_str("a rate must be greater than 0 and less than 1 (100%)"),
            Self::NotARange => {
                f.write_str("a range is LOW..HIGH with both ends included, for example 0..4294967295")
            }
        }
    }
}

impl std::error::Error for QuantityError {}

const COUNT_UNITS: &str = "k, M, G and T";
const TIME_UNITS: &str = "ms, s, m, h and d";
const TIME_EXAMPLE: &str = "90s or 1.5h";
const BYTE_UNITS: &str = "B; K, M, G, T or KiB, MiB, GiB, TiB (1024); kB, MB, GB, TB (1000)";

/// Parses a count: `1e9`, `1_000_000`, `1,000,000`, `10M`, `1.5k`.
///
/// # Errors
/// [`QuantityError`].
pub fn count(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, "1e9 or 10M")?;
    let scale = match unit {
        "" => 0,
        "k" | "K" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        unit => {
            let meant = match unit {
                "m" | "mio" | "mln" => Some("M"),
                "g" | "b" | "B" | "bn" => Some("G"),
                "t" => Some("T"),
                _ => None,
            };
            return Err(QuantityError::UnknownUnit { unit: unit.into(), known: COUNT_UNITS, meant });
        }
    };
    let digits = Decimal::parse(number, "1e9 or 10M")?;
    digits.times(10_u64.pow(scale))?.whole()
}

/// Parses an amount of memory in bytes: `64MiB`, `64M`, `1.5GB`, `1e9`. `K`, `M`, `G` and `T` alone are the binary units, as
/// usual in the shell. A fraction of a byte is dropped, but a positive number of less than one byte is an error.
///
/// # Errors
/// [`QuantityError`].
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, "64MiB or 1GB")?;
    let scale = match unit {
        "" | "B" => 1,
        "K" | "k" | "KiB" | "Ki" => 1 << 10,
        "M" | "MiB" | "Mi" => 1 << 20,
        "G" | "GiB" | "Gi" => 1 << 30,
        "T" | "TiB" | "Ti" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        unit => {
            let meant = match unit.to_ascii_lowercase().as_str() {
                "b" => Some("B"),
                "kb" => Some("kB (1000 bytes) or KiB (1024)"),
                "kib" | "ki" => Some("KiB"),
                "m" | "mib" | "mi" => Some("MiB"),
                "mb" => Some("MB (a million bytes) or MiB (1024 KiB)"),
                "g" | "gib" | "gi" => Some("GiB"),
                "gb" => Some("GB (a billion bytes) or GiB (1024 MiB)"),
                "t" | "tib" | "ti" => Some("TiB"),
                "tb" => Some("TB (a trillion bytes) or TiB (1024 GiB)"),
                _ => None,
            };
            return Err(QuantityError::UnknownUnit { unit: unit.into(), known: BYTE_UNITS, meant });
        }
    };
    let bytes = Decimal::parse(number, "64MiB or 1GB")?.times(scale)?;
    match bytes.floor()? {
        // 0 often means without a limit.
        0 if bytes.digits != 0 => Err(QuantityError::NotWhole),
        whole => Ok(whole),
    }
}

/// Parses a rate strictly between 0 and 1: `0.01`, `1e-6`, `1%`, `1-in-1M`, `1/1000`.
///
/// # Errors
/// [`QuantityError`].
pub fn rate(text: &str) -> Result<f64, QuantityError> {
    const EXAMPLE: &str = "0.01, 1% or 1-in-1M";
    let text = text.trim();
    let parts = ["-in-", " in ", "/"].iter().find_map(|between| text.split_once(between));
    let rate = if let Some((wrong, of)) = parts {
        let (wrong, of) = (count(wrong)?, count(of)?);
        if of == 0 { f64::NAN } else { wrong as f64 / of as f64 }
    } else {
        let (number, unit) = split(text, EXAMPLE)?;
        let value = Decimal::parse(number, EXAMPLE)?.value();
        match unit {
            "" => value,
            "%" => value / 100.0,
            unit => return Err(QuantityError::UnknownUnit { unit: unit.into(), known: "%", meant: None }),
        }
    };
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(QuantityError::RateOutOfRange) }
}

/// Parses a range of integers, both ends included: `13000000000..19999999999`, `0..=255`.
///
/// # Errors
/// [`QuantityError`].
pub fn range(text: &str) -> Result<(u64, u64), QuantityError> {
    let (low, high) = text.split_once("..").ok_or(QuantityError::NotARange)?;
    let high = high.strip_prefix('=').unwrap_or(high);
    if low.trim().is_empty() || high.trim().is_empty() {
        return Err(QuantityError::NotARange);
    }
    Ok((count(low)?, count(high)?))
}

/// Parses a number of bytes as Redis's `CONFIG SET` does: a whole number, `1k` is 1000, `1kb` is 1024; case does not
/// matter.
#[must_use]
pub fn redis_bytes(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// Parses a number of whole seconds, with or without a unit: `90`, `90s`, `5m`, `1.5h`.
///
/// # Errors
/// [`QuantityError`].
pub fn seconds(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, TIME_EXAMPLE)?;
    let milliseconds = match unit {
        "" => 1_000,
        unit => milliseconds(unit).ok_or_else(|| QuantityError::UnknownUnit {
            unit: unit.into(),
            known: TIME_UNITS,
            meant: None,
        })?,
    };
    let time = Decimal::parse(number, TIME_EXAMPLE)?.times(milliseconds)?;
    Decimal { exponent: time.exponent - 3, ..time }.whole()
}

/// Parses a time with a unit: `500ms`, `90s`, `15min`, `1.5h`, `7d`. A fraction of a millisecond is dropped. `None` if the
/// text does not end with a unit of time.
#[must_use]
pub fn duration(text: &str) -> Option<Result<Duration, QuantityError>> {
    let (number, unit) = split(text, TIME_EXAMPLE).ok()?;
    let unit = milliseconds(unit)?;
    let time = Decimal::parse(number, TIME_EXAMPLE).and_then(|number| number.times(unit)?.floor());
    Some(time.map(Duration::from_millis))
}

/// The milliseconds of a unit of time.
fn milliseconds(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" | "sec" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

/// Formats `bytes` with the largest unit that leaves a whole number, for settings. [`bytes`] parses the text.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(|| bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

/// Splits `text` into a number and the unit after it.
fn split<'a>(text: &'a str, example: &'static str) -> Result<(&'a str, &'a str), QuantityError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let unit_from = unit_start(text);
    let (number, unit) = text.split_at(unit_from);
    // An `e` after the digits is an incomplete exponent. A hyphen without digits may be the next flag.
    if !number.contains(|letter: char| letter.is_ascii_digit()) || matches!(unit, "e" | "E") {
        return Err(QuantityError::NotANumber { example });
    }
    Ok((number.trim(), unit.trim()))
}

/// The end of the number: the first letter or sign that is not part of an exponent.
fn unit_start(text: &str) -> usize {
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        let exponent = matches!(letter, 'e' | 'E')
            && previous.is_ascii_digit()
            && text[at + 1..].starts_with(|next: char| next.is_ascii_digit() || next == '-' || next == '+');
        let sign = matches!(letter, '-' | '+') && (at == 0 || matches!(previous, 'e' | 'E'));
        if !(letter.is_ascii_digit() || matches!(letter, '.' | '_' | ',') || exponent || sign) {
            return at;
        }
        previous = letter;
    }
    text.len()
}

/// An exact decimal number: `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// Larger exponents make any number infinite or zero.
    const MAX_EXPONENT: i32 = 400;

    fn parse(text: &str, example: &'static str) -> Result<Self, QuantityError> {
        let bad = || QuantityError::NotANumber { example };
        if text.starts_with('-') {
            return Err(QuantityError::Negative);
        }
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = ungrouped(whole.strip_prefix('+').unwrap_or(whole)).ok_or_else(bad)?;
        if (whole.is_empty() && part.is_empty()) || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let exponent: i32 = exponent.parse().map_err(|_| bad())?;
        if exponent.abs() > Self::MAX_EXPONENT || part.len() > 100 {
            return Err(QuantityError::TooLarge { limit: u64::MAX });
        }
        let part = part.trim_end_matches('0');
        let digits =
            format!("0{whole}{part}").parse().map_err(|_| QuantityError::TooLarge { limit: u64::MAX })?;
        Ok(Self { digits, exponent: exponent - part.len() as i32 })
    }

    fn times(self, scale: u64) -> Result<Self, QuantityError> {
        let digits =
            self.digits.checked_mul(scale.into()).ok_or(QuantityError::TooLarge { limit: u64::MAX })?;
        Ok(Self { digits, ..self })
    }

    /// The number, if it is whole.
    fn whole(self) -> Result<u64, QuantityError> {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let divides = power.is_some_and(|power| self.digits.is_multiple_of(power));
        if self.exponent < 0 && self.digits != 0 && !divides {
            return Err(QuantityError::NotWhole);
        }
        self.floor()
    }

    /// The number rounded down.
    fn floor(self) -> Result<u64, QuantityError> {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let floor = match (self.exponent < 0, power) {
            _ if self.digits == 0 => Some(0),
            (true, Some(power)) => Some(self.digits / power),
            (true, None) => Some(0),
            (false, power) => power.and_then(|power| self.digits.checked_mul(power)),
        };
        let too_large = QuantityError::TooLarge { limit: u64::MAX };
        floor.and_then(|floor| u64::try_from(floor).ok()).ok_or(too_large)
    }

    /// The nearest floating-point number, as for a literal in source code.
    fn value(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }
}

/// `text` without the separators between its thousands; `None` if it is not digits. Underscores may be anywhere between
/// digits, commas only before groups of three, so that `1,5` is not read as fifteen.
fn ungrouped(text: &str) -> Option<String> {
    let text = if text.contains('_') && !text.starts_with('_') && !text.ends_with('_') {
        text.replace('_', "")
    } else {
        text.to_owned()
    };
    let mut groups = text.split(',');
    let first = groups.next()?;
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.is_empty() {
            return None;
        }
        digits.push_str(group);
    }
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_every_form() {
        let written = [
            ("1e9", 1_000_000_000),
            ("1E9", 1_000_000_000),
            ("1e+3", 1_000),
            ("1_000_000", 1_000_000),
            ("1,000,000", 1_000_000),
            ("10M", 10_000_000),
            ("1.5k", 1_500),
            ("2.5e3", 2_500),
            ("2G", 2_000_000_000),
            ("1T", 1_000_000_000_000),
            (" 7 ", 7),
            ("7.0", 7),
            ("100e-2", 1),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
            ("9007199254740993", 9_007_199_254_740_993), // not representable as a float
        ];
        for (text, number) in written {
            assert_eq!(count(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn invalid_counts_have_distinct_errors() {
        let not_a_number = Err(QuantityError::NotANumber { example: "1e9 or 10M" });
        for text in [
            "nan", "inf", "M", "1,5", "1,0000", "_1", "1__", ".", "1.2.3", "e9", "1e", "1E", "1e+", "--json",
            "-", ",100", "1.0_0",
        ] {
            assert_eq!(count(text), not_a_number, "{text}");
        }
        assert_eq!(count(""), Err(QuantityError::Empty));
        assert_eq!(count("  "), Err(QuantityError::Empty));
        assert_eq!(count("-1"), Err(QuantityError::Negative));
        assert_eq!(count("1.5"), Err(QuantityError::NotWhole));
        assert_eq!(count("1e-1"), Err(QuantityError::NotWhole));
        assert_eq!(count("1e-300"), Err(QuantityError::NotWhole));
        for text in
            ["1e30", "1e999999999", "18446744073709551616", "99999999999999999999999999999999999999999999"]
        {
            let error = count(text);
            assert!(
                matches!(error, Err(QuantityError::TooLarge { .. } | QuantityError::NotANumber { .. })),
                "{text}"
            );
        }
        assert!(
            matches!(count("3 apples"), Err(QuantityError::UnknownUnit { unit, .. }) if unit == "apples")
        );
        assert!(matches!(count("3MiB"), Err(QuantityError::UnknownUnit { .. })));
    }

    #[test]
    fn bytes_accept_binary_and_decimal_units() {
        let written = [
            ("64MiB", 64 << 20),
            ("64Mi", 64 << 20),
            ("64M", 64 << 20),
            ("64 MiB", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("64MB", 64_000_000),
            ("1GB", 1_000_000_000),
            ("1kB", 1_000),
            ("1K", 1_024),
            ("1e9", 1_000_000_000),
            ("512B", 512),
            ("0.3K", 307),
            ("2TiB", 2 << 40),
        ];
        for (text, number) in written {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        // Ambiguous: millions or mebi?
        let said = |error: Result<u64, QuantityError>| error.unwrap_err().to_string();
        assert_eq!(
            said(bytes("64mb")),
            "unknown unit \"mb\", did you mean MB (a million bytes) or MiB (1024 KiB)?"
        );
        assert_eq!(said(bytes("64m")), "unknown unit \"m\", did you mean MiB?");
        assert_eq!(said(count("10m")), "unknown unit \"m\", did you mean M?");
        assert!(said(bytes("64 apples")).contains("known units: B; K, M"));
        assert!(matches!(bytes("1e30"), Err(QuantityError::TooLarge { .. })));
        assert_eq!(bytes("-1"), Err(QuantityError::Negative));
        assert_eq!((bytes("0.5"), bytes("1e-4K"), bytes("0.0")), (not_whole(), not_whole(), Ok(0)));
    }

    #[test]
    fn rates_in_every_form() {
        let written = [
            ("0.01", 0.01),
            (".5", 0.5),
            ("1%", 0.01),
            ("0.1 %", 0.001),
            ("1e-6", 1e-6),
            ("1-in-1M", 1e-6),
            ("1 in 1000", 1e-3),
            ("3/1000", 3e-3),
        ];
        for (text, number) in written {
            assert_eq!(rate(text), Ok(number), "{text}");
        }
        for text in ["0", "1", "1.5", "100%", "0%", "1-in-1", "1/0", "0/5", "1e-400"] {
            assert_eq!(rate(text), Err(QuantityError::RateOutOfRange), "{text}");
        }
        assert_eq!(rate("-1"), Err(QuantityError::Negative));
        assert_eq!(rate(""), Err(QuantityError::Empty));
        for text in ["nan", "inf", "lots"] {
            assert!(matches!(rate(text), Err(QuantityError::NotANumber { .. })), "{text}");
        }
        assert!(matches!(rate("5‰"), Err(QuantityError::UnknownUnit { .. })));
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(range("13000000000..19999999999"), Ok((13_000_000_000, 19_999_999_999)));
        assert_eq!(range("0..=255"), Ok((0, 255)));
        assert_eq!(range("1k .. 2k"), Ok((1_000, 2_000)));
        for text in ["", "5", "..", "5..", "..5", "5-6"] {
            assert_eq!(range(text), Err(QuantityError::NotARange), "{text}");
        }
        assert_eq!(range("-5..5"), Err(QuantityError::Negative));
    }
    #[test]
    fn times_have_units() {
        let milliseconds = |text: &str| duration(text).map(|time| time.map(|time| time.as_millis() as u64));
        for (text, time) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("90 sec", 90_000),
            ("15m", 900_000),
            ("15min", 900_000),
            ("1.5h", 5_400_000),
            ("7d", 604_800_000),
            ("1e3s", 1_000_000),
            ("0.4ms", 0),
        ] {
            assert_eq!(milliseconds(text), Some(Ok(time)), "{text}");
        }
        for text in ["90", "5M", "5k", "", "s", "5 apples", "1e"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(duration("-5s"), Some(Err(QuantityError::Negative)));
        assert!(matches!(duration("1e30d"), Some(Err(QuantityError::TooLarge { .. }))));

        for (text, time) in
            [("90", 90), ("90s", 90), ("5m", 300), ("1h", 3_600), ("1.5h", 5_400), ("1d", 86_400)]
        {
            assert_eq!(seconds(text), Ok(time), "{text}");
        }
        // Not 0, which often means without a limit.
        assert_eq!(seconds("500ms"), Err(QuantityError::NotWhole));
        assert_eq!(seconds("-1"), Err(QuantityError::Negative));
        assert!(matches!(seconds("5M"), Err(QuantityError::UnknownUnit { .. })));
        assert_eq!(seconds("1h30m"), Err(unknown("h30m", TIME_UNITS)));
    }

    fn not_whole() -> Result<u64, QuantityError> {
        Err(QuantityError::NotWhole)
    }

    fn unknown(unit: &str, known: &'static str) -> QuantityError {
        QuantityError::UnknownUnit { unit: unit.into(), known, meant: None }
    }

    #[test]
    fn bytes_are_parsed_and_formatted_alike() {
        for (text, amount) in [("0", 0), ("4GiB", 4 << 30), ("64M", 64 << 20), ("1MB", 1_000_000), ("7B", 7)]
        {
            assert_eq!(bytes(text), Ok(amount), "{text}");
            assert_eq!(bytes(&format_bytes(amount)), Ok(amount), "{text}");
        }
        for text in ["", "-1", "GiB", "1gb", "18446744073709551616", "16777216TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(
            (redis_bytes("1k"), redis_bytes("1Kb"), redis_bytes("2GB")),
            (Some(1_000), Some(1_024), Some(2 << 30))
        );
        for text in ["", "-1", "1.5gb", "1e9", "1 gb", "1tb", "17179869184gb"] {
            assert_eq!(redis_bytes(text), None, "{text}");
        }
    }
}
