//! The facts about a filter in a file. The field names are those of `--json` and must not change.

use std::path::Path;

use mayhap::{BlockedPlacement, BloomPlacement, Filter, HashScheme, figures, say};
use serde::Serialize;

use super::abilities::Abilities;
use super::bits::{self, Counting};
use super::lines::{Figures, Storage};
use crate::filter_file::Opened;
use crate::health;

#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) kind: &'static str,
    /// Its dimensions, in words.
    pub(super) shape: String,
    pub(super) hash: String,
    /// The hash has a secret key, so an attacker cannot choose items that collide.
    pub(super) secret_key: bool,
    /// The rule that maps items to positions.
    pub(super) placement: String,
    /// How items are encoded as bytes, in a filter of another program. `None` if items are bytes or the encoding is unknown.
    pub(super) items_as: Option<&'static str>,
    /// Neither the file nor a flag says how items are encoded.
    pub(super) items_as_unknown: bool,
    /// `None` if the file does not store it, or if the filter grows as needed.
    pub(super) capacity: Option<u64>,
    /// `None` if the file does not store it, or if it would have to be counted.
    pub(super) inserted: Option<u64>,
    /// The file stores no item count.
    pub(super) inserted_unknown: bool,
    /// `inserted / capacity`, if both are known.
    pub(super) load: Option<f64>,
    /// `None` if the filter has no target rate.
    pub(super) target_fpr: Option<f64>,
    /// The false-positive rate now: from the item count or from the bits, whichever is higher.
    pub(super) expected_fpr: f64,
    /// `None` if the file stores no item count.
    pub(super) fpr_from_count: Option<f64>,
    pub(super) over_capacity: bool,
    /// The share of bits, counters or slots in use. `None` if the kind has no fill, or it was not counted.
    pub(super) fill: Option<f64>,
    pub(super) fill_of: Option<&'static str>,
    pub(super) estimated_items: Option<u64>,
    pub(super) fpr_from_fill: Option<f64>,
    /// The bits were not counted because the filter is large.
    pub(super) fill_not_counted: bool,
    pub(super) file_bytes: u64,
    pub(super) memory_bytes: u64,
    /// Memory bits per item at capacity, if the filter has a capacity.
    pub(super) bits_per_item: Option<f64>,
    /// Memory bits per inserted item.
    pub(super) bits_per_inserted: Option<f64>,
    /// The information-theoretic minimum for this rate: log2(1/rate).
    pub(super) bound_bits_per_item: Option<f64>,
    pub(super) can: Abilities,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) layers: Vec<FilterPart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) generations: Vec<FilterPart>,
    pub(super) warnings: Vec<String>,
}

/// A layer of a filter that grows, or a generation of a window.
#[derive(Debug, Serialize)]
pub(super) struct FilterPart {
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
        let per = |items: u64| figures::bits_per(filter.memory_bytes(), items);
        let fpr_from_fill = fill.and_then(|fill| fill.rate).map(|(rate, _)| rate);
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
            load: capacity.zip(inserted).map(|(capacity, inserted)| figures::load(inserted, capacity)),
            target_fpr,
            expected_fpr: fpr_from_fill.unwrap_or(0.0).max(filter.expected_fpr()),
            fpr_from_count: (!health::count_is_guessed(filter)).then(|| filter.expected_fpr()),
            over_capacity: health::is_over_capacity(filter),
            fill: fill.map(|fill| fill.share),
            fill_of: fill.map(|fill| fill.of),
            estimated_items: fill.and_then(|fill| fill.items),
            fpr_from_fill,
            fill_not_counted,
            file_bytes: opened.file_bytes,
            memory_bytes: filter.memory_bytes(),
            bits_per_item: capacity.map(|capacity| per(capacity).unwrap_or(0.0)),
            bits_per_inserted: inserted.and_then(per),
            bound_bits_per_item: target_fpr.and_then(figures::bound_bits_per_item),
            can: Abilities::of(filter),
            layers: layers(filter),
            generations: generations(filter),
            warnings,
        }
    }

    /// The figures of the lines that files and servers share.
    pub(super) fn figures(&self) -> Figures<'_> {
        let from_fill = self.fpr_from_fill.or_else(|| self.inserted_unknown.then_some(self.expected_fpr));
        Figures {
            storage: Storage::File,
            kind: Some(self.kind),
            shape: Some(&self.shape),
            format: self.format,
            placement: Some(&self.placement),
            hash: Some(&self.hash),
            items_as: self.items_as,
            items_as_unknown: self.items_as_unknown,
            capacity: self.capacity,
            inserted: self.inserted,
            inserted_unknown: self.inserted_unknown,
            target_fpr: self.target_fpr,
            fpr_from_count: self.fpr_from_count,
            fpr_from_fill: from_fill,
            fpr_reported: None,
            fill: self.fill,
            fill_of: self.fill_of,
            estimated_items: self.estimated_items,
            fill_not_counted: self.fill_not_counted,
            file_bytes: Some(self.file_bytes),
            memory_bytes: Some(self.memory_bytes),
            bits_per_item: self.bits_per_item,
            bits_per_inserted: self.bits_per_inserted,
            bound_bits_per_item: self.bound_bits_per_item,
        }
    }
}

fn disagreement(filter: &Filter, fill: &bits::Fill, times: f64) -> String {
    let items = say::items(fill.items.unwrap_or_default());
    let rate = say::rate(fill.rate.map_or(0.0, |(rate, _)| rate));
    let counted = say::count(filter.inserted());
    if times > 1.0 {
        format!(
            "more bits are set than {counted} items would set: the bits suggest {items} and an FPR of {rate}; \
             either the items were chosen to attack the filter, or the count was lost"
        )
    } else {
        format!(
            "fewer bits are set than {counted} items would set: the bits suggest {items} and an FPR of {rate}"
        )
    }
}

fn stuck(overflows: u64) -> String {
    format!("counters overflowed {} times: the items in them can no longer be removed", say::count(overflows))
}

fn layers(filter: &Filter) -> Vec<FilterPart> {
    let Filter::ScalableBloom(scalable) = filter else { return Vec::new() };
    let part = |layer: &mayhap::Bloom| FilterPart {
        capacity: layer.capacity(),
        inserted: layer.inserted(),
        expected_fpr: layer.expected_fpr(),
    };
    scalable.layers().iter().map(part).collect()
}

fn generations(filter: &Filter) -> Vec<FilterPart> {
    let Filter::Window(window) = filter else { return Vec::new() };
    let part = |generation: mayhap::Generation| FilterPart {
        capacity: generation.capacity,
        inserted: generation.inserted,
        expected_fpr: generation.expected_fpr,
    };
    window.generations().map(part).collect()
}

/// The hash function; never the key.
fn hash(filter: &Filter) -> String {
    match (filter, filter.scheme()) {
        (Filter::Bitmap(_), _) => "none: each number is its own position".into(),
        (Filter::WideBloom(wide), _) => format!("the hash of {:?}", wide.placement()),
        (_, Some(HashScheme::Fast { seed })) => format!("XXH3-128, seed {seed}"),
        (_, Some(HashScheme::Keyed { .. })) => "SipHash-1-3-128 with a secret key".into(),
        (_, Some(HashScheme::Foreign(foreign))) => format!("{:?}", foreign.function()),
        (_, Some(scheme)) => format!("{scheme:?}"),
        (_, None) => "none".into(),
    }
}

/// The rule that maps items to positions.
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
