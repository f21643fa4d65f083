//! A filter of any kind, for programs that learn the kind at run time.

use crate::answers::Answers;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError, MergeError, RemoveError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::{Item, ItemEncoding};
use crate::kind::Kind;
use crate::membership::{Insert, Membership};
use crate::sizing;
use crate::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, Bitmap, BlockedBloom, Bloom, CountingBloom, Cuckoo, DLeft,
    DualBloom, FingerprintSet, Gcs, GrowableCuckoo, Growing, Quotient, Ribbon, ScalableBloom, ScalableCuckoo,
    ScalableCuckooShape, Window, Xor8, Xor16, Xor32,
};
use crate::{WideBloom, wide};

/// A filter of any kind, as read from a file or received from a peer.
///
/// It has the methods that all kinds share. A method that the kind cannot do returns an error: a static set rejects
/// items, a filter without counters cannot remove. Match on the variant to reach the methods of one kind.
///
/// A [`Bitmap`] holds numbers and hashes nothing. Here an item of eight bytes (a `u64`) is a number; any other item is
/// never a member. A `WideBloom` of another program answers for items only, not for hashes.
///
/// ```
/// use mayhap::{Bloom, Filter, Kind};
///
/// let mut seen = Bloom::new(1_000, 0.01)?;
/// seen.insert("ada");
/// let bytes = seen.encode();
///
/// let mut filter = Filter::decode(&bytes)?; // of any kind
/// assert_eq!(filter.kind(), Kind::Bloom);
/// assert!(filter.may_contain("ada") && filter.insert("grace")?);
/// assert!(filter.remove("ada").is_err()); // a Bloom filter cannot remove
/// assert!(filter.may_contain("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Filter {
    /// Exact, for dense integers.
    Bitmap(Bitmap),
    /// The classic.
    Bloom(Bloom),
    /// One cache line per lookup.
    BlockedBloom(BlockedBloom),
    /// Removals, simple.
    CountingBloom(CountingBloom),
    /// Removals by a second filter.
    DualBloom(DualBloom),
    /// An unknown number of items.
    ScalableBloom(ScalableBloom),
    /// Removals and counts, in half the memory of a counting Bloom filter.
    DLeft(DLeft),
    /// Removals, low rates.
    Cuckoo(Cuckoo),
    /// The same, doubling in place up to a limit.
    GrowableCuckoo(GrowableCuckoo),
    /// Removals, counts, merging, resizing.
    Quotient(Quotient),
    /// A static set of up to about 16,000 items, fingerprints of 8 bits.
    Xor8(Xor8),
    /// A static set of up to about 16,000 items, fingerprints of 16 bits.
    Xor16(Xor16),
    /// A static set of up to about 16,000 items, fingerprints of 32 bits.
    Xor32(Xor32),
    /// A static set, small and fast, fingerprints of 8 bits.
    BinaryFuse8(BinaryFuse8),
    /// A static set, small and fast, fingerprints of 16 bits.
    BinaryFuse16(BinaryFuse16),
    /// A static set, small and fast, fingerprints of 32 bits.
    BinaryFuse32(BinaryFuse32),
    /// The smallest static set in memory.
    Ribbon(Ribbon),
    /// The smallest static set on the wire.
    Gcs(Gcs),
    /// The last N items, or the items of the last N seconds.
    Window(Window),
    /// An unknown number of items, one table.
    Growing(Growing),
    /// The classic, of a program whose items have no hash of 128 bits. Its kind is [`Kind::Bloom`], too.
    WideBloom(WideBloom),
    /// RedisBloom's cuckoo filter, which grows table by table.
    ScalableCuckoo(ScalableCuckoo),
    /// Practically exact, growing.
    Fingerprints(FingerprintSet),
}

