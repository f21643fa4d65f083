//! Amounts in settings: `4GiB`, `64MB`, `512`; `90s`, `5m`, `1h`.

use crate::machine;

/// Parses a number of bytes: a whole number with an optional unit. `K`, `M`, `G` and `T` alone are binary
/// units.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let scale: u64 = match unit {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// Parses a number of bytes as Redis's `CONFIG SET` does: `1k` is 1000, `1kb` is 1024; case does not matter.
#[must_use]
pub fn redis_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
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

/// An amount of memory: a number of bytes, or a share of the memory that this process can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Bytes.
    Bytes(u64),
    /// Percent of the memory of the machine or of the control group.
    Percent(u8),
}

impl Memory {
    /// `4GiB`, `80%`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| (1..=100).contains(percent)).map(Self::Percent)
            }
            None => bytes(text).map(Self::Bytes),
        }
    }

    /// Returns the number of bytes. 0 means no limit; it is also the result for a share if the system does
    /// not report its memory.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => machine::memory_bytes().unwrap_or(0) / 100 * u64::from(percent),
        }
    }

    /// The text that [`read`](Self::read) parses.
    #[must_use]
    pub fn to_text(self) -> String {
        match self {
            Self::Bytes(bytes) => format_bytes(bytes),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }
}

/// Parses a number of seconds: a whole number with an optional unit `s`, `m` or `h`.
#[must_use]
pub fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// Formats `bytes` with the largest unit that leaves a whole number.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(|| bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_parsed_and_formatted_alike() {
        for (text, amount) in [("0", 0), ("4GiB", 4 << 30), ("64M", 64 << 20), ("1MB", 1_000_000), ("7B", 7)]
        {
            assert_eq!(bytes(text), Some(amount), "{text}");
            assert_eq!(bytes(&format_bytes(amount)), Some(amount), "{text}");
        }
        for text in ["", "-1", "1.5G", "4 GiB", "GiB", "1gb", "18446744073709551616", "16777216TiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert_eq!(
            (redis_bytes("1k"), redis_bytes("1Kb"), redis_bytes("2GB")),
            (Some(1_000), Some(1_024), Some(2 << 30))
        );
    }

    #[test]
    fn memory_is_bytes_or_a_share() {
        for (text, memory) in
            [("0", Memory::Bytes(0)), ("2GiB", Memory::Bytes(2 << 30)), ("80%", Memory::Percent(80))]
        {
            assert_eq!(Memory::read(text), Some(memory), "{text}");
            assert_eq!(memory.to_text(), text);
        }
        for text in ["0%", "101%", "%", "-1%", "1.5%", ""] {
            assert_eq!(Memory::read(text), None, "{text}");
        }
        let (half, all) = (Memory::Percent(50).bytes(), Memory::Percent(100).bytes());
        assert!(half > 1 << 20 && half.abs_diff(all / 2) < 1_000, "{half} of {all}");
    }

    #[test]
    fn seconds_have_units() {
        assert_eq!(
            (seconds("90"), seconds("5m"), seconds("1h"), seconds("1d")),
            (Some(90), Some(300), Some(3_600), None)
        );
    }
}
