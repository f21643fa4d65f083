//! Warnings about a filter that still answers: it holds more than its capacity, or its *no* is not certain.

use mayhap::{BloomPlacement, Filter, say};
use mayhap_command::Health;

pub(crate) use mayhap_command::health::capacity_is_guessed;

/// Returns `true` if `filter` holds so much that its false-positive rate exceeds the target.
pub(crate) fn is_over_capacity(filter: &Filter) -> bool {
    let of = if capacity_is_guessed(filter) { Health::of_guess } else { Health::of };
    of(filter.target_fpr(), filter.expected_fpr()) != Health::Ok
}

/// The warning for a filter above its capacity: items in it, capacity, rate now, target rate.
pub(crate) fn over_capacity(inserted: u64, capacity: u64, expected_fpr: f64, target_fpr: f64) -> String {
    let rates =
        format!("the false-positive rate is {}, not {}", say::rate(expected_fpr), say::rate(target_fpr));
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
        "over capacity: made for {}, holds {} ({more}); {rates}",
        say::items(capacity),
        say::count(inserted),
    )
}

/// Returns `true` if the number of items is only estimated, from the bits: the file of such a filter stores no count.
pub(crate) fn count_is_guessed(filter: &Filter) -> bool {
    let redisson = |bloom: &mayhap::Bloom| bloom.placement() == BloomPlacement::Redisson;
    capacity_is_guessed(filter) || matches!(filter, Filter::Bloom(bloom) if redisson(bloom))
}

/// Returns `true` if the filter has no fixed capacity and rate: the file does not store them, or the filter grows.
pub(crate) fn has_no_capacity(filter: &Filter) -> bool {
    capacity_is_guessed(filter) || matches!(filter, Filter::Fingerprints(_))
}

/// The warnings for the users of the filter.
pub(crate) fn warnings(filter: &Filter) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_over_capacity(filter) && capacity_is_guessed(filter) {
        warnings.push(format!(
            "more than half full: the false-positive rate is {}",
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
            "full: it holds its capacity of {}, does not grow, and rejects new items",
            say::items(scalable.capacity())
        ));
    }
    if let Filter::DualBloom(dual) = filter
        && dual.removed() > 0
    {
        warnings.push(format!(
            "items were removed, so a no is not certain: about {} of the items in the filter get a false no",
            say::rate(dual.expected_false_no())
        ));
    }
    warnings
}
