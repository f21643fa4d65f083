//! The ranking of structures and the recommendation.

use std::cmp::Ordering;

use mayhap::{BlockedShape, say};

use crate::needs::{Deletes, Growth, ItemShape, Needs, NeedsError};
use crate::note::{self, Note};
use crate::price::{Cost, Price, Structure, candidates, price_list};
use crate::recipe;

/// An exact structure of at most this many bytes is preferred to any filter.
const EXACT_IS_CHEAP_BYTES: u64 = 4 << 20;
/// An exact structure may take this many times the memory of the smallest filter.
const EXACT_IS_WORTH: f64 = 1.25;
/// The penalty for one more cache line per lookup, as a share of the memory.
const LINE_IS_WORTH: f64 = 0.15;
/// The penalty for a layout that a blocked filter would not choose itself: it is slower or larger by about this factor.
const OTHER_LAYOUT_IS_WORTH: f64 = 1.25;
/// The penalty for counting copies if nothing is removed: copies take room from other items, and a full filter rejects
/// items.
const COPIES_ARE_WORTH: f64 = 1.5;

/// The recommended structure, the reasons, and the price of every other structure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// Every structure. Those that suit come first, the best of them at the top.
    pub prices: Vec<Price>,
    /// The recommendation and its reasons, in plain sentences.
    pub why: Vec<String>,
    /// The Rust code that builds the recommended structure; `None` if no structure suits.
    pub rust: Option<String>,
    /// Notes on its use.
    pub notes: Vec<Note>,
}

impl Advice {
    /// The best structure that suits, if one does.
    #[must_use]
    pub fn recommended(&self) -> Option<&Price> {
        self.prices.first().filter(|price| price.suits())
    }
}

/// Recommends a structure for `needs`.
///
/// The rules, in order:
///
/// 1. Structures that do not suit come last.
/// 2. An exact structure comes first if it takes at most 4 MiB, or at most 1.25 times the memory of the smallest filter
///    that suits.
/// 3. Then come filters whose *no* is certain, by memory. The memory counts 15 % more for every cache line that a lookup
///    touches, and more for lookups that compute much and for counting copies if nothing is removed.
/// 4. Then come structures that need a lock, if several threads insert.
/// 5. Then filters whose *no* may be wrong after a removal.
/// 6. Then all other exact structures.
///
/// If the number of items is solved from the memory ([`items_from_memory`](Needs::items_from_memory)), an exact structure
/// comes first if it holds at least four fifths of the items that the best filter holds. If the rate is solved from the
/// memory ([`rate_from_memory`](Needs::rate_from_memory)), every exact structure that fits comes first, and filters are
/// compared by bits per item over `log2(1/rate)`.
///
/// # Errors
/// [`NeedsError`] for invalid needs. It is not an error if nothing suits: the advice explains what would.
pub fn advise(needs: &Needs) -> Result<Advice, NeedsError> {
    let prices = ranked(price_list(needs)?, needs);
    let best = prices.first().filter(|price| price.suits());
    // All texts are about the numbers of the recommended structure. They differ from those asked for if they were solved
    // from the memory, or if the structure stores fingerprints.
    let needs = &best.map_or_else(|| needs.clone(), |best| best.sized(needs));
    Ok(Advice {
        why: why(best, &prices, needs),
        rust: best.map(|best| recipe::rust_for(best.structure, needs)),
        notes: note::notes(best, &prices, needs),
        prices,
    })
}

/// The structure that [`advise`] would recommend if only `structures` existed. It writes no texts and skips structures that
/// cannot suit. `None` if none of them suits.
///
/// ```
/// use mayhap_advise::{Needs, Structure, advise, recommend};
///
/// let needs = Needs::new(1_000_000, 0.01);
/// let best = advise(&needs)?.recommended().map(|price| price.structure);
/// assert_eq!(recommend(&needs, Structure::all())?, best);
/// # Ok::<(), mayhap_advise::NeedsError>(())
/// ```
///
/// # Errors
/// [`NeedsError`] for invalid needs.
pub fn recommend(
    needs: &Needs,
    structures: impl Iterator<Item = Structure>,
) -> Result<Option<Structure>, NeedsError> {
    let prices = ranked(candidates(needs, structures)?, needs);
    Ok(prices.first().filter(|price| price.suits()).map(|price| price.structure))
}

/// Sorts prices: the best first, those that do not suit last.
fn ranked(prices: Vec<Price>, needs: &Needs) -> Vec<Price> {
    let smallest_filter = smallest_filter(&prices).map(|(_, cost)| cost);
    let place = |price: &Price| match (&price.cost, price.suits()) {
        (Some(cost), true) => {
            (class(price, cost, smallest_filter.as_ref(), needs), score(price.structure, cost, needs))
        }
        (Some(cost), false) => (Class::Unsuited, cost.over_bound),
        (None, _) => (Class::Unbuildable, 0.0),
    };
    let mut placed: Vec<_> = prices.into_iter().map(|price| (place(&price), price)).collect();
    placed.sort_by(|((class, score), _), ((other_class, other_score), _)| {
        class.cmp(other_class).then(score.partial_cmp(other_score).unwrap_or(Ordering::Equal))
    });
    placed.into_iter().map(|(_, price)| price).collect()
}