/// Evaluates the same expression for every kind. The second form has a separate expression for the bitmap, which
/// hashes nothing. The third form also has one for filters that hash items themselves.
macro_rules! each {
    ($self:expr, $filter:ident => $value:expr) => {
        each!($self, $filter => $value, bitmap $filter => $value)
    };
    ($self:expr, $filter:ident => $value:expr, bitmap $bitmap:ident => $exact:expr) => {
        each!($self, $filter => $value, bitmap $bitmap => $exact, wide $filter => $value)
    };
    ($self:expr, $filter:ident => $value:expr, bitmap $bitmap:ident => $exact:expr, wide $wide:ident => $itself:expr) => {
        match $self {
            Filter::Bitmap($bitmap) => $exact,
            Filter::Bloom($filter) => $value,
            Filter::BlockedBloom($filter) => $value,
            Filter::CountingBloom($filter) => $value,
            Filter::DualBloom($filter) => $value,
            Filter::ScalableBloom($filter) => $value,
            Filter::DLeft($filter) => $value,
            Filter::Cuckoo($filter) => $value,
            Filter::GrowableCuckoo($filter) => $value,
            Filter::Quotient($filter) => $value,
            Filter::Xor8($filter) => $value,
            Filter::Xor16($filter) => $value,
            Filter::Xor32($filter) => $value,
            Filter::BinaryFuse8($filter) => $value,
            Filter::BinaryFuse16($filter) => $value,
            Filter::BinaryFuse32($filter) => $value,
            Filter::Ribbon($filter) => $value,
            Filter::Gcs($filter) => $value,
            Filter::Window($filter) => $value,
            Filter::Growing($filter) => $value,
            Filter::WideBloom($wide) => $itself,
            Filter::ScalableCuckoo($filter) => $value,
            Filter::Fingerprints($filter) => $value,
        }
    };
}

/// Evaluates the same expression for every kind that accepts items one after the other.
macro_rules! changing {
    ($self:expr, $filter:ident => $value:expr) => {
        match $self {
            Filter::Bitmap($filter) => $value,
            Filter::Bloom($filter) => $value,
            Filter::BlockedBloom($filter) => $value,
            Filter::CountingBloom($filter) => $value,
            Filter::DualBloom($filter) => $value,
            Filter::ScalableBloom($filter) => $value,
            Filter::DLeft($filter) => $value,
            Filter::Cuckoo($filter) => $value,
            Filter::GrowableCuckoo($filter) => $value,
            Filter::Quotient($filter) => $value,
            Filter::Window($filter) => $value,
            Filter::Growing($filter) => $value,
            Filter::WideBloom($filter) => $value,
            Filter::ScalableCuckoo($filter) => $value,
            Filter::Fingerprints($filter) => $value,
            Filter::Xor8(_)
            | Filter::Xor16(_)
            | Filter::Xor32(_)
            | Filter::BinaryFuse8(_)
            | Filter::BinaryFuse16(_)
            | Filter::BinaryFuse32(_)
            | Filter::Ribbon(_)
            | Filter::Gcs(_) => Err(InsertError::NeverChanges { kind: $self.kind() }),
        }
    };
}

impl Filter {
    /// The growth limit of a growable cuckoo filter of [`for_capacity`](Self::for_capacity), as a multiple of its
    /// capacity.
    pub const GROWABLE_TO: u64 = 16;

