//! What is known of a filter in a file. The field names are those of `--json`, and a promise.

use std::path::Path;

use mayhap::advise::say;
use mayhap::{BlockedPlacement, BloomPlacement, Filter, HashScheme};
use serde::Serialize;

use super::abilities::Abilities;
use super::bits::{self, Counting};
use crate::filter_file::Opened;
use crate::health;

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) kind: &'static str,
    /// Its measurements, in words.
    pub(super) shape: String,
    pub(super) hash: String,
    /// Non-members cannot choose items that collide.
    pub(super) secret_key: bool,
    /// By whose rule items are placed.
    pub(super) placement: String,
    /// How items become bytes, in a filter of another program; absent where items are bytes, or nobody said.
    pub(super) items_as: Option<&'static str>,
    /// Nobody said how items become bytes.
    pub(super) items_as_unknown: bool,
    /// Absent where it was made for no number of items: the file does not say one, or it grows as it needs.
    pub(super) capacity: Option<u64>,
    /// Absent where the file does not say it, or it would have to be counted.
    pub(super) inserted: Option<u64>,
    /// The file has no count of items.
    pub(super) inserted_unknown: bool,
    /// Absent where it was made for no rate.
    pub(super) target_fpr: Option<f64>,
    pub(super) expected_fpr: f64,
    pub(super) over_capacity: bool,
    /// The share of bits, counters or slots in use; absent where there is none, or it was not counted.
    pub(super) fill: Option<f64>,
    pub(super) fill_of: Option<&'static str>,
    pub(super) estimated_items: Option<u64>,
    pub(super) fpr_from_fill: Option<f64>,
    /// The bits were not counted, for it is large.
    pub(super) fill_not_counted: bool,
    pub(super) file_bytes: u64,
    pub(super) memory_bytes: u64,
    /// For each item of the capacity, if it has one.
    pub(super) bits_per_item: Option<f64>,
    /// For each item that is in.
    pub(super) bits_per_inserted: Option<f64>,
    /// What no filter of this rate can do without: log2(1/rate).
    pub(super) bound_bits_per_item: Option<f64>,
    pub(super) can: Abilities,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) layers: Vec<Part>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) generations: Vec<Part>,
    pub(super) warnings: Vec<String>,
}

/// A layer of a filter that grows, or a generation of a window.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    pub(super) capacity: u64,
    pub(super) inserted: u64,
    pub(super) expected_fpr: f64,
}

impl Facts {
    pub(super) fn of(path: &Path, opened: &Opened, counting: Counting) -> Self {
        let filter = &opened.filter;
        let fill = bits::fill(filter, counting);
        let fill_not_counted = bits::left_uncounted(filter, counting);
        let inserted = match filter {
            Filter::Bitmap(_) if fill_not_counted => None,
            filter => Some(filter.inserted()).filter(|_| !health::count_is_guessed(filter)),
        };
        let has_capacity = !health::has_no_capacity(filter);
        let capacity = has_capacity.then(|| filter.capacity());
        let target_fpr = has_capacity.then(|| filter.target_fpr());
        let memory_bits = filter.memory_bytes() as f64 * 8.0;
        let per = |items: u64| memory_bits / items as f64;
        let mut warnings = health::warnings(filter);
        if let Some(fill) = &fill
            && !health::count_is_guessed(filter)
            && let Some(times) = bits::disagreement(filter, fill)
        {
            warnings.push(disagreement(filter, fill, times));
        }
        if let Filter::CountingBloom(counting) = filter
            && counting.overflows() > 0
        {
            warnings.push(stuck(counting.overflows()));
        }
        if let Filter::DLeft(dleft) = filter
            && dleft.overflows() > 0
        {
            warnings.push(stuck(dleft.overflows()));
        }
        Self {
            file: path.display().to_string(),
            format: opened.format.name(),
            kind: filter.kind().name(),
            shape: shape(filter),
            hash: hash(filter),
            secret_key: matches!(filter.scheme(), Some(HashScheme::Keyed { .. })),
            placement: placement(filter),
            items_as: filter.items().filter(|_| !opened.encoding_unknown).map(mayhap::ItemEncoding::name),
            items_as_unknown: opened.encoding_unknown,
            capacity,
            inserted,
            inserted_unknown: health::count_is_guessed(filter),
            target_fpr,
            expected_fpr: filter.expected_fpr(),
            over_capacity: health::is_over_capacity(filter),
            fill: fill.map(|fill| fill.share),
            fill_of: fill.map(|fill| fill.of),
            estimated_items: fill.and_then(|fill| fill.items),
            fpr_from_fill: fill.and_then(|fill| fill.rate).map(|(rate, _)| rate),
            fill_not_counted,
            file_bytes: opened.file_bytes,
            memory_bytes: filter.memory_bytes(),
            bits_per_item: capacity.map(|capacity| if capacity == 0 { 0.0 } else { per(capacity) }),
            bits_per_inserted: inserted.filter(|&inserted| inserted > 0).map(per),
            bound_bits_per_item: target_fpr.filter(|&rate| rate > 0.0).map(|rate| rate.recip().log2()),
            can: Abilities::of(filter),
            layers: layers(filter),
            generations: generations(filter),
            warnings,
        }
    }
}

