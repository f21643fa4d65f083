//! What is wrong with a filter that still answers: it holds more than it was made for, or its *no* is not certain.

use mayhap::Filter;
use mayhap::advise::say;
use mayhap_command::Health;

pub(crate) use mayhap_command::health::capacity_is_guessed;

/// Whether so much is in `filter` that it is wrong more often than it was made to be.
pub(crate) fn is_over_capacity(filter: &Filter) -> bool {
    let of = if capacity_is_guessed(filter) { Health::of_guess } else { Health::of };
    of(filter.target_fpr(), filter.expected_fpr()) != Health::Ok
}

/// What is said of a filter that is: these items are in it, it was made for so many, and these are its rate now and the one it was made for.
pub(crate) fn over_capacity(inserted: u64, capacity: u64, expected_fpr: f64, target_fpr: f64) -> String {
    let rates = format!(
        "strangers are answered mayhap at a rate of {}, not {}",
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

/// What its users should know, in plain words.
pub(crate) fn warnings(filter: &Filter) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_over_capacity(filter) {
        let (expected, target) = (filter.expected_fpr(), filter.target_fpr());
        warnings.push(over_capacity(filter.inserted(), filter.capacity(), expected, target));
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
