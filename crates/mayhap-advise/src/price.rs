//! The cost and abilities of every structure for given needs, and why it does not suit.

use std::fmt;

use mayhap::{BlockedLayout, BuildError, Kind, say};

use crate::needs::{Deletes, Growth, ItemShape, Needs, NeedsError};
use crate::{exact, filters, solve};

/// A structure that can hold a set: one of our kinds, or an exact structure that is sometimes the better choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// One bit for every integer of a range: exact.
    Bitmap,
    /// [`Bloom`](mayhap::Bloom).
    Bloom,
    /// [`BlockedBloom`](mayhap::BlockedBloom), in one of its layouts.
    BlockedBloom(BlockedLayout),
    /// [`CountingBloom`](mayhap::CountingBloom).
    CountingBloom,
    /// [`DualBloom`](mayhap::DualBloom).
    DualBloom,
    /// [`ScalableBloom`](mayhap::ScalableBloom).
    ScalableBloom,
    /// [`DLeft`](mayhap::DLeft).
    DLeft,
    /// [`Cuckoo`](mayhap::Cuckoo) with plain buckets.
    Cuckoo,
    /// [`Cuckoo`](mayhap::Cuckoo) with semi-sorted buckets.
    CuckooSemiSorted,
    /// [`GrowableCuckoo`](mayhap::GrowableCuckoo) that may grow to [`GROWABLE_TO`] times its items.
    GrowableCuckoo,
    /// [`Quotient`](mayhap::Quotient).
    Quotient,
    /// [`Xor`](mayhap::Xor), with the narrowest fingerprints that keep the rate.
    Xor,
    /// [`BinaryFuse`](mayhap::BinaryFuse), with the narrowest fingerprints that keep the rate.
    BinaryFuse,
    /// [`Ribbon`](mayhap::Ribbon).
    Ribbon,
    /// [`Gcs`](mayhap::Gcs).
    Gcs,
    /// [`Window`](mayhap::Window) of the last N items.
    Window,
    /// [`Growing`](mayhap::Growing).
    Growing,
    /// A sorted array of the items, or of 64-bit fingerprints of them.
    SortedArray,
    /// The standard library's hash set of the items themselves: exact.
    HashSet,
}

impl Structure {
    /// All structures, in the order of the price list.
    pub fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.into_iter().flat_map(Self::of_kind).copied().chain([Self::SortedArray, Self::HashSet])
    }

    /// The structures of this kind.
    fn of_kind(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::Bitmap => &[Self::Bitmap],
            Kind::Bloom => &[Self::Bloom],
            Kind::BlockedBloom => {
                &[Self::BlockedBloom(BlockedLayout::Split256), Self::BlockedBloom(BlockedLayout::Line512)]
            }
            Kind::CountingBloom => &[Self::CountingBloom],
            Kind::DualBloom => &[Self::DualBloom],
            Kind::ScalableBloom => &[Self::ScalableBloom],
            Kind::DLeft => &[Self::DLeft],
            Kind::Cuckoo => &[Self::Cuckoo, Self::CuckooSemiSorted],
            Kind::GrowableCuckoo => &[Self::GrowableCuckoo],
            Kind::Quotient => &[Self::Quotient],
            Kind::Xor => &[Self::Xor],
            Kind::BinaryFuse => &[Self::BinaryFuse],
            Kind::Ribbon => &[Self::Ribbon],
            Kind::Gcs => &[Self::Gcs],
            Kind::Window => &[Self::Window],
            Kind::Growing => &[Self::Growing],
            // `ScalableCuckoo` exists for RedisBloom; others do the same in half the memory, and keep a rate. The rate of `Fingerprints` cannot
            // be chosen. A test names both: any other kind must have an arm here.
            _ => &[],
        }
    }

    /// Its kind; `None` if it is not one of our filters.
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| Self::of_kind(kind).contains(&self))
    }

    /// Can it have false positives by design?
    #[must_use]
    pub const fn is_filter(self) -> bool {
        !matches!(self, Self::Bitmap | Self::SortedArray | Self::HashSet)
    }

    /// Is it immutable, built once from all items?
    #[must_use]
    pub const fn is_static(self) -> bool {
        matches!(self, Self::Xor | Self::BinaryFuse | Self::Ribbon | Self::Gcs | Self::SortedArray)
    }

    /// Can its number of probes be chosen with [`Needs::probes`]?
    #[must_use]
    pub const fn lets_probes_be_chosen(self) -> bool {
        matches!(self, Self::Bloom | Self::CountingBloom)
    }

    /// The name in commands and texts: `bloom`, `blocked-bloom split`, `hash-set`, ….
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BlockedBloom(BlockedLayout::Split256) => "blocked-bloom split",
            Self::BlockedBloom(BlockedLayout::Line512) => "blocked-bloom line",
            Self::CuckooSemiSorted => "cuckoo semi-sorted",
            Self::SortedArray => "sorted-array",
            Self::HashSet => "hash-set",
            ours => ours.kind().map_or("", Kind::name),
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The growth that a growable cuckoo filter is priced for.
pub const GROWABLE_TO: u64 = mayhap::Filter::GROWABLE_TO;