/// Classes of structures, best first. A better class wins at any memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    CheapAndExact,
    Filter,
    CheapAndExactWithLock,
    FilterWithLock,
    UncertainNo,
    ExpensiveAndExact,
    Unsuited,
    Unbuildable,
}

fn class(price: &Price, cost: &Cost, smallest_filter: Option<&Cost>, needs: &Needs) -> Class {
    let cheap = needs.memory_for_rates().is_some()
        || smallest_filter.is_none_or(|filter| cost.bits_per_item <= filter.bits_per_item * EXACT_IS_WORTH)
        // If as many items as possible are wanted, a small structure is not an advantage.
        || (cost.memory_bytes <= EXACT_IS_CHEAP_BYTES && needs.memory_for_items().is_none());
    let with_lock = needs.threads && !price.can.threads;
    match (price.structure.is_filter(), with_lock) {
        (true, _) if needs.deletes != Deletes::Never && !price.can.certain_no => Class::UncertainNo,
        (true, false) => Class::Filter,
        (true, true) => Class::FilterWithLock,
        (false, _) if !cheap => Class::ExpensiveAndExact,
        (false, false) => Class::CheapAndExact,
        (false, true) => Class::CheapAndExactWithLock,
    }
}

/// The memory for the rate, with a penalty for slow lookups; less is better. If all have the same rate, this orders them by
/// memory.
fn score(structure: Structure, cost: &Cost, needs: &Needs) -> f64 {
    let lines = f64::midpoint(cost.lines_miss, cost.lines_hit);
    let own_layout = |shape: BlockedShape| structure == Structure::BlockedBloom(shape.layout());
    let factor = match structure {
        Structure::BlockedBloom(_)
            if !BlockedShape::for_capacity(needs.items, cost.target_fpr).is_ok_and(own_layout) =>
        {
            OTHER_LAYOUT_IS_WORTH
        }
        Structure::Cuckoo | Structure::CuckooSemiSorted | Structure::DLeft | Structure::GrowableCuckoo
            if needs.deletes == Deletes::Never =>
        {
            COPIES_ARE_WORTH
        }
        _ => 1.0,
    };
    cost.over_bound * (1.0 + LINE_IS_WORTH * lines) * factor * effort(structure)
}

/// The penalty for lookups that compute much besides waiting for memory, as a factor on the memory.
const fn effort(structure: Structure) -> f64 {
    match structure {
        Structure::Quotient | Structure::Growing | Structure::CuckooSemiSorted | Structure::Ribbon => 1.3,
        Structure::Gcs => 2.5,
        _ => 1.0,
    }
}

/// The filter that suits with the least memory per item.
fn smallest_filter(prices: &[Price]) -> Option<(&Price, Cost)> {
    let suiting = prices.iter().filter(|price| price.suits() && price.structure.is_filter());
    suiting
        .filter_map(|price| Some((price, price.cost?)))
        .min_by(|(_, one), (_, other)| one.bits_per_item.total_cmp(&other.bits_per_item))
}

fn why(best: Option<&Price>, prices: &[Price], needs: &Needs) -> Vec<String> {
    let Some((best, cost)) = best.and_then(|best| Some((best, best.cost?))) else {
        return nothing_suits(prices, needs);
    };
    let mut why = vec![headline(best, &cost, needs)];
    if needs.deletes != Deletes::Never && !best.can.certain_no {
        let hidden = say::rate(needs.target_fpr);
        why.push(format!(
            "After a removal a no is no longer certain: up to {hidden} of the members may get a no."
        ));
    }
    if best.structure.is_filter() {
        why.extend(against_the_next(best, &cost, prices));
    } else {
        why.extend(against_a_filter(&cost, prices, needs));
    }
    why
}

fn headline(best: &Price, cost: &Cost, needs: &Needs) -> String {
    let (items, bytes) = (say::items(cost.items), say::bytes(cost.memory_bytes));
    match (best.structure, needs.item) {
        (Structure::Bitmap, ItemShape::IntegerRange { low, high }) => {
            let possible = u128::from(high) + 1 - u128::from(low);
            let possible = say::count(u64::try_from(possible).unwrap_or(u64::MAX));
            format!(
                "Use an exact bitmap of the range {low} to {high}: one bit for each of the {possible} possible numbers, \
                 {bytes}, never wrong, one cache line per lookup, and items can be removed."
            )
        }
        (Structure::SortedArray, ItemShape::IntegerRange { .. }) => {
            format!("Use a sorted array of the numbers themselves: {bytes} for {items}, never wrong.")
        }
        (Structure::SortedArray, _) => {
            let wrong = say::non_members(cost.expected_fpr);
            format!(
                "Use a sorted array of 64-bit fingerprints: {bytes} for {items}, false positives: {wrong}."
            )
        }
        (Structure::HashSet, _) => {
            format!("Use a hash set: {bytes} for {items}, never wrong; it grows and items can be removed.")
        }
        (Structure::Window, _) => {
            let bits = cost.bits_per_item;
            format!("Use window: {bytes} for the last {items} ({bits:.1} bits each), {}.", lines(cost))
        }
        (filter, _) => {
            let (bits, lookup) = (cost.bits_per_item, lines(cost));
            format!("Use {filter}: {bytes} for {items} ({bits:.1} bits each), {lookup}.")
        }
    }
}

