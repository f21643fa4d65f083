//! Any two of items, rate and memory determine the third; any three of items, rate, memory and probes the fourth.
//!
//! ```
//! use mayhap_advise::{Structure, solve};
//!
//! // What a Redis string of 512 MiB holds at 1 %, and at what rate it holds a billion items.
//! let items = solve::items_for(Structure::Bloom, 0.01, 512 << 20)?;
//! assert_eq!(items / 1_000_000, 447);
//! let rate = solve::rate_for(Structure::Bloom, 1_000_000_000, 512 << 20)?;
//! assert!((0.12..0.14).contains(&rate));
//! # Ok::<(), mayhap_advise::NeedsError>(())
//! ```
//!
//! Every result can be built: the filter for these items and this rate takes at most the memory given.

use mayhap::internals;
use mayhap::sizing::{MAX_CAPACITY, MIN_RATE};

use crate::choice::advise;
use crate::needs::{Needs, NeedsError};
use crate::price::{self, Price, Structure, Unsuitable};

/// The highest rate worth solving for: a filter with more false positives than this is useless.
pub(super) const WORST_RATE: f64 = 0.5;
/// The lowest rate that is solved for, however much memory there is: at a thousand lookups of non-members per second, it is
/// one false positive in twelve days. (A kind that cannot go this low stops at its own lowest rate.)
pub const LOWEST_RATE: f64 = 1e-9;

/// Two of the numbers a filter is sized by.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Known {
    /// Solve for the memory.
    ItemsAndRate {
        /// The number of items.
        items: u64,
        /// The rate asked for.
        target_fpr: f64,
    },
    /// Solve for the rate.
    ItemsAndMemory {
        /// The number of items.
        items: u64,
        /// The memory available.
        memory_bytes: u64,
    },
    /// Solve for the items.
    RateAndMemory {
        /// The rate asked for.
        target_fpr: f64,
        /// The memory available.
        memory_bytes: u64,
    },
    /// Solve for the memory at which this number of probes is the best, and its rate. With half of the bits set, every probe
    /// rejects every second non-member: `k` probes have a rate of `2^-k`.
    ItemsAndProbes {
        /// The number of items.
        items: u64,
        /// Probes per item.
        probes: u32,
    },
    /// Solve for the number of items at which this number of probes is the best, and its rate.
    MemoryAndProbes {
        /// The memory available.
        memory_bytes: u64,
        /// Probes per item.
        probes: u32,
    },
}

/// The memory `filter` takes for `items` items at `rate`. (A dual filter: with a removal for every tenth item.)
///
/// # Errors
/// [`NeedsError`] for numbers it cannot be built from, and for a structure that is not a filter.
pub fn bytes_for(filter: Structure, items: u64, rate: f64) -> Result<u64, NeedsError> {
    bytes(only_filters(filter)?, &Needs::new(items, rate))
}

/// The lowest rate at which `items` items fit in `bytes`.
///
/// # Errors
/// [`NeedsError::TooLittleMemory`] if the rate would be above 50 %, and as [`bytes_for`].
pub fn rate_for(filter: Structure, items: u64, bytes: u64) -> Result<f64, NeedsError> {
    lowest_rate(filter, &Needs::new(items, WORST_RATE), bytes, MIN_RATE)
}

/// The most items that fit in `bytes` at `rate`.
///
/// # Errors
/// [`NeedsError::TooLittleMemory`] if not even one fits, and as [`bytes_for`].
pub fn items_for(filter: Structure, rate: f64, bytes: u64) -> Result<u64, NeedsError> {
    most_items(only_filters(filter)?, &Needs::new(1, rate), bytes)
}

fn only_filters(structure: Structure) -> Result<Structure, NeedsError> {
    if structure.is_filter() { Ok(structure) } else { Err(NeedsError::NotAFilter { structure }) }
}

