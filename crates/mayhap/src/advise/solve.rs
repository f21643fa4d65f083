//! Of items, rate and memory any two give the third; and of items, rate, memory and probes any three the fourth.
//!
//! ```
//! use mayhap::advise::{Structure, solve};
//!
//! // What a Redis string of 512 MiB holds at 1 %, and at what rate it holds a billion items.
//! let items = solve::items_for(Structure::Bloom, 0.01, 512 << 20)?;
//! assert_eq!(items / 1_000_000, 447);
//! let rate = solve::rate_for(Structure::Bloom, 1_000_000_000, 512 << 20)?;
//! assert!((0.12..0.14).contains(&rate));
//! # Ok::<(), mayhap::advise::NeedsError>(())
//! ```
//!
//! Every answer is one that can be built: the filter for the items and the rate takes no more than the memory given.

use super::choice::advise;
use super::needs::{Needs, NeedsError};
use super::price::{self, Misfit, Price, Structure};
use crate::sizing::{self, MAX_CAPACITY, MIN_RATE};

/// The worst rate worth solving for: a filter that is wrong more often than a coin is of no use.
pub(super) const WORST_RATE: f64 = 0.5;
/// Where solving for a rate stops, however much memory there is: a thousand non-members a second are then answered wrongly once in
/// twelve days. (A kind that does not come so low stops at its own lowest rate.)
pub const LOWEST_RATE: f64 = 1e-9;

/// Two of the three numbers a filter is sized by.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Known {
    /// How much memory does it take?
    ItemsAndRate {
        /// Items it is for.
        items: u64,
        /// The rate asked for.
        target_fpr: f64,
    },
    /// How often is it wrong?
    ItemsAndMemory {
        /// Items it is for.
        items: u64,
        /// Memory there is.
        memory_bytes: u64,
    },
    /// How many items does it hold?
    RateAndMemory {
        /// The rate asked for.
        target_fpr: f64,
        /// Memory there is.
        memory_bytes: u64,
    },
    /// How much memory makes so many probes the best number, and how often is it wrong then? With half of the bits set every
    /// probe turns away every second non-member: `k` probes have a rate of `2^-k`.
    ItemsAndProbes {
        /// Items it is for.
        items: u64,
        /// Probes of an item.
        probes: u32,
    },
    /// For how many items are so many probes the best number, and how often is it wrong then?
    MemoryAndProbes {
        /// Memory there is.
        memory_bytes: u64,
        /// Probes of an item.
        probes: u32,
    },
}

/// The memory `filter` takes for `items` items at `rate`. (A dual filter: with a removal for every tenth item.)
///
/// # Errors
/// [`NeedsError`] for numbers it cannot be built from, and for a structure that is no filter.
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
/// [`NeedsError::TooLittleMemory`] if not even one does, and as [`bytes_for`].
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
        Err(Misfit::Unbuildable(error)) => Err(error.into()),
        Err(_) => Err(NeedsError::NotAFilter { structure }),
    }
}

/// The lowest rate from `floor` up at which `filter` meets the rest of `needs` in `limit` bytes.
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

/// [`lowest_rate`], rounded up to three digits so that it can be written down.
pub(super) fn written_rate(
    filter: Structure,
    needs: &Needs,
    limit: u64,
    floor: f64,
) -> Result<f64, NeedsError> {
    let lowest = lowest_rate(filter, needs, limit, floor)?;
    let written = three_digits_up(lowest);
    // Where a blocked filter takes one line more per item, a higher rate can take more memory.
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
    // There are no more items than integers in their range, however much memory there is.
    let possible = needs.item.possible().and_then(|possible| u64::try_from(possible).ok());
    let (mut fitting, mut too_many) = (1, possible.unwrap_or(MAX_CAPACITY).min(MAX_CAPACITY) + 1);
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        if bytes_of(middle).is_ok_and(|bytes| bytes <= limit) { fitting = middle } else { too_many = middle }
    }
    Ok(fitting)
}

/// `needs` with all three numbers, solved for what [`advise`] then recommends.
///
/// What is known replaces what `needs` says; everything else in it decides which structure it is. A rate is solved for every
/// filter on its own, down to [`LOWEST_RATE`], and rounded up to three digits, so that it can be written down; the result has
/// [`rate_from_memory`](Needs::rate_from_memory) set. Its rate is that of the best filter, also where an exact structure fits
/// and is the better choice. Items are solved for every structure on its own, too; the result has
/// [`items_from_memory`](Needs::items_from_memory) set and the items of the best. Where [`probes`](Needs::probes) are given, all
/// of that is about filters with so many.
///
/// # Errors
/// [`NeedsError`] for numbers that cannot be meant, and for memory too small to be of use.
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

/// The rate of `probes` probes when half of the bits are set, which is when no other number of probes would be better.
fn half_full_rate(probes: u32) -> Result<f64, NeedsError> {
    let probes = sizing::check_probes(probes)?;
    Ok(sizing::check_rate(0.5_f64.powi(probes as i32))?)
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
        // Either something exact suits, or no filter would in any memory: the advice says which.
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
        // Nothing would do in any memory, and the advice says so. Prices are then told for what a plain filter holds.
        None => {
            let items = most_items(Structure::Bloom, &Needs { probes: None, ..needs.clone() }, limit)?;
            Ok(Needs { items, ..needs })
        }
    }
}

/// `rate`, rounded up to three significant digits: who asks for what was written down must not be told that it does not fit.
fn three_digits_up(rate: f64) -> f64 {
    let exponent = rate.log10().floor() as i32 - 2;
    let digits = (rate / 10_f64.powi(exponent)).ceil();
    // Through text, so that 123e-4 is 0.0123 and not 0.012300000000000002.
    format!("{digits}e{exponent}").parse().unwrap_or(rate).min(WORST_RATE)
}