/// `one cache line per lookup`, or `3.4 cache lines for a no, 7.0 for a maybe`.
pub(super) fn lines(cost: &Cost) -> String {
    match (cost.lines_miss, cost.lines_hit) {
        (miss, hit) if hit < 1.05 && miss < 1.05 => "one cache line per lookup".into(),
        (miss, hit) if hit - miss < 0.05 => format!("{hit:.1} cache lines per lookup"),
        (miss, hit) => format!("{miss:.1} cache lines for a no, {hit:.1} for a maybe"),
    }
}

/// Compares the runner-up among the filters with the best.
fn against_the_next(best: &Price, cost: &Cost, prices: &[Price]) -> Option<String> {
    let other_kind = |price: &&Price| price.structure.kind() != best.structure.kind();
    let next = prices.iter().filter(|price| price.suits()).find(other_kind)?;
    let next_cost = next.cost?;
    let (name, bytes) = (next.structure, say::bytes(next_cost.memory_bytes));
    let change = next_cost.memory_bytes as f64 / cost.memory_bytes as f64 - 1.0;
    let percent = (change.abs() * 100.0).round();
    let memory = match change {
        _ if percent < 1.0 => "as much memory".to_owned(),
        _ if change < 0.0 => format!("{percent:.0}% less memory ({bytes})"),
        _ if change < 1.0 => format!("{percent:.0}% more memory ({bytes})"),
        _ => format!("{:.1} times the memory ({bytes})", change + 1.0),
    };
    let rate = match say::rate(next_cost.target_fpr) {
        // An exact structure is never wrong; its rate is not worth a mention.
        _ if next_cost.target_fpr == cost.target_fpr || next.can.exact => String::new(),
        rate => format!(" for a rate of {rate}"),
    };
    let items = match say::items(next_cost.items) {
        _ if next_cost.items == cost.items => String::new(),
        items => format!(" for {items}"),
    };
    Some(format!("Next is {name}: {memory}{items}{rate}, {}.", lines(&next_cost)))
}

/// Explains why no filter is recommended: what the smallest one would save.
fn against_a_filter(cost: &Cost, prices: &[Price], needs: &Needs) -> Option<String> {
    let Some((filter, filter_cost)) = smallest_filter(prices) else {
        let wish = match (needs.deletes != Deletes::Never, needs.growth == Growth::Unknown) {
            (true, true) => "both removes items and grows",
            _ => "meets these needs",
        };
        return Some(format!("No filter {wish}."));
    };
    let (name, wrong_for) = (filter.structure, say::non_members(filter_cost.target_fpr));
    let bytes = say::bytes(filter_cost.memory_bytes);
    if needs.memory_for_items().is_some() {
        let items = say::items(filter_cost.items);
        return Some(format!(
            "The filter that holds most here is {name}: {items}, with false positives for {wrong_for}."
        ));
    }
    Some(if filter_cost.memory_bytes >= cost.memory_bytes {
        format!(
            "The smallest filter that suits, {name}, would take {bytes} and have false positives for {wrong_for}."
        )
    } else {
        let saved = say::bytes(cost.memory_bytes - filter_cost.memory_bytes);
        format!("A filter ({name}, {bytes}) would save {saved} but have false positives for {wrong_for}.")
    })
}

fn nothing_suits(prices: &[Price], needs: &Needs) -> Vec<String> {
    if let ([price], Some(structure)) = (prices, needs.only) {
        let why: Vec<String> = price.unsuitable.iter().map(ToString::to_string).collect();
        return vec![format!("{structure} does not meet these needs: {}.", why.join(", "))];
    }
    let Some(limit) = needs.memory_limit_bytes else {
        return vec!["No structure meets these needs.".into()];
    };
    let limit = say::bytes(limit);
    let least = prices
        .iter()
        .filter(|price| price.suits_but_for_memory())
        .filter_map(|price| Some((price.structure, price.cost?.memory_bytes)));
    match least.min_by_key(|&(_, bytes)| bytes) {
        Some((structure, bytes)) => {
            let bytes = say::bytes(bytes);
            vec![format!(
                "Nothing fits in {limit}: the smallest that meets the other needs, {structure}, takes {bytes}."
            )]
        }
        None => vec![format!("No structure meets these needs, neither in {limit} nor in more memory.")],
    }
}
