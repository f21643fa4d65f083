//! Fill, item count and rate as estimated from the bits of a filter.

use mayhap::Filter;

/// Whether the whole filter is read to count its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// At any size.
    Always,
    /// Up to [`SMALL_BYTES`].
    IfSmall,
}

/// Filters up to this size are counted without `--fill`: that takes a few milliseconds.
pub(super) const SMALL_BYTES: u64 = 64 << 20;

/// The fill, and what it implies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill {
    /// The share of the bits, counters or slots that are not empty.
    pub(super) share: f64,
    pub(super) of: &'static str,
    /// The number of items that this fill implies, if the kind allows an estimate.
    pub(super) items: Option<u64>,
    /// The rate for that number of items, and its relative deviation by chance.
    pub(super) rate: Option<(f64, f64)>,
}

/// Returns the fill of a filter; `None` if its kind has none, or if the bits would have to be counted and are too many.
pub(super) fn fill(filter: &Filter, counting: Counting) -> Option<Fill> {
    let may_count = counting == Counting::Always || filter.memory_bytes() <= SMALL_BYTES;
    let plain = |share, of| Some(Fill { share, of, items: None, rate: None });
    match filter {
        Filter::Bloom(bloom) if may_count => {
            let (items, probes) = (bloom.estimated_items(), bloom.shape().probes());
            Some(from_bits(
                bloom.ones(),
                bloom.shape().bits(),
                items,
                bloom.shape().expected_fpr(items),
                probes,
            ))
        }
        Filter::WideBloom(wide) if may_count => {
            let (items, probes) = (wide.estimated_items(), wide.shape().probes());
            Some(from_bits(wide.ones(), wide.shape().bits(), items, wide.shape().expected_fpr(items), probes))
        }
        Filter::BlockedBloom(blocked) if may_count => {
            let shape = blocked.shape();
            let (items, probes) = (blocked.estimated_items(), shape.probes() * shape.lines_per_item());
            Some(from_bits(blocked.ones(), shape.bits(), items, shape.expected_fpr(items), probes))
        }
        Filter::ScalableBloom(scalable) if may_count => {
            let (ones, bits) = scalable
                .layers()
                .iter()
                .fold((0, 0), |(ones, bits), layer| (ones + layer.ones(), bits + layer.shape().bits()));
            let items = scalable.layers().iter().map(mayhap::Bloom::estimated_items).sum();
            Some(Fill { share: ones as f64 / bits as f64, of: "bits", items: Some(items), rate: None })
        }
        Filter::Window(window) if may_count => plain(window.fill(), "bits"),
        Filter::Bitmap(bitmap) if may_count && !bitmap.is_empty() => {
            plain(bitmap.count() as f64 / bitmap.len() as f64, "bits")
        }
        Filter::CountingBloom(counting) => Some(Fill {
            share: counting.fill(),
            of: "counters",
            items: Some(counting.estimated_items()),
            rate: None,
        }),
        Filter::DLeft(dleft) => {
            Some(Fill { share: dleft.fill(), of: "slots", items: Some(dleft.estimated_items()), rate: None })
        }
        Filter::Quotient(quotient) => Some(Fill {
            share: quotient.fill(),
            of: "slots",
            items: Some(quotient.estimated_items()),
            rate: None,
        }),
        Filter::Cuckoo(cuckoo) => plain(cuckoo.fill(), "slots"),
        Filter::GrowableCuckoo(cuckoo) => plain(cuckoo.fill(), "slots"),
        Filter::ScalableCuckoo(cuckoo) => plain(cuckoo.fill(), "slots"),
        Filter::Growing(growing) => plain(growing.fill(), "slots"),
        _ => None,
    }
}

/// Whether the filter has bits that were not counted.
pub(super) fn left_uncounted(filter: &Filter, counting: Counting) -> bool {
    let has_bits = matches!(
        filter,
        Filter::Bloom(_)
            | Filter::WideBloom(_)
            | Filter::BlockedBloom(_)
            | Filter::ScalableBloom(_)
            | Filter::Window(_)
            | Filter::Bitmap(_)
    );
    has_bits && counting == Counting::IfSmall && filter.memory_bytes() > SMALL_BYTES
}

/// The number of set bits varies by its square root, and the rate is a power of that number.
fn from_bits(ones: u64, bits: u64, items: u64, rate: f64, probes: u32) -> Fill {
    const DEVIATIONS: f64 = 6.0;
    let noise = DEVIATIONS * f64::from(probes) / (ones.max(1) as f64).sqrt();
    Fill { share: ones as f64 / bits as f64, of: "bits", items: Some(items), rate: Some((rate, noise)) }
}

/// If bits and count disagree beyond chance: the rate from the bits ÷ the rate from the count.
pub(super) fn disagreement(filter: &Filter, fill: &Fill) -> Option<f64> {
    const WORTH_A_WARNING: f64 = 0.25;
    let (rate, noise) = fill.rate?;
    let counted = filter.expected_fpr();
    if counted <= 0.0 {
        return (rate > 0.0).then_some(f64::INFINITY);
    }
    let times = rate / counted;
    let apart = times.max(1.0 / times) - 1.0;
    (apart > WORTH_A_WARNING && apart > noise).then_some(times)
}
