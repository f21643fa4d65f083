//! Notes on the use of the recommended structure.

use std::fmt;

use mayhap::say;
use mayhap::sizing::MIN_RATE;

use crate::choice::{Advice, advise, lines};
use crate::needs::{Deletes, ItemShape, Needs};
use crate::price::{Cost, Price, Structure, cost, removals};
use crate::{filters, phrase, solve};

/// A note or a warning.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// The expected number of false positives.
    WrongAnswers {
        /// The rate promised.
        target_fpr: f64,
        /// Lookups of non-members per day, if known.
        lookups_per_day: Option<u64>,
        /// Is a `no` certain?
        certain_no: bool,
    },
    /// Some memory stays unused, because it cannot lower the rate.
    LowestRate {
        /// The filter.
        structure: Structure,
        /// Its rate.
        target_fpr: f64,
        /// The unused memory.
        spare_bytes: u64,
    },
    /// Nothing fits in the memory: which rate or which number of items would.
    DoesNotFit {
        /// The structure that comes closest.
        structure: Structure,
        /// The memory allowed.
        limit_bytes: u64,
        /// A rate at which all items would fit, to three digits.
        rate_that_fits: Option<f64>,
        /// The number of items that would fit at the rate asked for.
        items_that_fit: Option<u64>,
    },
    /// A filter that cannot grow gets more items than it was sized for.
    Overfull {
        /// The items it is sized for.
        items: u64,
        /// Its rate with twice as many.
        doubled_fpr: f64,
    },
    /// A filter that cannot grow rejects items above its capacity.
    Refuses {
        /// The items it is sized for.
        items: u64,
    },
    /// How far back a window reaches, and how long it keeps older items.
    Forgets {
        /// The items in the window.
        items: u64,
    },
    /// The cost of growing.
    Growing {
        /// The items it is created for.
        items: u64,
        /// Its memory with ten times as many.
        tenfold_bytes: u64,
    },
    /// The cost of removals, also with counters and with a second filter.
    Deletions {
        /// The recommendation if nothing were removed.
        without: Option<(Structure, Cost)>,
        /// The memory of the recommended structure.
        with_bytes: u64,
        /// The memory of a counting filter.
        counting_bytes: u64,
        /// The memory of a dual filter for this many removals.
        dual_bytes: u64,
        /// The number of removals.
        removals: u64,
        /// The share of members that may get a *no* after removals from a dual filter.
        target_fpr: f64,
    },
    /// Another number of probes would take less memory.
    BetterProbes {
        /// The number asked for.
        asked: u32,
        /// The memory with it.
        asked_bytes: u64,
        /// The best number at this rate.
        best: u32,
        /// The memory with that number.
        best_bytes: u64,
    },
    /// Untrusted clients choose the items: use a secret key.
    KeyedHashing,
    /// The items are trusted: no key.
    FastHashing,
    /// Several threads insert, so it needs a lock.
    NeedsLock {
        /// The structure.
        structure: Structure,
    },
    /// One exact set is cheap; one per user is not.
    ManySets {
        /// The memory of the exact structure.
        exact_bytes: u64,
        /// The memory of the smallest filter.
        filter_bytes: u64,
    },
    /// A hash set was priced for items of an assumed length.
    AssumedLength {
        /// The length assumed for an item, in bytes.
        typical_len: u32,
    },
}

