//! What every structure costs for given needs, what it can do, and why it will not do.

use std::fmt;

use super::exact;
use super::needs::{Deletes, Growth, ItemShape, Needs, NeedsError};
use super::{filters, say, solve};
use crate::blocked::BlockedLayout;
use crate::error::BuildError;
use crate::kind::Kind;

/// Something that can hold a set: one of our kinds, or an exact structure that is sometimes the better choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// One bit for every integer of a range: exact.
    Bitmap,
    /// [`Bloom`](crate::Bloom).
    Bloom,
    /// [`BlockedBloom`](crate::BlockedBloom), in one of its layouts.
    BlockedBloom(BlockedLayout),
    /// [`CountingBloom`](crate::CountingBloom).
    CountingBloom,
    /// [`DualBloom`](crate::DualBloom).
    DualBloom,
    /// [`ScalableBloom`](crate::ScalableBloom).
    ScalableBloom,
    /// [`DLeft`](crate::DLeft).
    DLeft,
    /// [`Cuckoo`](crate::Cuckoo), its buckets as they are.
    Cuckoo,
    /// [`Cuckoo`](crate::Cuckoo) with semi-sorted buckets.
    CuckooSemiSorted,
    /// [`GrowableCuckoo`](crate::GrowableCuckoo), told that it may grow to [`GROWABLE_TO`] times its items.
    GrowableCuckoo,
    /// [`Quotient`](crate::Quotient).
    Quotient,
    /// [`Xor`](crate::Xor), with the fewest bits that keep the rate.
    Xor,
    /// [`BinaryFuse`](crate::BinaryFuse), with the fewest bits that keep the rate.
    BinaryFuse,
    /// [`Ribbon`](crate::Ribbon).
    Ribbon,
    /// [`Gcs`](crate::Gcs).
    Gcs,
    /// [`Window`](crate::Window), of so many items.
    Window,
    /// [`Growing`](crate::Growing).
    Growing,
    /// The items, or 64-bit fingerprints of them, sorted.
    SortedArray,
    /// The standard library's hash set of the items themselves: exact.
    HashSet,
}

impl Structure {
    /// All there is to choose from, as the price list has it.
    pub fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.into_iter().flat_map(Self::of_kind).copied().chain([Self::SortedArray, Self::HashSet])
    }

    /// The structures that are of this kind.
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
            // For the sake of RedisBloom: others do the same in half the memory, and keep a rate.
            Kind::ScalableCuckoo => &[],
            // Not priced: it has no rate to choose.
            Kind::Fingerprints => &[],
        }
    }

    /// Our kind, unless it is none of ours.
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| Self::of_kind(kind).contains(&self))
    }

    /// Is a `mayhap` of it sometimes wrong by design?
    #[must_use]
    pub const fn is_filter(self) -> bool {
        !matches!(self, Self::Bitmap | Self::SortedArray | Self::HashSet)
    }

    /// Is it built of all its items at once, and never changed?
    #[must_use]
    pub const fn is_static(self) -> bool {
        matches!(self, Self::Xor | Self::BinaryFuse | Self::Ribbon | Self::Gcs | Self::SortedArray)
    }

    /// Can its number of probes be chosen, as [`Needs::probes`] asks?
    #[must_use]
    pub const fn lets_probes_be_chosen(self) -> bool {
        matches!(self, Self::Bloom | Self::CountingBloom)
    }

    /// The name people and programs use: `bloom`, `blocked-bloom split`, `hash-set`, ….
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

/// How far a growable cuckoo filter is priced to grow.
pub const GROWABLE_TO: u64 = 16;

/// What one structure would cost and can do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// The structure.
    pub structure: Structure,
    /// What it costs; nothing if it cannot be built for these needs at all.
    pub cost: Option<Cost>,
    /// What it can do.
    pub can: Abilities,
    /// Why it will not do. Empty: it suits.
    pub misfits: Vec<Misfit>,
}

impl Price {
    /// Does it meet the needs it was priced for?
    #[must_use]
    pub fn suits(&self) -> bool {
        self.misfits.is_empty()
    }

    /// `needs` with the numbers this was priced at: where the rate or the items follow from the memory, each has its own.
    #[must_use]
    pub fn sized(&self, needs: &Needs) -> Needs {
        let own = self.cost.map_or((needs.items, needs.target_fpr), |cost| (cost.items, cost.target_fpr));
        // What is never wrong has no rate to be built with.
        let target_fpr = if own.1 > 0.0 { own.1 } else { needs.target_fpr };
        Needs { items: own.0, target_fpr, ..needs.clone() }
    }

    /// Would it meet the needs if there were memory enough?
    pub(super) fn suits_but_for_memory(&self) -> bool {
        self.cost.is_some() && self.misfits.iter().all(|misfit| matches!(misfit, Misfit::OverMemory { .. }))
    }
}

