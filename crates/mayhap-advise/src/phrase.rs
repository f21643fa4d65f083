//! Parts of sentences and of source code.

use mayhap::say;

/// Describes how much larger `bytes` is than `others`: `8% more memory`, `no memory`, `2.4 times the memory`.
pub(crate) fn change(bytes: u64, others: u64) -> String {
    let change = bytes as f64 / others.max(1) as f64 - 1.0;
    match (change * 100.0).round() {
        percent if percent < 1.0 => "no memory".to_owned(),
        percent if change < 1.0 => format!("{percent:.0}% more memory"),
        _ => format!("{:.1} times the memory", change + 1.0),
    }
}

/// Formats a number as in Rust source: `1_000_000`.
pub(crate) fn source(number: u64) -> String {
    say::count(number).replace(',', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_numbers_are_valid_rust() {
        assert_eq!(source(1_000_000_000), "1_000_000_000");
        assert_eq!(source(0), "0");
    }
}