    /// Creates an empty filter of this kind for `capacity` items at `target_fpr`.
    ///
    /// It uses the fast hash with a random seed. [`with_seed`](Self::with_seed) sets the seed,
    /// [`keyed`](Self::keyed) draws a secret key, and [`for_capacity`](Self::for_capacity) takes any hash scheme.
    ///
    /// Some kinds take the numbers in their own way:
    ///
    /// | kind | |
    /// |---|---|
    /// | [`Kind::Bitmap`] | holds the numbers from 0 to `capacity - 1`, exactly |
    /// | [`Kind::DualBloom`] | has room for as many removals as insertions |
    /// | [`Kind::GrowableCuckoo`] | can grow to 16 times `capacity` |
    /// | [`Kind::Window`] | holds the last `capacity` items |
    /// | [`Kind::ScalableCuckoo`] | has a fixed rate; a lower `target_fpr` is an error |
    /// | [`Kind::Fingerprints`] | grows from a kibibyte and is practically exact: both numbers are only checked |
    ///
    /// ```
    /// use mayhap::{Filter, Kind};
    ///
    /// let mut seen = Filter::new(Kind::Cuckoo, 1_000, 0.01)?.with_seed(7);
    /// assert!(seen.insert("ada")? && seen.may_contain("ada"));
    /// assert!(Filter::new(Kind::Ribbon, 1_000, 0.01).is_err()); // built from all items together
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::NeedsItems`] for a kind that is built from all items together; otherwise as for that kind.
    pub fn new(kind: Kind, capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_capacity(kind, capacity, target_fpr, HashScheme::random())
    }

    /// [`new`](Self::new) with a hash scheme of your choice. A number is the seed of the fast hash. A bitmap does not hash
    /// and ignores it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_capacity(
        kind: Kind,
        capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        Ok(match kind {
            Kind::Bitmap => Bitmap::new(capacity)?.into(),
            Kind::Bloom => Bloom::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::BlockedBloom => BlockedBloom::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::CountingBloom => CountingBloom::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::DualBloom => DualBloom::for_capacity(capacity, capacity, target_fpr, scheme)?.into(),
            Kind::ScalableBloom => ScalableBloom::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::DLeft => DLeft::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::Cuckoo => Cuckoo::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::GrowableCuckoo => {
                let largest = capacity.saturating_mul(Self::GROWABLE_TO);
                GrowableCuckoo::for_growth(capacity, largest, target_fpr, scheme)?.into()
            }
            Kind::Quotient => Quotient::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::Window => Window::of_items(capacity, target_fpr, scheme)?.into(),
            Kind::Growing => Growing::for_capacity(capacity, target_fpr, scheme)?.into(),
            Kind::ScalableCuckoo => {
                sizing::check_rate(target_fpr)?;
                let shape = ScalableCuckooShape::for_capacity(capacity)?;
                if target_fpr < shape.target_fpr() {
                    return Err(BuildError::RateTooLow { got: target_fpr, limit: shape.target_fpr() });
                }
                ScalableCuckoo::with_shape(shape, scheme)?.into()
            }
            Kind::Fingerprints => {
                sizing::check_rate(target_fpr)?;
                sizing::check_capacity(capacity)?;
                FingerprintSet::within(u64::MAX, scheme)?.into()
            }
            Kind::Xor | Kind::BinaryFuse | Kind::Ribbon | Kind::Gcs => {
                return Err(BuildError::NeedsItems { kind });
            }
        })
    }

    pub(crate) fn set_scheme(&mut self, scheme: HashScheme) {
        match self {
            Self::Bitmap(_) => {}
            Self::Bloom(filter) => filter.set_scheme(scheme),
            Self::BlockedBloom(filter) => filter.set_scheme(scheme),
            Self::CountingBloom(filter) => filter.set_scheme(scheme),
            Self::DualBloom(filter) => filter.set_scheme(scheme),
            Self::ScalableBloom(filter) => filter.set_scheme(scheme),
            Self::DLeft(filter) => filter.set_scheme(scheme),
            Self::Cuckoo(filter) => filter.set_scheme(scheme),
            Self::GrowableCuckoo(filter) => filter.set_scheme(scheme),
            Self::Quotient(filter) => filter.set_scheme(scheme),
            Self::Window(filter) => filter.set_scheme(scheme),
            Self::Growing(filter) => filter.set_scheme(scheme),
            Self::ScalableCuckoo(filter) => filter.set_scheme(scheme),
            Self::Fingerprints(filter) => filter.set_scheme(scheme),
            fixed => panic!("the hash of this {} filter cannot change", fixed.kind()),
        }
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Bitmap(_) => Kind::Bitmap,
            Self::Bloom(_) => Kind::Bloom,
            Self::BlockedBloom(_) => Kind::BlockedBloom,
            Self::CountingBloom(_) => Kind::CountingBloom,
            Self::DualBloom(_) => Kind::DualBloom,
            Self::ScalableBloom(_) => Kind::ScalableBloom,
            Self::DLeft(_) => Kind::DLeft,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::GrowableCuckoo(_) => Kind::GrowableCuckoo,
            Self::Quotient(_) => Kind::Quotient,
            Self::Xor8(_) | Self::Xor16(_) | Self::Xor32(_) => Kind::Xor,
            Self::BinaryFuse8(_) | Self::BinaryFuse16(_) | Self::BinaryFuse32(_) => Kind::BinaryFuse,
            Self::Ribbon(_) => Kind::Ribbon,
            Self::Gcs(_) => Kind::Gcs,
            Self::Window(_) => Kind::Window,
            Self::Growing(_) => Kind::Growing,
            Self::WideBloom(_) => Kind::Bloom,
            Self::ScalableCuckoo(_) => Kind::ScalableCuckoo,
            Self::Fingerprints(_) => Kind::Fingerprints,
        }
    }

    /// How it hashes its items. `None` for a bitmap, which does not hash, and for a `WideBloom`, whose items have no
    /// hash of 128 bits.
    #[must_use]
    pub const fn scheme(&self) -> Option<&HashScheme> {
        each!(self, filter => Some(filter.scheme()), bitmap _bitmap => None, wide _wide => None)
    }

    /// How a filter of another program encodes items as bytes before it hashes them. `None` for our own filters, which
    /// hash the bytes of an item as they are.
    #[must_use]
    pub fn items(&self) -> Option<ItemEncoding> {
        match self {
            Self::WideBloom(filter) => Some(filter.items()),
            filter => match filter.scheme()? {
                HashScheme::Foreign(foreign) => Some(foreign.items()),
                _ => None,
            },
        }
    }

    fn check_form<I: Item + ?Sized>(&self, item: &I) -> Result<(), InsertError> {
        match self.items() {
            Some(items) => {
                item.with_value(|value| items.encode(value).map(drop)).map_err(InsertError::NoForm)
            }
            None => Ok(()),
        }
    }

    /// `false`: certainly not a member (except in a [`DualBloom`] after a removal). `true`: maybe.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        each!(self, filter => filter.may_contain(item), bitmap bitmap => bit(bitmap, item).is_some_and(|bit| bitmap.get(bit)))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed with this filter's [`scheme`](Self::scheme). A
    /// bitmap returns `false`, because it holds no hashes. A `WideBloom` returns `true`: it cannot look up a hash, and a
    /// *no* must be certain.
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        each!(self, filter => filter.may_contain_hash(hash), bitmap _bitmap => false, wide _wide => true)
    }

    /// Looks up all `items` together. This is much faster than one by one if the filter is larger than the cache.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        each!(self, filter => filter.may_contain_batch(items, answers), bitmap bitmap => {
            answers.reset(items.len());
            for (index, item) in items.iter().enumerate() {
                if bit(bitmap, item).is_some_and(|bit| bitmap.get(bit)) {
                    answers.set(index);
                }
            }
        });
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed with this filter's
    /// [`scheme`](Self::scheme). A bitmap and a `WideBloom` answer as in [`may_contain_hash`](Self::may_contain_hash).
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        each!(self, filter => filter.may_contain_hash_batch(hashes, answers), bitmap _bitmap => answers.reset(hashes.len()), wide _wide => {
            answers.reset(hashes.len());
            (0..hashes.len()).for_each(|index| answers.set(index));
        });
    }

    /// Inserts `item`. `true`: it certainly was not a member before. `false`: maybe it was.
    ///
    /// # Errors
    /// [`InsertError`] if the kind is immutable, if there is no room, or if another program's filter has no
    /// [encoding](Self::items) for the item. The filter did not change then.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.check_form(item)?;
        changing!(self, filter => Insert::insert(filter, item))
    }

    /// [`insert`](Self::insert) for an item already hashed with this filter's [`scheme`](Self::scheme).
    ///
    /// # Errors
    /// As [`insert_hash_batch`](Self::insert_hash_batch).
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        changing!(self, filter => Insert::insert_hash(filter, hash))
    }

    /// Inserts all `items` and returns how many of them certainly were not members before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). The items before the rejected one were inserted.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        if let Some(at) = items.iter().position(|item| self.check_form(item).is_err()) {
            self.insert_batch(&items[..at])?;
            return self.insert(&items[at]).map(u64::from);
        }
        changing!(self, filter => Insert::insert_batch(filter, items))
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed with this filter's [`scheme`](Self::scheme).
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch). A bitmap returns [`InsertError::NotANumber`], because it holds no hashes.
    /// A `WideBloom` returns [`InsertError::NeverChanges`], because its items have no such hash.
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        changing!(self, filter => Insert::insert_hash_batch(filter, hashes))
    }

    /// Removes one copy of `item`. Only remove items that were inserted. `false`: it certainly was not a member.
    ///
    /// # Errors
    /// [`RemoveError`] if the kind cannot remove.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RemoveError> {
        match self {
            Self::Bitmap(bitmap) => Ok(bit(bitmap, item).is_some_and(|bit| bitmap.clear(bit))),
            Self::CountingBloom(filter) => Ok(filter.remove(item)),
            Self::DualBloom(filter) => Ok(filter.remove(item)),
            Self::DLeft(filter) => Ok(filter.remove(item)),
            Self::Cuckoo(filter) => Ok(filter.remove(item)),
            Self::GrowableCuckoo(filter) => Ok(filter.remove(item)),
            Self::Quotient(filter) => Ok(filter.remove(item)),
            Self::Growing(filter) => Ok(filter.remove(item)),
            Self::ScalableCuckoo(filter) => Ok(filter.remove(item)),
            _ => Err(RemoveError::CannotRemove { kind: self.kind() }),
        }
    }

    /// An estimate of the copies of `item`, which may be too high. `None` for a kind that does not count copies.
    #[must_use]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> Option<u64> {
        Some(match self {
            Self::Bitmap(_) => u64::from(self.may_contain(item)),
            Self::CountingBloom(filter) => filter.count_estimate(item).into(),
            Self::DLeft(filter) => filter.count_estimate(item).into(),
            Self::Cuckoo(filter) => filter.count(item),
            Self::GrowableCuckoo(filter) => filter.count(item),
            Self::Quotient(filter) => filter.count(item),
            Self::Growing(filter) => filter.count_estimate(item),
            Self::ScalableCuckoo(filter) => filter.count(item),
            _ => return None,
        })
    }

    /// Removes all items. Returns `false`, and does nothing, if the kind is immutable.
    pub fn clear(&mut self) -> bool {
        match self {
            Self::Bitmap(bitmap) => bitmap.clear_all(),
            Self::Bloom(filter) => filter.clear(),
            Self::BlockedBloom(filter) => filter.clear(),
            Self::CountingBloom(filter) => filter.clear(),
            Self::DualBloom(filter) => filter.clear(),
            Self::ScalableBloom(filter) => filter.clear(),
            Self::DLeft(filter) => filter.clear(),
            Self::Cuckoo(filter) => filter.clear(),
            Self::GrowableCuckoo(filter) => filter.clear(),
            Self::Quotient(filter) => filter.clear(),
            Self::Growing(filter) => filter.clear(),
            Self::ScalableCuckoo(filter) => filter.clear(),
            Self::Fingerprints(filter) => filter.clear(),
            Self::Window(filter) => filter.clear(),
            _ => return false,
        }
        true
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(match self {
            Self::Bitmap(filter) => Self::Bitmap(filter.try_clone()?),
            Self::Bloom(filter) => Self::Bloom(filter.try_clone()?),
            Self::BlockedBloom(filter) => Self::BlockedBloom(filter.try_clone()?),
            Self::CountingBloom(filter) => Self::CountingBloom(filter.try_clone()?),
            Self::DualBloom(filter) => Self::DualBloom(filter.try_clone()?),
            Self::ScalableBloom(filter) => Self::ScalableBloom(filter.try_clone()?),
            Self::DLeft(filter) => Self::DLeft(filter.try_clone()?),
            Self::Cuckoo(filter) => Self::Cuckoo(filter.try_clone()?),
            Self::GrowableCuckoo(filter) => Self::GrowableCuckoo(filter.try_clone()?),
            Self::Quotient(filter) => Self::Quotient(filter.try_clone()?),
            Self::Xor8(filter) => Self::Xor8(filter.try_clone()?),
            Self::Xor16(filter) => Self::Xor16(filter.try_clone()?),
            Self::Xor32(filter) => Self::Xor32(filter.try_clone()?),
            Self::BinaryFuse8(filter) => Self::BinaryFuse8(filter.try_clone()?),
            Self::BinaryFuse16(filter) => Self::BinaryFuse16(filter.try_clone()?),
            Self::BinaryFuse32(filter) => Self::BinaryFuse32(filter.try_clone()?),
            Self::Ribbon(filter) => Self::Ribbon(filter.try_clone()?),
            Self::Gcs(filter) => Self::Gcs(filter.try_clone()?),
            Self::Window(filter) => Self::Window(filter.try_clone()?),
            Self::Growing(filter) => Self::Growing(filter.try_clone()?),
            Self::WideBloom(filter) => Self::WideBloom(filter.try_clone()?),
            Self::ScalableCuckoo(filter) => Self::ScalableCuckoo(filter.try_clone()?),
            Self::Fingerprints(filter) => Self::Fingerprints(filter.try_clone()?),
        })
    }

    /// Inserts all items of `other`.
    ///
    /// # Errors
    /// [`MergeError`] unless both filters are of the same kind, that kind can merge, and both have the same shape and
    /// hash. The filter did not change then.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        match (&mut *self, other) {
            (Self::Bitmap(ours), Self::Bitmap(theirs)) if ours.first() != theirs.first() => {
                let from = |bitmap: &Bitmap| format!("numbers from {}", bitmap.first());
                Err(MergeError::ShapeDiffers { ours: from(ours), theirs: from(theirs) })
            }
            (Self::Bitmap(ours), Self::Bitmap(theirs)) => ours.or(theirs).map_err(MergeError::Unbuildable),
            (Self::Bloom(ours), Self::Bloom(theirs)) => ours.union(theirs),
            (Self::BlockedBloom(ours), Self::BlockedBloom(theirs)) => ours.union(theirs),
            (Self::CountingBloom(ours), Self::CountingBloom(theirs)) => ours.union(theirs),
            (Self::DualBloom(ours), Self::DualBloom(theirs)) => ours.union(theirs),
            (Self::DLeft(ours), Self::DLeft(theirs)) => ours.union(theirs),
            (Self::Quotient(ours), Self::Quotient(theirs)) => ours.union(theirs),
            (Self::Gcs(ours), Self::Gcs(theirs)) => ours.union(theirs),
            (Self::Fingerprints(ours), Self::Fingerprints(theirs)) => ours.union(theirs),
            (Self::WideBloom(ours), Self::WideBloom(theirs)) => ours.union(theirs),
            (Self::WideBloom(wide), Self::Bloom(plain)) => {
                Err(MergeError::HashDiffers { ours: wide.hashing(), theirs: format!("{:?}", plain.scheme()) })
            }
            (Self::Bloom(plain), Self::WideBloom(wide)) => {
                Err(MergeError::HashDiffers { ours: format!("{:?}", plain.scheme()), theirs: wide.hashing() })
            }
            (ours, theirs) if ours.kind() == theirs.kind() => {
                Err(MergeError::NeverMerges { kind: theirs.kind() })
            }
            (ours, theirs) => Err(MergeError::KindDiffers { ours: ours.kind(), theirs: theirs.kind() }),
        }
    }

    /// The items it was sized for; for a bitmap, the numbers in its range.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        each!(self, filter => filter.capacity(), bitmap bitmap => bitmap.len())
    }

    /// The items it counted; for a bitmap, the number of bits set.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        each!(self, filter => filter.inserted(), bitmap bitmap => bitmap.count())
    }

    /// The false-positive rate promised at [`capacity`](Self::capacity). A bitmap is exact: 0.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        each!(self, filter => filter.target_fpr(), bitmap _bitmap => 0.0)
    }

    /// The false-positive rate by the model, for the items it holds now.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        each!(self, filter => filter.expected_fpr(), bitmap _bitmap => 0.0)
    }

    /// The memory it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        each!(self, filter => filter.memory_bytes())
    }

    /// The bits of memory per item at capacity: see [`figures`](crate::figures).
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        Membership::bits_per_item(self)
    }

    /// The filter as the bytes of a `.mayhap` file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter of any kind and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not an intact encoded filter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// The header parameter with the fingerprint width of an xor or binary fuse filter.
const FINGERPRINT_BITS: usize = 0;

/// The number that an item means to a bitmap.
pub(crate) fn number<I: Item + ?Sized>(item: &I) -> Option<u64> {
    item.with_bytes(|bytes| bytes.try_into().ok().map(u64::from_le_bytes))
}

/// The bit of an item in a bitmap; `None` if the item cannot be a member.
fn bit<I: Item + ?Sized>(bitmap: &Bitmap, item: &I) -> Option<u64> {
    number(item).and_then(|number| bitmap.index_of(number))
}

impl codec::sealed::Sealed for Filter {}

impl Storable for Filter {
    const KIND: Option<Kind> = None;

    fn header(&self) -> Header {
        each!(self, filter => filter.header())
    }

    fn parts(&self) -> Parts<'_> {
        each!(self, filter => filter.parts())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        Ok(match header.kind {
            Kind::Bitmap => Self::Bitmap(Bitmap::restore(header, body)?),
            Kind::Bloom if header.placement >= wide::FIRST_NUMBER => {
                Self::WideBloom(WideBloom::restore(header, body)?)
            }
            Kind::Bloom => Self::Bloom(Bloom::restore(header, body)?),
            Kind::BlockedBloom => Self::BlockedBloom(BlockedBloom::restore(header, body)?),
            Kind::CountingBloom => Self::CountingBloom(CountingBloom::restore(header, body)?),
            Kind::DualBloom => Self::DualBloom(DualBloom::restore(header, body)?),
            Kind::ScalableBloom => Self::ScalableBloom(ScalableBloom::restore(header, body)?),
            Kind::DLeft => Self::DLeft(DLeft::restore(header, body)?),
            Kind::Cuckoo => Self::Cuckoo(Cuckoo::restore(header, body)?),
            Kind::GrowableCuckoo => Self::GrowableCuckoo(GrowableCuckoo::restore(header, body)?),
            Kind::Quotient => Self::Quotient(Quotient::restore(header, body)?),
            Kind::Ribbon => Self::Ribbon(Ribbon::restore(header, body)?),
            Kind::Gcs => Self::Gcs(Gcs::restore(header, body)?),
            Kind::Window => Self::Window(Window::restore(header, body)?),
            Kind::Growing => Self::Growing(Growing::restore(header, body)?),
            Kind::ScalableCuckoo => Self::ScalableCuckoo(ScalableCuckoo::restore(header, body)?),
            Kind::Fingerprints => Self::Fingerprints(FingerprintSet::restore(header, body)?),
            Kind::Xor => match header.parameters[FINGERPRINT_BITS] {
                8 => Self::Xor8(Xor8::restore(header, body)?),
                16 => Self::Xor16(Xor16::restore(header, body)?),
                _ => Self::Xor32(Xor32::restore(header, body)?),
            },
            Kind::BinaryFuse => match header.parameters[FINGERPRINT_BITS] {
                8 => Self::BinaryFuse8(BinaryFuse8::restore(header, body)?),
                16 => Self::BinaryFuse16(BinaryFuse16::restore(header, body)?),
                _ => Self::BinaryFuse32(BinaryFuse32::restore(header, body)?),
            },
        })
    }
}