/// Lookups per day if the number is not given: a thousand per second.
const EXAMPLE_LOOKUPS_PER_DAY: u64 = 1000 * 86_400;

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::WrongAnswers { target_fpr, lookups_per_day, certain_no } => {
                let (wrong_for, daily) = (say::non_members(target_fpr), lookups_per_day.unwrap_or(EXAMPLE_LOOKUPS_PER_DAY));
                let asked = match lookups_per_day {
                    Some(lookups) => format!("{} lookups of non-members a day", say::count(lookups)),
                    None => "1,000 lookups of non-members a second".to_owned(),
                };
                let wrong = daily as f64 * target_fpr;
                write!(f, "False positives: at most {wrong_for}. At {asked} that is ")?;
                match wrong {
                    _ if wrong >= 1.0 => write!(f, "up to {} false positives a day", say::count(say::rounded(wrong)))?,
                    _ => write!(f, "one false positive in {} days", say::count(say::rounded(1.0 / wrong)))?,
                }
                f.write_str(if certain_no { "; a no is certain." } else { "." })
            }
            Self::LowestRate { structure, target_fpr, spare_bytes } => {
                let (rate, spare) = (say::rate(target_fpr), say::bytes(spare_bytes));
                if target_fpr <= solve::LOWEST_RATE {
                    write!(f, "A rate below {rate} has no practical use, so {spare} stay unused.")
                } else {
                    write!(f, "{structure} cannot go below {rate}, so {spare} stay unused.")
                }
            }
            Self::DoesNotFit { structure, limit_bytes, rate_that_fits, items_that_fit } => {
                write!(f, "In {} {structure} ", say::bytes(limit_bytes))?;
                match (rate_that_fits, items_that_fit) {
                    (None, None) => f.write_str("holds nothing useful."),
                    (Some(rate), None) => write!(f, "holds all items at a rate of {}.", say::rate(rate)),
                    (None, Some(items)) => write!(f, "holds {}.", say::items(items)),
                    (Some(rate), Some(items)) => {
                        let (rate, items) = (say::rate(rate), say::items(items));
                        write!(f, "holds all items at a rate of {rate}, or {items} at the rate asked for.")
                    }
                }
            }
            Self::Overfull { items, doubled_fpr } => {
                let (items, rate) = (say::items(items), say::rate(doubled_fpr));
                write!(f, "With more than {items} the rate rises: to {rate} with twice as many.")
            }
            Self::Refuses { items } => {
                write!(f, "With more than {} it may reject new items with an error; no item is lost and the rate does not rise.", say::items(items))
            }
            Self::Forgets { items } => {
                let items = say::items(items);
                write!(f, "The last {items} are always remembered. Older ones are forgotten with their generation, at most a third of a window later.")
            }
            Self::Growing { items, tenfold_bytes } => {
                let (bytes, items) = (say::bytes(tenfold_bytes), say::items(items));
                write!(f, "It is created for {items}; with ten times as many it takes {bytes} and keeps its rate.")
            }
            Self::Deletions { without, with_bytes, counting_bytes, dual_bytes, removals, target_fpr } => {
                if let Some((structure, cost)) = without {
                    let (change, bytes) = (phrase::change(with_bytes, cost.memory_bytes), say::bytes(cost.memory_bytes));
                    let lines = lines(&cost);
                    write!(f, "Removing costs {change}: without removals {structure} would be enough, {bytes}, {lines}. ")?;
                }
                let (counting, dual) = (say::bytes(counting_bytes), say::bytes(dual_bytes));
                let (removals, hidden) = (say::count(removals), say::rate(target_fpr));
                write!(
                    f,
                    "A no stays certain if only members are removed. counting-bloom ({counting}) never rejects an item. \
                     dual-bloom ({dual} for {removals} removals in total) may answer no for {hidden} of the members."
                )
            }
            Self::BetterProbes { asked, asked_bytes, best, best_bytes } => {
                let (more, bytes) = (phrase::change(asked_bytes, best_bytes), say::bytes(best_bytes));
                write!(f, "Probes: {best} is the best number at this rate and takes {bytes}; {asked} cost {more}.")
            }
            Self::KeyedHashing => f.write_str(
                "Untrusted items: hash with a secret key, so that attackers cannot craft items that collide. Keep the key with \
                 the filter; filters with different keys cannot be merged.",
            ),
            Self::FastHashing => f.write_str(
                "Hashing: the fast hash is for trusted items. If you do not trust the clients that choose them, use a secret \
                 key: HashScheme::keyed_random(), or --untrusted for the program.",
            ),
            Self::NeedsLock { structure } => {
                write!(f, "Threads: {structure} has no lock-free variant; protect it with an RwLock.")
            }
            Self::ManySets { exact_bytes, filter_bytes } => {
                let (exact, filter) = (say::bytes(exact_bytes), say::bytes(filter_bytes));
                write!(f, "With one such set per user the memory adds up: {exact} each, against {filter} for the smallest filter.")
            }
            Self::AssumedLength { typical_len } => {
                write!(f, "The hash set is priced for items of {typical_len} bytes; give the length of yours.")
            }
        }
    }
}

