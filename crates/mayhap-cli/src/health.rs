//! What is wrong with a filter that still answers: it holds more than it was made for, or its *no* is not certain.

use mayhap::advise::say;
use mayhap::{BlockedPlacement, BloomPlacement, Filter, WidePlacement};

/// A rate this many times the designed one is worth a word.
const WORTH_A_WORD: f64 = 1.1;
/// The same where nobody knows the designed one: programs differ in how full their filters are when full.
const WORTH_A_WORD_AT_A_GUESS: f64 = 2.0;

/// Whether so much is in `filter` that it is wrong more often than it was made to be.
pub(crate) fn is_over_capacity(filter: &Filter) -> bool {
    let limit = if capacity_is_guessed(filter) { WORTH_A_WORD_AT_A_GUESS } else { WORTH_A_WORD };
    filter.expected_fpr() > limit * filter.target_fpr()
}

/// Whether the filter is of a program whose files do not say what it was made for: capacity and rate are then those at which
/// half of its bits are set.
pub(crate) fn capacity_is_guessed(filter: &Filter) -> bool {
    match filter {
        Filter::Bloom(bloom) => matches!(
            bloom.placement(),
            BloomPlacement::Guava64
                | BloomPlacement::Guava32
                | BloomPlacement::Spark2
                | BloomPlacement::DataSketches
                | BloomPlacement::Rbloom
                | BloomPlacement::LevelDb
                | BloomPlacement::Cassandra
        ),
        Filter::BlockedBloom(blocked) => matches!(
            blocked.placement(),
            BlockedPlacement::Parquet | BlockedPlacement::RocksDbLegacy | BlockedPlacement::RocksDbFastLocal
        ),
        Filter::WideBloom(wide) => {
            matches!(wide.placement(), WidePlacement::BitsAndBlooms | WidePlacement::Bip37 { .. })
        }
        _ => false,
    }
}

/// What its users should know, in plain words.
pub(crate) fn warnings(filter: &Filter) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_over_capacity(filter) {
        let (inserted, capacity) = (filter.inserted(), filter.capacity());
        let rates = format!(
            "strangers are answered mayhap at a rate of {}, not {}",
            say::rate(filter.expected_fpr()),
            say::rate(filter.target_fpr())
        );
        warnings.push(if inserted > capacity {
            let times = inserted as f64 / capacity as f64;
            let more = if times < 2.0 {
                format!("{:.0}% more", (times - 1.0) * 100.0)
            } else {
                format!("{times:.1} times as many")
            };
            format!(
                "over capacity: it was made for {} and holds {}, {more}, so {rates}",
                say::items(capacity),
                say::count(inserted),
            )
        } else {
            format!("over its rate: {rates}")
        });
    }
    if let Filter::DualBloom(dual) = filter
        && dual.removed() > 0
    {
        warnings.push(format!(
            "items were removed, so a no is not certain: some {} of the items put in before are hidden",
            say::rate(dual.expected_false_no())
        ));
    }
    warnings
}
