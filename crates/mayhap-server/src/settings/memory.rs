//! The memory limit: `4GiB`, `80%`.

use crate::{machine, quantity};

/// An amount of memory: a number of bytes, or a share of the memory that this process can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the memory of the machine or of the control group.
    Percent(u8),
}

impl Memory {
    /// Parses `4GiB` or `80%`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| (1..=100).contains(percent)).map(Self::Percent)
            }
            None => quantity::bytes(text).ok().map(Self::Bytes),
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

    /// Returns the text that [`read`](Self::read) parses.
    #[must_use]
    pub fn to_text(self) -> String {
        match self {
            Self::Bytes(bytes) => quantity::format_bytes(bytes),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