/// All notes on `best`, the most important first.
pub(super) fn notes(best: Option<&Price>, prices: &[Price], needs: &Needs) -> Vec<Note> {
    let Some(best) = best else {
        return does_not_fit(prices, needs).into_iter().collect();
    };
    let mut notes = Vec::new();
    let bytes_of = |structure| cost(structure, needs).ok().map(|cost| cost.memory_bytes);
    if !best.can.exact {
        let (target_fpr, lookups_per_day) = (needs.target_fpr, needs.lookups_per_day);
        notes.push(Note::WrongAnswers { target_fpr, lookups_per_day, certain_no: best.can.certain_no });
        notes.push(if needs.untrusted { Note::KeyedHashing } else { Note::FastHashing });
    }
    notes.extend(lowest_rate(best, needs));
    notes.extend(better_probes(best, needs));
    match best.cost {
        Some(_) if best.structure == Structure::Window => notes.push(Note::Forgets { items: needs.items }),
        Some(_) if !best.structure.is_filter() || best.structure.is_static() || best.can.grows => {}
        Some(_) if best.can.refuses => notes.push(Note::Refuses { items: needs.items }),
        Some(cost) => notes.push(Note::Overfull { items: needs.items, doubled_fpr: cost.doubled_fpr }),
        None => {}
    }
    let tenfold = match best.structure {
        Structure::ScalableBloom => {
            filters::scalable_bytes_once_grown(needs.items, needs.target_fpr, 10).ok()
        }
        Structure::Growing => filters::growing_bytes_once_grown(needs.items, needs.target_fpr, 10).ok(),
        _ => None,
    };
    if let Some(tenfold_bytes) = tenfold {
        notes.push(Note::Growing { items: needs.items, tenfold_bytes });
    }
    if needs.deletes != Deletes::Never
        && best.structure.is_filter()
        && let (Some(counting_bytes), Some(dual_bytes)) =
            (bytes_of(Structure::CountingBloom), bytes_of(Structure::DualBloom))
    {
        let (removals, target_fpr) = (removals(needs), needs.target_fpr);
        let without = Needs { deletes: Deletes::Never, memory_limit_bytes: None, ..needs.clone() };
        let without = advise(&without).ok();
        let without = without.as_ref().and_then(Advice::recommended);
        let without = without.and_then(|price| Some((price.structure, price.cost?)));
        let with_bytes = best.cost.map_or(0, |cost| cost.memory_bytes);
        notes.push(Note::Deletions { without, with_bytes, counting_bytes, dual_bytes, removals, target_fpr });
    }
    if needs.threads && !best.can.threads {
        notes.push(Note::NeedsLock { structure: best.structure });
    }
    let smallest_filter = prices.iter().filter(|price| price.suits() && price.structure.is_filter());
    let smallest_filter = smallest_filter.filter_map(|price| Some(price.cost?.memory_bytes)).min();
    if let (Some(cost), Some(filter_bytes)) = (best.cost, smallest_filter)
        && !best.structure.is_filter()
        && filter_bytes < cost.memory_bytes
        && needs.memory_for_items().is_none()
    {
        notes.push(Note::ManySets { exact_bytes: cost.memory_bytes, filter_bytes });
    }
    if best.structure == Structure::HashSet && needs.item == ItemShape::Unknown {
        notes.push(Note::AssumedLength { typical_len: ItemShape::ASSUMED_LEN });
    }
    notes
}

/// The note for a number of probes that is not the best.
fn better_probes(best: &Price, needs: &Needs) -> Option<Note> {
    let (asked, asked_bytes) = (needs.probes?, best.cost?.memory_bytes);
    let free = cost(best.structure, &Needs { probes: None, ..needs.clone() }).ok()?;
    let better = free.probes != asked && free.memory_bytes < asked_bytes;
    better.then_some(Note::BetterProbes {
        asked,
        asked_bytes,
        best: free.probes,
        best_bytes: free.memory_bytes,
    })
}

/// The note for memory that cannot lower the rate.
fn lowest_rate(best: &Price, needs: &Needs) -> Option<Note> {
    let (limit, price) = (needs.memory_for_rates()?, best.cost?);
    let lower = Needs { target_fpr: price.target_fpr * 0.98, ..needs.clone() };
    let lowest = price.target_fpr <= solve::LOWEST_RATE || cost(best.structure, &lower).is_err();
    (best.structure.is_filter() && lowest).then(|| Note::LowestRate {
        structure: best.structure,
        target_fpr: price.target_fpr,
        spare_bytes: limit.saturating_sub(price.memory_bytes),
    })
}

/// What the smallest structure that meets the other needs could hold in the memory; a filter, if one meets them.
fn does_not_fit(prices: &[Price], needs: &Needs) -> Option<Note> {
    let limit_bytes = needs.memory_limit_bytes?;
    let able = prices.iter().filter(|price| price.suits_but_for_memory());
    let mut nearest: Vec<_> = able
        .filter_map(|price| Some((!price.structure.is_filter(), price.cost?.memory_bytes, price.structure)))
        .collect();
    nearest.sort_by_key(|&(exact, bytes, _)| (exact, bytes));
    let open = Needs { memory_limit_bytes: None, ..needs.clone() };
    let rate = |structure| solve::written_rate(structure, &open, limit_bytes, MIN_RATE).ok();
    // Prefer one that holds all items, even at a higher rate; fingerprints cannot be arbitrarily short.
    let holds_all = nearest.iter().find_map(|&(_, _, structure)| Some((structure, rate(structure)?)));
    let (structure, rate_that_fits) = match holds_all {
        Some((structure, rate)) => (structure, Some(rate)),
        None => (nearest.first()?.2, None),
    };
    let items_that_fit = solve::most_items(structure, &open, limit_bytes).ok();
    Some(Note::DoesNotFit { structure, limit_bytes, rate_that_fits, items_that_fit })
}
