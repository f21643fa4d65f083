//! The figures of one generation: from its own counts and from its bits.

use mayhap::{BlockedPlacement, BloomPlacement, Fill, Filter, Sampling};

use super::body::Body;
use super::recipe::Recipe;
use super::served::Served;
use crate::health::{self, Assessment, Health};

/// The figures of a generation.
pub(crate) struct Numbers {
    pub(crate) placement: &'static str,
    pub(crate) capacity: u64,
    pub(crate) inserted: u64,
    pub(crate) target_fpr: f64,
    pub(crate) expected_fpr: f64,
    pub(crate) fill: f64,
    pub(crate) layers: u64,
    pub(crate) health: Health,
}

/// The number of inserted items, by its own count. The false-positive rate would take longer to compute.
pub(crate) fn inserted(served: &Served) -> u64 {
    match &served.body {
        Body::Nothing => 0,
        Body::List(_) => match served.copy() {
            Some(Ok(filter)) => filter.inserted(),
            _ => 0,
        },
        Body::Bloom(shared) => shared.inserted(),
        Body::Blocked(shared) => shared.inserted(),
        Body::Scalable(shared) => shared.inserted(),
        Body::Plain(filter) => filter.inserted(),
    }
}

/// The number of layers, tables or generations of a filter.
pub(crate) fn layers_of(filter: &Filter) -> u64 {
    match filter {
        Filter::ScalableBloom(scalable) => scalable.layers().len() as u64,
        Filter::DualBloom(_) => 2,
        Filter::ScalableCuckoo(cuckoo) => cuckoo.tables() as u64,
        Filter::Window(window) => window.generations().len() as u64,
        Filter::Ribbon(ribbon) => ribbon.layer_count() as u64,
        _ => 1,
    }
}

/// All figures. Reads as much of the bits as `sampling` allows.
pub(crate) fn of(served: &Served, sampling: Sampling) -> Numbers {
    match &served.body {
        Body::Nothing => of_nothing(served.recipe.as_deref()),
        // A list is small. Its figures are those of the filter it stands for.
        Body::List(_) => match served.copy() {
            Some(Ok(filter)) => of_filter(&filter, sampling),
            _ => of_nothing(served.recipe.as_deref()),
        },
        Body::Bloom(shared) => {
            let placement = shared.plain().placement();
            Numbers {
                placement: bloom_placement(placement),
                capacity: shared.capacity(),
                inserted: shared.inserted(),
                target_fpr: shared.target_fpr(),
                expected_fpr: shared.expected_fpr(),
                fill: 0.0,
                layers: 1,
                health: Health::Ok,
            }
            .with(shared.plain().fill_by(sampling), health::guessed_bloom(placement))
        }
        Body::Blocked(shared) => {
            let placement = shared.plain().placement();
            Numbers {
                placement: blocked_placement(placement),
                capacity: shared.capacity(),
                inserted: shared.inserted(),
                target_fpr: shared.target_fpr(),
                expected_fpr: shared.expected_fpr(),
                fill: 0.0,
                layers: 1,
                health: Health::Ok,
            }
            .with(shared.plain().fill_by(sampling), health::guessed_blocked(placement))
        }
        Body::Scalable(shared) => {
            let plain = shared.uncounted();
            let first = plain.layers().first();
            Numbers {
                placement: first.map_or("mayhap", |layer| bloom_placement(layer.placement())),
                capacity: shared.capacity(),
                inserted: shared.inserted(),
                target_fpr: plain.target_fpr(),
                expected_fpr: shared.expected_fpr(),
                fill: 0.0,
                layers: plain.layers().len() as u64,
                health: Health::Ok,
            }
            .with(plain.fill_by(sampling), false)
        }
        Body::Plain(filter) => of_filter(filter, sampling),
    }
}

impl Numbers {
    /// Adds what the bits show: their rate replaces the counted one if it is higher.
    fn with(self, fill: Fill, guessed: bool) -> Self {
        let certain = self.expected_fpr.max(fill.certain_fpr());
        let health = if guessed {
            Health::of_guess(self.target_fpr, certain)
        } else {
            Health::of(self.target_fpr, certain)
        };
        let expected_fpr = self.expected_fpr.max(fill.expected_fpr);
        Self { expected_fpr, fill: fill.share, health, ..self }
    }
}