/// The memory `structure` takes for `needs`.
fn bytes(structure: Structure, needs: &Needs) -> Result<u64, NeedsError> {
    needs.check()?;
    match price::cost(structure, needs) {
        Ok(cost) => Ok(cost.memory_bytes),
        Err(Unsuitable::Unbuildable(error)) => Err(error.into()),
        Err(_) => Err(NeedsError::NotAFilter { structure }),
    }
}

/// The lowest rate, at least `floor`, at which `filter` meets the rest of `needs` in `limit` bytes.
fn lowest_rate(filter: Structure, needs: &Needs, limit: u64, floor: f64) -> Result<f64, NeedsError> {
    let bytes_at = |target_fpr| bytes(only_filters(filter)?, &Needs { target_fpr, ..needs.clone() });
    let at_worst = bytes_at(WORST_RATE)?;
    if at_worst > limit {
        return Err(NeedsError::TooLittleMemory { structure: filter, bytes: limit, needed: Some(at_worst) });
    }
    let fits = |exponent: f64| bytes_at(exponent.exp()).is_ok_and(|bytes| bytes <= limit);
    if bytes_at(floor).is_ok_and(|bytes| bytes <= limit) {
        return Ok(floor);
    }
    let (mut too_low, mut fitting) = (floor.ln(), WORST_RATE.ln());
    while fitting - too_low > 1e-6 {
        let middle = f64::midpoint(too_low, fitting);
        if fits(middle) { fitting = middle } else { too_low = middle }
    }
    Ok(fitting.exp())
}

/// [`lowest_rate`], rounded up to three digits so that it is easy to write down.
pub(super) fn written_rate(
    filter: Structure,
    needs: &Needs,
    limit: u64,
    floor: f64,
) -> Result<f64, NeedsError> {
    let lowest = lowest_rate(filter, needs, limit, floor)?;
    let written = three_digits_up(lowest);
    // At a rate where a blocked filter takes one more line per item, a higher rate can take more memory.
    let fits =
        bytes(filter, &Needs { target_fpr: written, ..needs.clone() }).is_ok_and(|bytes| bytes <= limit);
    Ok(if fits && lowest > floor { written } else { lowest })
}

/// The most items with which `structure` meets the rest of `needs` in `limit` bytes.
pub(super) fn most_items(structure: Structure, needs: &Needs, limit: u64) -> Result<u64, NeedsError> {
    let bytes_of = |items| bytes(structure, &Needs { items, ..needs.clone() });
    if bytes_of(1)? > limit {
        return Err(NeedsError::TooLittleMemory { structure, bytes: limit, needed: None });
    }
    // There cannot be more items than integers in their range.
    let possible = needs.item.possible().and_then(|possible| u64::try_from(possible).ok());
    let (mut fitting, mut too_many) = (1, possible.unwrap_or(MAX_CAPACITY).min(MAX_CAPACITY) + 1);
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        if bytes_of(middle).is_ok_and(|bytes| bytes <= limit) { fitting = middle } else { too_many = middle }
    }
    Ok(fitting)
}

