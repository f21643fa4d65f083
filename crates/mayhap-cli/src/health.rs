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

/// Whether the items were not counted: the file of such a filter has no place for a count, and what is known follows from its bits.
pub(crate) fn count_is_guessed(filter: &Filter) -> bool {
    let redisson = |bloom: &mayhap::Bloom| bloom.placement() == BloomPlacement::Redisson;
    capacity_is_guessed(filter) || matches!(filter, Filter::Bloom(bloom) if redisson(bloom))
}

/// Whether the filter was made for no number of items and no rate: the file does not say one, or it grows as it needs.
pub(crate) fn has_no_capacity(filter: &Filter) -> bool {
    capacity_is_guessed(filter) || matches!(filter, Filter::Fingerprints(_))
}

/// What its users should know, in plain words.
pub(crate) fn warnings(filter: &Filter) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_over_capacity(filter) && capacity_is_guessed(filter) {
        warnings.push(format!(
            "more than half full: non-members are answered mayhap at a rate of {}",
            say::rate(filter.expected_fpr())
        ));
    } else if is_over_capacity(filter) {
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
    if let Filter::ScalableBloom(scalable) = filter
        && !scalable.shape().grows()
        && scalable.inserted() >= scalable.capacity()
    {
        warnings.push(format!(
            "full: it holds the {} it was made for, does not grow, and refuses what is new",
            say::items(scalable.capacity())
        ));
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