/// What a structure with all its items in costs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Items it is sized for: those asked for, or the most it holds in the memory where
    /// [`items_from_memory`](Needs::items_from_memory) is set.
    pub items: u64,
    /// Memory it takes.
    pub memory_bytes: u64,
    /// The same for each item.
    pub bits_per_item: f64,
    /// The rate it is sized for: that asked for, or the lowest it reaches in the memory where
    /// [`rate_from_memory`](Needs::rate_from_memory) is set. An exact structure has 0.
    pub target_fpr: f64,
    /// How many times the least a filter of this rate can take, `log2(1/p)` bits an item.
    pub over_bound: f64,
    /// Places an item has in it.
    pub probes: u32,
    /// Cache lines touched for a non-member, on average; nearly all of them get a *no*.
    pub lines_miss: f64,
    /// Cache lines touched to answer *mayhap*.
    pub lines_hit: f64,
    /// The rate by the model, once all items are in. An exact structure has 0.
    pub expected_fpr: f64,
    /// The rate by the model, should twice as many items come; the rate it keeps where it grows or refuses them.
    pub doubled_fpr: f64,
}

/// What a structure can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// Items can be removed.
    pub deletes: bool,
    /// It takes more items than it was built for and still keeps its promise.
    pub grows: bool,
    /// Two of them become one that holds what both held.
    pub merges: bool,
    /// No answer is ever wrong.
    pub exact: bool,
    /// Many threads insert at the same time without a lock.
    pub threads: bool,
    /// A `no` is certain, also after items were removed.
    pub certain_no: bool,
    /// It knows how many copies of an item are in, and every copy may take room.
    pub counts: bool,
    /// Full, it refuses items where others get worse.
    pub refuses: bool,
}

/// Why a structure will not do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Misfit {
    /// Items cannot be removed from it.
    CannotDelete,
    /// It pays for removals, and nothing is ever removed.
    OnlyForRemovals,
    /// Every removal takes room for good, and they never end.
    WearsOut,
    /// It does not grow.
    CannotGrow,
    /// It grows, but not further than it was told when it was made.
    GrowsToALimit,
    /// It never forgets, and old items are to be forgotten.
    NeverForgets,
    /// It forgets what is old, and nothing is to be forgotten.
    ForgetsOldItems,
    /// It wants all items at once.
    NeedsAllAtOnce,
    /// It is for integers of a known range.
    NeedsRange,
    /// The number of its probes is not for others to choose, or it has none.
    NoProbesToChoose,
    /// There is no file of it, and one was asked for.
    NoFile,
    /// Its memory is above the limit.
    OverMemory {
        /// What it takes.
        bytes: u64,
        /// What it may take.
        limit: u64,
    },
    /// It is wrong more often than asked for.
    WrongTooOften {
        /// How often.
        expected_fpr: f64,
    },
    /// It cannot be built from these numbers.
    Unbuildable(BuildError),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotDelete => f.write_str("cannot delete"),
            Self::OnlyForRemovals => f.write_str("only worth it where items are removed"),
            Self::WearsOut => f.write_str("wears out: every removal takes room"),
            Self::CannotGrow => f.write_str("cannot grow"),
            Self::GrowsToALimit => f.write_str("grows only to a size told beforehand"),
            Self::NeverForgets => f.write_str("never forgets old items"),
            Self::ForgetsOldItems => f.write_str("forgets old items"),
            Self::NeedsAllAtOnce => f.write_str("needs all items at once"),
            Self::NeedsRange => f.write_str("needs integers in a known range"),
            Self::NoProbesToChoose => f.write_str("has no number of probes to choose"),
            Self::NoFile => f.write_str("is kept in no file"),
            Self::OverMemory { bytes, limit } => {
                let said = [say::bytes(*bytes), say::bytes(*limit)];
                // A few bytes too many do not show in three digits.
                let exact = [bytes, limit].map(|bytes| format!("{} B", say::count(*bytes)));
                let [bytes, limit] = if said[0] == said[1] { exact } else { said };
                write!(f, "takes {bytes}, limit is {limit}")
            }
            Self::WrongTooOften { expected_fpr } => {
                write!(f, "wrong too often: {}", say::rate(*expected_fpr))
            }
            Self::Unbuildable(error) => error.fmt(f),
        }
    }
}

/// What every structure costs and why it suits or not, in the order of [`Structure::all`].
///
/// Memory comes from the same shapes the filters are built from: it is what `memory_bytes()` of the filter will say.
///
/// ```
/// use mayhap::Bloom;
/// use mayhap::advise::{Needs, Structure, price_list};
///
/// let prices = price_list(&Needs::new(1_000, 0.01))?;
/// let bloom = prices.iter().find(|price| price.structure == Structure::Bloom).unwrap();
/// assert!(bloom.suits());
/// assert_eq!(bloom.cost.unwrap().memory_bytes, Bloom::for_capacity(1_000, 0.01, 0)?.memory_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`NeedsError`] for needs that cannot be meant.
pub fn price_list(needs: &Needs) -> Result<Vec<Price>, NeedsError> {
    needs.check()?;
    let asked_for = |structure: &Structure| needs.only.is_none_or(|only| only == *structure);
    Ok(Structure::all().filter(asked_for).map(|structure| price(structure, needs)).collect())
}