/// Completes `needs` with all three numbers, solved for the structure that [`advise`] then recommends.
///
/// The known numbers replace those of `needs`; the rest of `needs` decides on the structure.
///
/// A rate is solved for every filter separately, down to [`LOWEST_RATE`], and rounded up to three digits, so that it is easy
/// to write down. The result has [`rate_from_memory`](Needs::rate_from_memory) set. Its rate is that of the best filter, even
/// if an exact structure fits and is the better choice.
///
/// Items are solved for every structure separately, too. The result has [`items_from_memory`](Needs::items_from_memory) set
/// and the items of the best structure. If [`probes`](Needs::probes) are given, only filters with this number of probes are
/// considered.
///
/// # Errors
/// [`NeedsError`] for invalid numbers, and for memory that is too small to be useful.
pub fn complete(known: Known, needs: &Needs) -> Result<Needs, NeedsError> {
    match known {
        Known::ItemsAndRate { items, target_fpr } => Ok(Needs { items, target_fpr, ..needs.clone() }),
        Known::ItemsAndMemory { items, memory_bytes } => {
            let needs = Needs { items, target_fpr: LOWEST_RATE, ..needs.clone() };
            best_rate(needs.as_right_as_fits(memory_bytes), memory_bytes)
        }
        Known::RateAndMemory { target_fpr, memory_bytes } => {
            most_items_of_the_best(&Needs { target_fpr, ..needs.clone() }, memory_bytes)
        }
        Known::ItemsAndProbes { items, probes } => {
            let target_fpr = half_full_rate(probes)?;
            Ok(Needs { items, target_fpr, ..needs.clone() }.probing(probes))
        }
        Known::MemoryAndProbes { memory_bytes, probes } => {
            let target_fpr = half_full_rate(probes)?;
            most_items_of_the_best(&Needs { target_fpr, ..needs.clone() }.probing(probes), memory_bytes)
        }
    }
}

/// The rate of `probes` probes when half of the bits are set. This number of probes is the best at that rate.
fn half_full_rate(probes: u32) -> Result<f64, NeedsError> {
    let probes = internals::check_probes(probes)?;
    Ok(internals::check_rate(0.5_f64.powi(probes as i32))?)
}

/// `needs` with the rate of the best filter.
fn best_rate(needs: Needs, limit: u64) -> Result<Needs, NeedsError> {
    let prices = advise(&needs)?.prices;
    let filters = || prices.iter().filter(|price| price.structure.is_filter());
    let rate = filters().find(|price| price.suits()).and_then(|price| Some(price.cost?.target_fpr));
    if let Some(target_fpr) = rate {
        return Ok(Needs { target_fpr, ..needs });
    }
    let needed = |price: &Price| Some((price.cost?.memory_bytes, price.structure));
    let nearest =
        filters().filter(|price| price.suits_but_for_memory()).filter_map(needed).min_by_key(|near| near.0);
    match nearest {
        Some((needed, structure)) if !prices.iter().any(Price::suits) => {
            Err(NeedsError::TooLittleMemory { structure, bytes: limit, needed: Some(needed) })
        }
        // Either an exact structure suits, or no filter suits in any memory: the advice explains which.
        _ => Ok(needs),
    }
}

/// `needs` with as many items as the best structure holds within `limit` bytes.
fn most_items_of_the_best(needs: &Needs, limit: u64) -> Result<Needs, NeedsError> {
    let needs = Needs { items: 1, ..needs.clone() }.as_many_as_fit(limit);
    let advice = advise(&needs)?;
    if let Some(cost) = advice.recommended().and_then(|best| best.cost) {
        return Ok(Needs { items: cost.items, ..needs });
    }
    let nearest =
        advice.prices.iter().filter(|price| price.suits_but_for_memory()).filter_map(|price| {
            Some((!price.structure.is_filter(), price.cost?.memory_bytes, price.structure))
        });
    match nearest.min_by_key(|&(exact, bytes, _)| (exact, bytes)) {
        Some((_, _, structure)) => Err(NeedsError::TooLittleMemory { structure, bytes: limit, needed: None }),
        // No structure suits in any memory, and the advice says so. The prices are those for the items of a plain filter.
        None => {
            let items = most_items(Structure::Bloom, &Needs { probes: None, ..needs.clone() }, limit)?;
            Ok(Needs { items, ..needs })
        }
    }
}

/// `rate`, rounded up to three significant digits: a user who enters the rounded rate must get a filter that fits.
fn three_digits_up(rate: f64) -> f64 {
    let exponent = rate.log10().floor() as i32 - 2;
    let digits = (rate / 10_f64.powi(exponent)).ceil();
    // Through text, so that 123e-4 is 0.0123 and not 0.012300000000000002.
    format!("{digits}e{exponent}").parse().unwrap_or(rate).min(WORST_RATE)
}