/// The cost and abilities of one structure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// The structure.
    pub structure: Structure,
    /// Its cost; `None` if it cannot be built for these needs.
    pub cost: Option<Cost>,
    /// Its abilities.
    pub can: Abilities,
    /// Why it does not suit. Empty if it suits.
    pub unsuitable: Vec<Unsuitable>,
}

impl Price {
    /// Does it meet the needs it was priced for?
    #[must_use]
    pub fn suits(&self) -> bool {
        self.unsuitable.is_empty()
    }

    /// `needs` with the numbers of this price: if the rate or the items are solved from the memory, each price has its own.
    #[must_use]
    pub fn sized(&self, needs: &Needs) -> Needs {
        let own = self.cost.map_or((needs.items, needs.target_fpr), |cost| (cost.items, cost.target_fpr));
        // An exact structure has no rate to be built with.
        let target_fpr = if own.1 > 0.0 { own.1 } else { needs.target_fpr };
        Needs { items: own.0, target_fpr, ..needs.clone() }
    }

    /// Would it meet the needs with more memory?
    pub(super) fn suits_but_for_memory(&self) -> bool {
        self.cost.is_some()
            && self.unsuitable.iter().all(|reason| matches!(reason, Unsuitable::OverMemory { .. }))
    }
}

/// The cost of a structure with all its items.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// The items it is sized for: those asked for, or the most it holds in the memory if
    /// [`items_from_memory`](Needs::items_from_memory) is set.
    pub items: u64,
    /// The memory it takes.
    pub memory_bytes: u64,
    /// Bits of memory per item.
    pub bits_per_item: f64,
    /// The rate it is sized for: the one asked for, or the lowest it reaches in the memory if
    /// [`rate_from_memory`](Needs::rate_from_memory) is set. 0 for an exact structure.
    pub target_fpr: f64,
    /// Its memory divided by the minimum for a filter of this rate, `log2(1/p)` bits per item.
    pub over_bound: f64,
    /// The number of places an item has in it.
    pub probes: u32,
    /// The average number of cache lines touched for a non-member; nearly all of them get a *no*.
    pub lines_miss: f64,
    /// The number of cache lines touched to answer *maybe*.
    pub lines_hit: f64,
    /// The rate by the model with all items inserted. 0 for an exact structure.
    pub expected_fpr: f64,
    /// The rate by the model with twice as many items; the rate it keeps if it grows or rejects them.
    pub doubled_fpr: f64,
}

