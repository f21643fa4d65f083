//! The numbers of one generation, worked out without reading its bits.

use mayhap::{BlockedPlacement, BlockedShape, BloomPlacement, BloomShape, Filter};

use super::body::Body;
use super::recipe::Recipe;
use super::served::Served;

/// The numbers of a generation.
pub(crate) struct Numbers {
    pub(crate) placement: &'static str,
    pub(crate) capacity: u64,
    pub(crate) inserted: u64,
    pub(crate) target_fpr: f64,
    pub(crate) expected_fpr: f64,
    pub(crate) fill: f64,
    pub(crate) layers: u64,
}

/// Items that are in, by its own count, and nothing else: how often it is wrong takes longer to work out.
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

/// How many layers, tables or generations it has, and nothing else.
pub(crate) fn layers(served: &Served) -> u64 {
    match &served.body {
        Body::Nothing => 0,
        // It stands for a filter that has not grown.
        Body::List(_) | Body::Bloom(_) | Body::Blocked(_) => 1,
        Body::Scalable(shared) => shared.layers() as u64,
        Body::Plain(filter) => layers_of(filter),
    }
}

fn layers_of(filter: &Filter) -> u64 {
    match filter {
        Filter::ScalableBloom(scalable) => scalable.layers().len() as u64,
        Filter::DualBloom(_) => 2,
        Filter::ScalableCuckoo(cuckoo) => cuckoo.tables() as u64,
        Filter::Window(window) => window.generations().len() as u64,
        Filter::Ribbon(ribbon) => ribbon.layer_count() as u64,
        _ => 1,
    }
}

pub(crate) fn of(served: &Served) -> Numbers {
    match &served.body {
        Body::Nothing => of_nothing(served.recipe.as_deref()),
        // Small, and its numbers are those of the filter it stands for.
        Body::List(_) => match served.copy() {
            Some(Ok(filter)) => of_filter(&filter),
            _ => of_nothing(served.recipe.as_deref()),
        },
        Body::Bloom(shared) => Numbers {
            inserted: shared.inserted(),
            expected_fpr: shared.expected_fpr(),
            fill: bloom_fill(shared.shape(), shared.inserted()),
            ..of_bloom(shared.plain())
        },
        Body::Blocked(shared) => Numbers {
            placement: blocked_placement(shared.plain().placement()),
            capacity: shared.capacity(),
            inserted: shared.inserted(),
            target_fpr: shared.target_fpr(),
            expected_fpr: shared.expected_fpr(),
            fill: blocked_fill(shared.shape(), shared.inserted()),
            layers: 1,
        },
        Body::Scalable(shared) => {
            let plain = shared.uncounted();
            let missed = shared.inserted().saturating_sub(plain.inserted());
            let newest = plain.layers().len() - 1;
            let (mut bits, mut set) = (0.0, 0.0);
            for (index, layer) in plain.layers().iter().enumerate() {
                let inserted = layer.inserted().saturating_add(if index == newest { missed } else { 0 });
                let fill = bloom_fill(layer.shape(), inserted);
                bits += layer.shape().bits() as f64;
                set += fill * layer.shape().bits() as f64;
            }
            Numbers {
                placement: plain
                    .layers()
                    .first()
                    .map_or("mayhap", |layer| bloom_placement(layer.placement())),
                capacity: shared.capacity(),
                inserted: shared.inserted(),
                target_fpr: plain.target_fpr(),
                expected_fpr: shared.expected_fpr(),
                fill: set / bits,
                layers: plain.layers().len() as u64,
            }
        }
        Body::Plain(filter) => of_filter(filter),
    }
}

/// What a recipe promises.
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
    }
}

fn of_bloom(bloom: &mayhap::Bloom) -> Numbers {
    Numbers {
        placement: bloom_placement(bloom.placement()),
        capacity: bloom.capacity(),
        inserted: bloom.inserted(),
        target_fpr: bloom.target_fpr(),
        expected_fpr: bloom.expected_fpr(),
        fill: bloom_fill(bloom.shape(), bloom.inserted()),
        layers: 1,
    }
}

fn of_filter(filter: &Filter) -> Numbers {
    let (inserted, capacity) = (filter.inserted(), filter.capacity());
    let share = |of: u64| if of == 0 { 0.0 } else { inserted as f64 / of as f64 };
    let (placement, fill) = match filter {
        Filter::Bloom(bloom) => return of_bloom(bloom),
        Filter::BlockedBloom(blocked) => {
            (blocked_placement(blocked.placement()), blocked_fill(blocked.shape(), inserted))
        }
        Filter::ScalableBloom(scalable) => {
            let bits = |layer: &mayhap::Bloom| layer.shape().bits() as f64;
            let all: f64 = scalable.layers().iter().map(bits).sum();
            let set: f64 = scalable
                .layers()
                .iter()
                .map(|layer| bits(layer) * bloom_fill(layer.shape(), layer.inserted()))
                .sum();
            let placement = scalable.layers().first().map_or("mayhap", |l| bloom_placement(l.placement()));
            (placement, set / all)
        }
        Filter::CountingBloom(counting) => {
            let shape = counting.shape();
            ("mayhap", set_share(shape.counters(), shape.probes(), inserted))
        }
        Filter::DualBloom(dual) => ("mayhap", bloom_fill(dual.shape().added(), inserted)),
        Filter::Cuckoo(cuckoo) => ("mayhap", cuckoo.fill()),
        Filter::GrowableCuckoo(cuckoo) => ("mayhap", cuckoo.fill()),
        Filter::ScalableCuckoo(cuckoo) => ("redis-bloom", cuckoo.fill()),
        Filter::DLeft(dleft) => ("mayhap", dleft.fill()),
        Filter::Quotient(quotient) => ("mayhap", quotient.fill()),
        Filter::Growing(growing) => ("mayhap", growing.fill()),
        Filter::Ribbon(_) => ("mayhap", 1.0),
        filter if filter.items().is_some() => ("foreign", share(capacity).min(1.0)),
        _ => ("mayhap", share(capacity).min(1.0)),
    };
    Numbers {
        placement,
        capacity,
        inserted,
        target_fpr: filter.target_fpr(),
        expected_fpr: filter.expected_fpr(),
        fill,
        layers: layers_of(filter),
    }
}

fn bloom_fill(shape: &BloomShape, inserted: u64) -> f64 {
    set_share(shape.bits(), shape.probes(), inserted)
}

fn blocked_fill(shape: &BlockedShape, inserted: u64) -> f64 {
    set_share(shape.bits(), shape.probes(), inserted)
}

/// The share of bits that `inserted` items set.
fn set_share(bits: u64, probes: u32, inserted: u64) -> f64 {
    -(-(inserted as f64) * f64::from(probes) / bits as f64).exp_m1()
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
