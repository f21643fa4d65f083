//! What is wrong with a filter that still answers: it holds more than it was made for, or its *no* is not certain.

use mayhap::advise::say;
use mayhap::{BloomPlacement, Filter};
use mayhap_command::Health;

pub(crate) use mayhap_command::health::capacity_is_guessed;

/// Whether so much is in `filter` that it is wrong more often than it was made to be.
pub(crate) fn is_over_capacity(filter: &Filter) -> bool {
    let of = if capacity_is_guessed(filter) { Health::of_guess } else { Health::of };
    of(filter.target_fpr(), filter.expected_fpr()) != Health::Ok
}

/// The warning for a filter past its capacity: items in it, capacity, rate now, target rate.
pub(crate) fn over_capacity(inserted: u64, capacity: u64, expected_fpr: f64, target_fpr: f64) -> String {
    let rates = format!(
        "non-members are answered mayhap at a rate of {}, not {}",
        say::rate(expected_fpr),
        say::rate(target_fpr)
    );
    if inserted <= capacity {
        return format!("over its rate: {rates}");
    }
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
        let (expected, target) = (filter.expected_fpr(), filter.target_fpr());
        warnings.push(over_capacity(filter.inserted(), filter.capacity(), expected, target));
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