/// The abilities of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// Items can be removed.
    pub deletes: bool,
    /// It accepts more items than it was built for and still keeps its rate.
    pub grows: bool,
    /// Two of them can be merged.
    pub merges: bool,
    /// It is never wrong.
    pub exact: bool,
    /// Several threads can insert at the same time without a lock.
    pub threads: bool,
    /// A `no` is certain, even after removals.
    pub certain_no: bool,
    /// It counts the copies of an item, and every copy may take room.
    pub counts: bool,
    /// It rejects items when it is full; others let their rate rise.
    pub refuses: bool,
}

/// Why a structure does not suit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unsuitable {
    /// Items cannot be removed from it.
    CannotDelete,
    /// It takes memory for removals, and nothing is ever removed.
    OnlyForRemovals,
    /// Every removal permanently takes room, and the number of removals is unlimited.
    WearsOut,
    /// It does not grow.
    CannotGrow,
    /// It grows, but only to a size set at creation.
    GrowsToALimit,
    /// It never forgets old items, but it should.
    NeverForgets,
    /// It forgets old items, but it should not.
    ForgetsOldItems,
    /// It is built once, from all items.
    NeedsAllAtOnce,
    /// It holds only integers of a known range.
    NeedsRange,
    /// Its number of probes cannot be chosen, or it has no probes.
    NoProbesToChoose,
    /// It cannot be saved to a file, and that was asked for.
    NoFile,
    /// Its memory is above the limit.
    OverMemory {
        /// The memory it takes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Its false-positive rate is higher than asked for.
    WrongTooOften {
        /// Its rate.
        expected_fpr: f64,
    },
    /// It cannot be built from these numbers.
    Unbuildable(BuildError),
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotDelete => f.write_str("cannot delete"),
            Self::OnlyForRemovals => f.write_str("only useful if items are removed"),
            Self::WearsOut => f.write_str("fills up: every removal takes space"),
            Self::CannotGrow => f.write_str("cannot grow"),
            Self::GrowsToALimit => f.write_str("grows only to a size set at creation"),
            Self::NeverForgets => f.write_str("never forgets old items"),
            Self::ForgetsOldItems => f.write_str("forgets old items"),
            Self::NeedsAllAtOnce => f.write_str("needs all items at once"),
            Self::NeedsRange => f.write_str("needs integers in a known range"),
            Self::NoProbesToChoose => f.write_str("number of probes cannot be chosen"),
            Self::NoFile => f.write_str("cannot be saved to a file"),
            Self::OverMemory { bytes, limit } => {
                let said = [say::bytes(*bytes), say::bytes(*limit)];
                // A few bytes too many are not visible in three digits.
                let exact = [bytes, limit].map(|bytes| format!("{} B", say::count(*bytes)));
                let [bytes, limit] = if said[0] == said[1] { exact } else { said };
                write!(f, "takes {bytes}, limit is {limit}")
            }
            Self::WrongTooOften { expected_fpr } => {
                write!(f, "rate too high: {}", say::rate(*expected_fpr))
            }
            Self::Unbuildable(error) => error.fmt(f),
        }
    }
}

/// The cost of every structure and why it suits or not, in the order of [`Structure::all`].
///
/// The memory is computed from the shapes that the filters are built from: it equals `memory_bytes()` of the filter.
///
/// ```
/// use mayhap::Bloom;
/// use mayhap_advise::{Needs, Structure, price_list};
///
/// let prices = price_list(&Needs::new(1_000, 0.01))?;
/// let bloom = prices.iter().find(|price| price.structure == Structure::Bloom).unwrap();
/// assert!(bloom.suits());
/// assert_eq!(bloom.cost.unwrap().memory_bytes, Bloom::for_capacity(1_000, 0.01, 0)?.memory_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`NeedsError`] for invalid needs.
pub fn price_list(needs: &Needs) -> Result<Vec<Price>, NeedsError> {
    needs.check()?;
    let asked_for = |structure: &Structure| needs.only.is_none_or(|only| only == *structure);
    Ok(Structure::all().filter(asked_for).map(|structure| price(structure, needs)).collect())
}

