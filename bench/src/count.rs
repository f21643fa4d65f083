//! Parses numbers of items: `1000000`, `1_000_000`, `1e6`, `2.5e7`.

/// More items than this would overlap the ids of the non-members.
pub(crate) const MOST_ITEMS: u64 = 1 << 40;

/// Parses a number of items.
///
/// # Errors
/// One clause that tells what is wrong with `text`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    let items = match plain.parse::<u64>() {
        Ok(items) => items,
        Err(_) => whole(plain.parse::<f64>().map_err(|_| format!("not a number of items: {text:?}"))?)
            .ok_or_else(|| format!("not a whole number of items: {text:?}"))?,
    };
    if (1..=MOST_ITEMS).contains(&items) {
        Ok(items)
    } else {
        Err(format!("items must be between 1 and {MOST_ITEMS}, got {items}"))
    }
}

/// Returns `value` as an integer, if a float holds it exactly.
fn whole(value: f64) -> Option<u64> {
    (value >= 0.0 && value <= (1u64 << 53) as f64 && value.fract() == 0.0).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_are_parsed() {
        assert_eq!(parse("20000"), Ok(20_000));
        assert_eq!(parse("1_000_000"), Ok(1_000_000));
        assert_eq!(parse("1e6"), Ok(1_000_000));
        assert_eq!(parse("1e8"), Ok(100_000_000));
        assert_eq!(parse("2.5e7"), Ok(25_000_000));
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        for text in ["", "many", "0", "-5", "1.5", "1e-3", "1e13", "nan", "inf"] {
            assert!(parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