/// The prices of those of `structures` that could suit, whatever they cost: for a caller that wants the best and no list.
pub(super) fn candidates(
    needs: &Needs,
    structures: impl Iterator<Item = Structure>,
) -> Result<Vec<Price>, NeedsError> {
    needs.check()?;
    let could_suit =
        |&structure: &Structure| misfits(structure, abilities(structure, needs), None, needs).is_empty();
    Ok(structures.filter(could_suit).map(|structure| price(structure, needs)).collect())
}

fn price(structure: Structure, needs: &Needs) -> Price {
    let can = abilities(structure, needs);
    let (cost, unbuildable) = match cost_at_its_numbers(structure, needs) {
        Ok(cost) => (Some(cost), None),
        Err(misfit) => (None, Some(misfit)),
    };
    let misfits = unbuildable.into_iter().chain(misfits(structure, can, cost.as_ref(), needs)).collect();
    Price { structure, cost, can, misfits }
}

/// What `structure` costs at the rate asked for, or at the lowest it reaches where the rate follows from the memory; for the
/// items asked for, or for the most it holds where those follow from it. One that fits at no rate of use is priced at the worst,
/// which says what it would take; one that holds nothing, for the items the others hold.
fn cost_at_its_numbers(structure: Structure, needs: &Needs) -> Result<Cost, Misfit> {
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

/// What `structure` costs at the rate these needs name, if it can be built for them at all.
pub(super) fn cost(structure: Structure, needs: &Needs) -> Result<Cost, Misfit> {
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
    cost.map_err(Misfit::Unbuildable)
}

/// How many removals a dual filter is priced for: those told, or one for every tenth item.
pub(super) fn removals(needs: &Needs) -> u64 {
    match needs.deletes {
        Deletes::UpTo(removals) => removals,
        Deletes::Never | Deletes::Endlessly => needs.items.div_ceil(10),
    }
}

fn misfits(structure: Structure, can: Abilities, cost: Option<&Cost>, needs: &Needs) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    match (needs.growth, structure) {
        (Growth::Window, Structure::Window) => {}
        (Growth::Window, _) => misfits.push(Misfit::NeverForgets),
        (_, Structure::Window) => misfits.push(Misfit::ForgetsOldItems),
        _ => {}
    }
    if structure.is_static() && needs.growth != Growth::AllAtOnce {
        misfits.push(Misfit::NeedsAllAtOnce);
    }
    if needs.deletes != Deletes::Never && !can.deletes {
        misfits.push(Misfit::CannotDelete);
    }
    match needs.deletes {
        // Until its first removal it is a classic filter with a second one beside it that nobody asks for.
        Deletes::Never if structure == Structure::DualBloom => misfits.push(Misfit::OnlyForRemovals),
        Deletes::Endlessly if structure == Structure::DualBloom => misfits.push(Misfit::WearsOut),
        _ => {}
    }
    match (needs.growth, structure) {
        (Growth::Unknown, Structure::GrowableCuckoo) => misfits.push(Misfit::GrowsToALimit),
        (Growth::Unknown, _) if !can.grows => misfits.push(Misfit::CannotGrow),
        _ => {}
    }
    if needs.probes.is_some() && !structure.lets_probes_be_chosen() {
        misfits.push(Misfit::NoProbesToChoose);
    }
    if needs.in_file && structure.kind().is_none() {
        misfits.push(Misfit::NoFile);
    }
    if let Some(cost) = cost {
        // Who takes the rate that fits gets what was sized; only a rate asked for can be missed.
        let asked = needs.memory_for_rates().map_or(needs.target_fpr, |_| 1.0);
        if cost.expected_fpr > asked {
            misfits.push(Misfit::WrongTooOften { expected_fpr: cost.expected_fpr });
        }
        if let Some(limit) = needs.memory_limit_bytes.filter(|&limit| cost.memory_bytes > limit) {
            misfits.push(Misfit::OverMemory { bytes: cost.memory_bytes, limit });
        }
    }
    misfits
}

/// What `structure` can do with such items.
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
        // Two that had nothing removed do merge, but that is no ability to count on where items are removed, and elsewhere
        // nobody takes it.
        Structure::DualBloom => Abilities { deletes: true, certain_no: false, ..NOTHING },
        Structure::ScalableBloom => Abilities { grows: true, ..NOTHING },
        Structure::SortedArray => {
            // Integers are stored themselves; of other items there are only fingerprints.
            let exact = matches!(needs.item, ItemShape::IntegerRange { .. });
            Abilities { merges: true, exact, ..NOTHING }
        }
        Structure::HashSet => Abilities { deletes: true, grows: true, merges: true, exact: true, ..NOTHING },
    }
}
