//! Items that a Rust program and another one both have.

use mayhap::{Item, ItemValue};

/// An item, of one type or another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Text(String),
    Int(i32),
    Long(i64),
}

/// The type of the items of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Items {
    Texts,
    Ints,
    Longs,
}

impl Items {
    /// Item `i`; all are different.
    pub(crate) fn item(self, i: u64) -> Given {
        match self {
            Self::Texts => Given::Text(match i % 4 {
                0 => format!("item-{i}"),
                1 => format!("Straße Nr. {i}, 布隆过滤器"),
                2 => format!("{i}😀"),
                _ => "-".repeat(i as usize % 300) + &i.to_string(),
            }),
            // Odd factors permute the numbers of their width.
            Self::Ints => Given::Int((i as u32).wrapping_mul(0x9e37_79b1) as i32),
            Self::Longs => Given::Long(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64),
        }
    }

    /// The items from number `from` on.
    pub(crate) fn some(self, from: u64, count: u64) -> Vec<Given> {
        (from..from + count).map(|i| self.item(i)).collect()
    }
}

impl Given {
    /// As one line of text.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Int(number) => number.to_string(),
            Self::Long(number) => number.to_string(),
        }
    }
}

impl Item for Given {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Text(text) => text.with_bytes(read),
            Self::Int(number) => number.with_bytes(read),
            Self::Long(number) => number.with_bytes(read),
        }
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        match self {
            Self::Text(text) => text.with_value(read),
            Self::Int(number) => number.with_value(read),
            Self::Long(number) => number.with_value(read),
        }
    }
}