fn disagreement(filter: &Filter, fill: &bits::Fill, times: f64) -> String {
    let items = say::items(fill.items.unwrap_or_default());
    let rate = say::rate(fill.rate.map_or(0.0, |(rate, _)| rate));
    let counted = say::count(filter.inserted());
    if times > 1.0 {
        format!(
            "more bits are set than {counted} items set: they speak of {items} and a rate of {rate}; \
             somebody chose the items, or the count was lost"
        )
    } else {
        format!("fewer bits are set than {counted} items set: they speak of {items} and a rate of {rate}")
    }
}

fn stuck(overflows: u64) -> String {
    format!(
        "counters have overflowed {} times: what they count cannot be removed any more",
        say::count(overflows)
    )
}

fn layers(filter: &Filter) -> Vec<Part> {
    let Filter::ScalableBloom(scalable) = filter else { return Vec::new() };
    let part = |layer: &mayhap::Bloom| Part {
        capacity: layer.capacity(),
        inserted: layer.inserted(),
        expected_fpr: layer.expected_fpr(),
    };
    scalable.layers().iter().map(part).collect()
}

fn generations(filter: &Filter) -> Vec<Part> {
    let Filter::Window(window) = filter else { return Vec::new() };
    let part = |generation: mayhap::Generation| Part {
        capacity: generation.capacity,
        inserted: generation.inserted,
        expected_fpr: generation.expected_fpr,
    };
    window.generations().map(part).collect()
}

/// How it hashes; never the key.
fn hash(filter: &Filter) -> String {
    match (filter, filter.scheme()) {
        (Filter::Bitmap(_), _) => "none: a number is its own place".into(),
        (Filter::WideBloom(wide), _) => format!("that of {:?}", wide.placement()),
        (_, Some(HashScheme::Fast { seed })) => format!("XXH3-128, seed {seed}"),
        (_, Some(HashScheme::Keyed { .. })) => "SipHash-1-3-128 with a secret key".into(),
        (_, Some(HashScheme::Foreign(foreign))) => format!("{:?}", foreign.function()),
        (_, Some(scheme)) => format!("{scheme:?}"),
        (_, None) => "none".into(),
    }
}

/// By whose rule items are placed.
fn placement(filter: &Filter) -> String {
    match filter {
        Filter::Bloom(bloom) if bloom.placement() != BloomPlacement::Mayhap => {
            format!("{:?}", bloom.placement())
        }
        Filter::BlockedBloom(blocked)
            if !matches!(blocked.placement(), BlockedPlacement::Split | BlockedPlacement::Line) =>
        {
            format!("{:?}", blocked.placement())
        }
        Filter::WideBloom(wide) => format!("{:?}", wide.placement()),
        filter => match filter.scheme() {
            Some(HashScheme::Foreign(_)) => "another program's".into(),
            _ => "mayhap".into(),
        },
    }
}

fn shape(filter: &Filter) -> String {
    match filter {
        Filter::Bitmap(bitmap) if bitmap.is_empty() => "no bits".into(),
        Filter::Bitmap(bitmap) => {
            format!("numbers from {} to {}", bitmap.first(), bitmap.first() + (bitmap.len() - 1))
        }
        Filter::Bloom(filter) => filter.shape().to_string(),
        Filter::BlockedBloom(filter) => filter.shape().to_string(),
        Filter::CountingBloom(filter) => filter.shape().to_string(),
        Filter::DualBloom(filter) => filter.shape().to_string(),
        Filter::ScalableBloom(filter) => filter.shape().to_string(),
        Filter::DLeft(filter) => filter.shape().to_string(),
        Filter::Cuckoo(filter) => filter.shape().to_string(),
        Filter::GrowableCuckoo(filter) => filter.shape().to_string(),
        Filter::Quotient(filter) => filter.shape().to_string(),
        Filter::Xor8(filter) => filter.shape().to_string(),
        Filter::Xor16(filter) => filter.shape().to_string(),
        Filter::Xor32(filter) => filter.shape().to_string(),
        Filter::BinaryFuse8(filter) => filter.shape().to_string(),
        Filter::BinaryFuse16(filter) => filter.shape().to_string(),
        Filter::BinaryFuse32(filter) => filter.shape().to_string(),
        Filter::Ribbon(filter) => match filter.layer_count() {
            1 => "one layer".into(),
            layers => format!("{layers} layers"),
        },
        Filter::Gcs(filter) => filter.shape().to_string(),
        Filter::Window(filter) => filter.shape().to_string(),
        Filter::Growing(filter) => filter.shape().to_string(),
        Filter::WideBloom(filter) => filter.shape().to_string(),
        Filter::ScalableCuckoo(filter) => filter.shape().to_string(),
        Filter::Fingerprints(set) => format!("fingerprints of {} bits", set.fingerprint_bits()),
        _ => filter.kind().to_string(),
    }
}