/// The prices of those `structures` that could suit at some price: for callers that only need the best one.
pub(super) fn candidates(
    needs: &Needs,
    structures: impl Iterator<Item = Structure>,
) -> Result<Vec<Price>, NeedsError> {
    needs.check()?;
    let could_suit =
        |&structure: &Structure| unsuitable(structure, abilities(structure, needs), None, needs).is_empty();
    Ok(structures.filter(could_suit).map(|structure| price(structure, needs)).collect())
}

fn price(structure: Structure, needs: &Needs) -> Price {
    let can = abilities(structure, needs);
    let (cost, unbuildable) = match cost_at_its_numbers(structure, needs) {
        Ok(cost) => (Some(cost), None),
        Err(reason) => (None, Some(reason)),
    };
    let unsuitable =
        unbuildable.into_iter().chain(unsuitable(structure, can, cost.as_ref(), needs)).collect();
    Price { structure, cost, can, unsuitable }
}

/// The cost of `structure` at the rate and for the items asked for, or at those solved from the memory: the lowest rate it
/// reaches, the most items it holds. If it does not fit at any useful rate, it is priced at the worst one, to show what it
/// would take. If it cannot hold even one item, it is priced for the items of the others.
fn cost_at_its_numbers(structure: Structure, needs: &Needs) -> Result<Cost, Unsuitable> {
    match needs.memory_for_rates() {
        Some(limit) if structure.is_filter() => {
            let target_fpr =
                solve::written_rate(structure, needs, limit, solve::LOWEST_RATE).unwrap_or(solve::WORST_RATE);
            cost(structure, &Needs { target_fpr, ..needs.clone() })
        }
        _ => match needs.memory_for_items().map(|limit| solve::most_items(structure, needs, limit)) {
            Some(Ok(items)) => cost(structure, &Needs { items, ..needs.clone() }),
            _ => cost(structure, needs),
        },
    }
}

/// The cost of `structure` at the rate and for the items of `needs`, if it can be built for them.
pub(super) fn cost(structure: Structure, needs: &Needs) -> Result<Cost, Unsuitable> {
    let (items, rate) = (needs.items, needs.target_fpr);
    let cost = match structure {
        Structure::Bitmap => return exact::bitmap(needs),
        Structure::Bloom => filters::bloom(items, rate, needs.probes),
        Structure::BlockedBloom(layout) => filters::blocked(layout, items, rate),
        Structure::CountingBloom => filters::counting(items, rate, needs.probes),
        Structure::DualBloom => filters::dual(items, removals(needs), rate),
        Structure::ScalableBloom => filters::scalable(items, rate),
        Structure::DLeft => filters::dleft(items, rate),
        Structure::Cuckoo => filters::cuckoo(items, rate),
        Structure::CuckooSemiSorted => filters::cuckoo_semi_sorted(items, rate),
        Structure::GrowableCuckoo => filters::growable_cuckoo(items, rate),
        Structure::Quotient => filters::quotient(items, rate),
        Structure::Xor => filters::xor(items, rate),
        Structure::BinaryFuse => filters::binary_fuse(items, rate),
        Structure::Ribbon => filters::ribbon(items, rate),
        Structure::Gcs => filters::gcs(items, rate),
        Structure::Window => filters::window(items, rate),
        Structure::Growing => filters::growing(items, rate),
        Structure::SortedArray => Ok(exact::sorted_array(needs)),
        Structure::HashSet => Ok(exact::hash_set(needs)),
    };
    cost.map_err(Unsuitable::Unbuildable)
}

/// The number of removals a dual filter is priced for: the number given, or one for every tenth item.
pub(super) fn removals(needs: &Needs) -> u64 {
    match needs.deletes {
        Deletes::UpTo(removals) => removals,
        Deletes::Never | Deletes::Endlessly => needs.items.div_ceil(10),
    }
}