/// Only the rates. The model for the inserted items is used only above capacity, because it takes longer than the sample.
pub(crate) fn assess(served: &Served, sampling: Sampling) -> Assessment {
    let rates = |target_fpr: f64, over: Option<f64>, fill: Fill, guessed: bool| {
        let (counted, bits) = (over.unwrap_or(0.0), fill.certain_fpr());
        let past = if guessed { Health::of_guess } else { Health::of };
        let health = past(target_fpr, counted.max(bits));
        Assessment { target_fpr, expected_fpr: counted.max(fill.expected_fpr), health }
    };
    match &served.body {
        // A list is exact.
        Body::Nothing | Body::List(_) => Assessment::FINE,
        Body::Bloom(shared) => {
            let over = (shared.inserted() > shared.capacity()).then(|| shared.expected_fpr());
            let guessed = health::guessed_bloom(shared.plain().placement());
            rates(shared.target_fpr(), over, shared.plain().fill_by(sampling), guessed)
        }
        Body::Blocked(shared) => {
            let over = (shared.inserted() > shared.capacity()).then(|| shared.expected_fpr());
            let guessed = health::guessed_blocked(shared.plain().placement());
            rates(shared.target_fpr(), over, shared.plain().fill_by(sampling), guessed)
        }
        Body::Scalable(shared) => {
            let plain = shared.uncounted();
            let over = (shared.inserted() > shared.capacity()).then(|| shared.expected_fpr());
            rates(plain.target_fpr(), over, plain.fill_by(sampling), false)
        }
        Body::Plain(filter) => match filter.fill(sampling) {
            // Its items would have to be counted, and it has no false positives.
            Some(_) if matches!(&**filter, Filter::Bitmap(_)) => Assessment::FINE,
            Some(fill) => {
                let over = (filter.inserted() > filter.capacity()).then(|| filter.expected_fpr());
                rates(filter.target_fpr(), over, fill, health::capacity_is_guessed(filter))
            }
            None => {
                let (target_fpr, expected_fpr) = (filter.target_fpr(), filter.expected_fpr());
                Assessment { target_fpr, expected_fpr, health: Health::of(target_fpr, expected_fpr) }
            }
        },
    }
}

/// The figures of an empty filter of this recipe.
fn of_nothing(recipe: Option<&Recipe>) -> Numbers {
    let (capacity, target_fpr) = match recipe {
        Some(Recipe::Static(fixed)) => (fixed.capacity.unwrap_or(0), fixed.target_fpr),
        _ => (0, 0.0),
    };
    Numbers {
        placement: "mayhap",
        capacity,
        inserted: 0,
        target_fpr,
        expected_fpr: 0.0,
        fill: 0.0,
        layers: 0,
        health: Health::Ok,
    }
}

fn of_filter(filter: &Filter, sampling: Sampling) -> Numbers {
    let fill = filter.fill(sampling);
    let capacity = filter.capacity();
    let inserted = match (filter, fill) {
        // Its items are its bits.
        (Filter::Bitmap(bitmap), Some(fill)) => (fill.share * bitmap.len() as f64).round() as u64,
        (filter, _) => filter.inserted(),
    };
    let placement = match filter {
        Filter::Bloom(bloom) => bloom_placement(bloom.placement()),
        Filter::BlockedBloom(blocked) => blocked_placement(blocked.placement()),
        Filter::ScalableBloom(scalable) => {
            scalable.layers().first().map_or("mayhap", |layer| bloom_placement(layer.placement()))
        }
        Filter::ScalableCuckoo(_) => "redis-bloom",
        filter if filter.items().is_some() => "foreign",
        _ => "mayhap",
    };
    let numbers = Numbers {
        placement,
        capacity,
        inserted,
        target_fpr: filter.target_fpr(),
        expected_fpr: filter.expected_fpr(),
        // A static filter is always full.
        fill: if inserted == 0 { 0.0 } else { (inserted as f64 / capacity.max(1) as f64).min(1.0) },
        layers: layers_of(filter),
        health: Health::of(filter.target_fpr(), filter.expected_fpr()),
    };
    match fill {
        Some(fill) => numbers.with(fill, health::capacity_is_guessed(filter)),
        None => numbers,
    }
}

const fn bloom_placement(placement: BloomPlacement) -> &'static str {
    match placement {
        BloomPlacement::Mayhap => "mayhap",
        BloomPlacement::RedisBloom => "redis-bloom",
        _ => "foreign",
    }
}

const fn blocked_placement(placement: BlockedPlacement) -> &'static str {
    match placement {
        BlockedPlacement::Split | BlockedPlacement::Line => "mayhap",
        _ => "foreign",
    }
}