fn unsuitable(structure: Structure, can: Abilities, cost: Option<&Cost>, needs: &Needs) -> Vec<Unsuitable> {
    let mut unsuitable = Vec::new();
    match (needs.growth, structure) {
        (Growth::Window, Structure::Window) => {}
        (Growth::Window, _) => unsuitable.push(Unsuitable::NeverForgets),
        (_, Structure::Window) => unsuitable.push(Unsuitable::ForgetsOldItems),
        _ => {}
    }
    if structure.is_static() && needs.growth != Growth::AllAtOnce {
        unsuitable.push(Unsuitable::NeedsAllAtOnce);
    }
    if needs.deletes != Deletes::Never && !can.deletes {
        unsuitable.push(Unsuitable::CannotDelete);
    }
    match needs.deletes {
        // Without removals it is a classic filter with an unused second one.
        Deletes::Never if structure == Structure::DualBloom => unsuitable.push(Unsuitable::OnlyForRemovals),
        Deletes::Endlessly if structure == Structure::DualBloom => unsuitable.push(Unsuitable::WearsOut),
        _ => {}
    }
    match (needs.growth, structure) {
        (Growth::Unknown, Structure::GrowableCuckoo) => unsuitable.push(Unsuitable::GrowsToALimit),
        (Growth::Unknown, _) if !can.grows => unsuitable.push(Unsuitable::CannotGrow),
        _ => {}
    }
    if needs.probes.is_some() && !structure.lets_probes_be_chosen() {
        unsuitable.push(Unsuitable::NoProbesToChoose);
    }
    if needs.in_file && structure.kind().is_none() {
        unsuitable.push(Unsuitable::NoFile);
    }
    if let Some(cost) = cost {
        // A rate solved from the memory is always met; only a rate asked for can be missed.
        let asked = needs.memory_for_rates().map_or(needs.target_fpr, |_| 1.0);
        if cost.expected_fpr > asked {
            unsuitable.push(Unsuitable::WrongTooOften { expected_fpr: cost.expected_fpr });
        }
        if let Some(limit) = needs.memory_limit_bytes.filter(|&limit| cost.memory_bytes > limit) {
            unsuitable.push(Unsuitable::OverMemory { bytes: cost.memory_bytes, limit });
        }
    }
    unsuitable
}

/// The abilities of `structure` with such items.
fn abilities(structure: Structure, needs: &Needs) -> Abilities {
    const NOTHING: Abilities = Abilities {
        deletes: false,
        grows: false,
        merges: false,
        exact: false,
        threads: false,
        certain_no: true,
        counts: false,
        refuses: false,
    };
    const COPIES: Abilities = Abilities { deletes: true, counts: true, refuses: true, ..NOTHING };
    match structure {
        Structure::Bitmap => Abilities { deletes: true, grows: true, merges: true, exact: true, ..NOTHING },
        Structure::Bloom | Structure::BlockedBloom(_) => Abilities { merges: true, threads: true, ..NOTHING },
        Structure::CountingBloom => Abilities { refuses: false, merges: true, ..COPIES },
        Structure::DLeft | Structure::Quotient => Abilities { merges: true, ..COPIES },
        Structure::Cuckoo | Structure::CuckooSemiSorted => COPIES,
        Structure::GrowableCuckoo | Structure::Growing => Abilities { grows: true, ..COPIES },
        Structure::Gcs => Abilities { merges: true, ..NOTHING },
        Structure::Xor | Structure::BinaryFuse | Structure::Ribbon | Structure::Window => NOTHING,
        // Two dual filters without removals can be merged. That does not count as an ability if items are removed, and
        // without removals a dual filter is never chosen.
        Structure::DualBloom => Abilities { deletes: true, certain_no: false, ..NOTHING },
        Structure::ScalableBloom => Abilities { grows: true, ..NOTHING },
        Structure::SortedArray => {
            // Integers are stored themselves, other items only as fingerprints.
            let exact = matches!(needs.item, ItemShape::IntegerRange { .. });
            Abilities { merges: true, exact, ..NOTHING }
        }
        Structure::HashSet => Abilities { deletes: true, grows: true, merges: true, exact: true, ..NOTHING },
    }
}
