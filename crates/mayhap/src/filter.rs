//! A filter of whatever kind: for programs that learn only at run time what they hold.

use crate::answers::Answers;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError, MergeError, RemoveError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::{Item, ItemEncoding};
use crate::kind::Kind;
use crate::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, Bitmap, BlockedBloom, Bloom, CountingBloom, Cuckoo, DLeft,
    DualBloom, FingerprintSet, Gcs, GrowableCuckoo, Growing, Quotient, Ribbon, ScalableBloom, ScalableCuckoo,
    Window, Xor8, Xor16, Xor32,
};
#[cfg(feature = "formats")]
use crate::{WideBloom, wide};

/// A filter of any kind, as a file or a peer gives it.
///
/// It does what all of them do and says what the one it holds cannot: a set that never changes refuses items, a filter
/// without counters refuses to remove. What only one kind has is reached by matching on it.
///
/// A [`Bitmap`] holds numbers and hashes nothing: here an item of eight bytes (a `u64`) is its number, and anything else is
/// certainly not in it. A `WideBloom` of another program cannot be asked by a hash, only about items.
///
/// ```
/// use mayhap::{Bloom, Filter, Kind};
///
/// let mut seen = Bloom::for_capacity(1_000, 0.01, 0)?;
/// seen.insert("ada");
/// let bytes = seen.encode();
///
/// let mut filter = Filter::decode(&bytes)?; // whatever it is
/// assert_eq!(filter.kind(), Kind::Bloom);
/// assert!(filter.may_contain("ada") && filter.insert("grace")?);
/// assert!(filter.remove("ada").is_err()); // a Bloom filter cannot
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
    /// Deletions, simple.
    CountingBloom(CountingBloom),
    /// Deletions by a second filter.
    DualBloom(DualBloom),
    /// Unknown size.
    ScalableBloom(ScalableBloom),
    /// Deletions and counts, in half the space of a counting Bloom filter.
    DLeft(DLeft),
    /// Deletions, low rates.
    Cuckoo(Cuckoo),
    /// The same, doubling in place up to a limit.
    GrowableCuckoo(GrowableCuckoo),
    /// Deletions, counts, merging, resizing.
    Quotient(Quotient),
    /// A static set, fingerprints of 8 bits.
    Xor8(Xor8),
    /// A static set, fingerprints of 16 bits.
    Xor16(Xor16),
    /// A static set, fingerprints of 32 bits.
    Xor32(Xor32),
    /// A smaller static set, fingerprints of 8 bits.
    BinaryFuse8(BinaryFuse8),
    /// A smaller static set, fingerprints of 16 bits.
    BinaryFuse16(BinaryFuse16),
    /// A smaller static set, fingerprints of 32 bits.
    BinaryFuse32(BinaryFuse32),
    /// The smallest static set in memory.
    Ribbon(Ribbon),
    /// The smallest static set on the wire.
    Gcs(Gcs),
    /// Seen in the last so many items, or the last so long.
    Window(Window),
    /// Unknown size, one table.
    Growing(Growing),
    /// The classic, of a program whose items have no hash of 128 bits; its kind is [`Kind::Bloom`], too.
    #[cfg(feature = "formats")]
    WideBloom(WideBloom),
    /// RedisBloom's cuckoo filter, which grows table by table.
    ScalableCuckoo(ScalableCuckoo),
    /// Practically exact, growing.
    Fingerprints(FingerprintSet),
}

/// The same expression for whichever filter it is; the second form has one of its own for the bitmap, which hashes nothing, and
/// the third one for filters that hash items themselves.
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
            #[cfg(feature = "formats")]
            Filter::WideBloom($wide) => $itself,
            Filter::ScalableCuckoo($filter) => $value,
            Filter::Fingerprints($filter) => $value,
        }
    };
}

impl Filter {
    /// What kind it is.
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
            #[cfg(feature = "formats")]
            Self::WideBloom(_) => Kind::Bloom,
            Self::ScalableCuckoo(_) => Kind::ScalableCuckoo,
            Self::Fingerprints(_) => Kind::Fingerprints,
        }
    }

    /// How it hashes its items; nothing for a bitmap, which does not, and for a `WideBloom`, whose items have no hash of 128 bits.
    #[must_use]
    pub const fn scheme(&self) -> Option<&HashScheme> {
        each!(self, filter => Some(filter.scheme()), bitmap _bitmap => None, wide _wide => None)
    }

    /// How items become the bytes that are hashed, in a filter of another program; nothing for our own, which take items as they are.
    #[must_use]
    pub fn items(&self) -> Option<ItemEncoding> {
        #[cfg(feature = "formats")]
        return match self {
            Self::WideBloom(filter) => Some(filter.items()),
            filter => match filter.scheme()? {
                HashScheme::Foreign(foreign) => Some(foreign.items()),
                _ => None,
            },
        };
        #[cfg(not(feature = "formats"))]
        None
    }

    fn check_form<I: Item + ?Sized>(&self, item: &I) -> Result<(), InsertError> {
        match self.items() {
            Some(items) => {
                item.with_value(|value| items.encode(value).map(drop)).map_err(InsertError::NoForm)
            }
            None => Ok(()),
        }
    }

    /// `false`: certainly not in (but for a [`DualBloom`] after a removal). `true`: mayhap.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        each!(self, filter => filter.may_contain(item), bitmap bitmap => bit(bitmap, item).is_some_and(|bit| bitmap.get(bit)))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed with this filter's [`scheme`](Self::scheme). A bitmap knows
    /// no hashes and says `false`; a `WideBloom` cannot tell from a hash and says `true`, for a *no* is certain.
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        each!(self, filter => filter.may_contain_hash(hash), bitmap _bitmap => false, wide _wide => true)
    }

    /// Asks about all `items` at once; much faster than one by one once the filter is larger than the cache.
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

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed with this filter's [`scheme`](Self::scheme). A bitmap and
    /// a `WideBloom` answer as to [`may_contain_hash`](Self::may_contain_hash).
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        each!(self, filter => filter.may_contain_hash_batch(hashes, answers), bitmap _bitmap => answers.reset(hashes.len()), wide _wide => {
            answers.reset(hashes.len());
            (0..hashes.len()).for_each(|index| answers.set(index));
        });
    }

    /// Puts `item` in. `true`: it certainly was not in before. `false`: mayhap it was.
    ///
    /// # Errors
    /// [`InsertError`] for a kind that never changes, where there is no room, and for an item that another program's filter has no
    /// [encoding](Self::items) for; nothing has changed then.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.check_form(item)?;
        match self {
            Self::Bitmap(bitmap) => bitmap.set(index(bitmap, number(item).ok_or(InsertError::NotANumber)?)?),
            Self::Bloom(filter) => Ok(filter.insert(item)),
            Self::BlockedBloom(filter) => Ok(filter.insert(item)),
            Self::CountingBloom(filter) => Ok(filter.insert(item)),
            Self::DualBloom(filter) => filter.insert(item),
            Self::ScalableBloom(filter) => filter.insert(item),
            Self::DLeft(filter) => filter.insert(item),
            Self::Cuckoo(filter) => filter.insert(item),
            Self::GrowableCuckoo(filter) => filter.insert(item),
            Self::Quotient(filter) => filter.insert(item),
            Self::Growing(filter) => filter.insert(item),
            Self::ScalableCuckoo(filter) => filter.insert(item),
            Self::Fingerprints(filter) => filter.insert(item),
            Self::Window(filter) => Ok(filter.insert(item)),
            #[cfg(feature = "formats")]
            Self::WideBloom(filter) => Ok(filter.insert(item)),
            Self::Xor8(_)
            | Self::Xor16(_)
            | Self::Xor32(_)
            | Self::BinaryFuse8(_)
            | Self::BinaryFuse16(_)
            | Self::BinaryFuse32(_)
            | Self::Ribbon(_)
            | Self::Gcs(_) => Err(InsertError::NeverChanges { kind: self.kind() }),
        }
    }

    /// [`insert`](Self::insert) for an item already hashed with this filter's [`scheme`](Self::scheme).
    ///
    /// # Errors
    /// As [`insert_hash_batch`](Self::insert_hash_batch).
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        match self {
            Self::Bitmap(_) => Err(InsertError::NotANumber),
            Self::Bloom(filter) => Ok(filter.insert_hash(hash)),
            Self::BlockedBloom(filter) => Ok(filter.insert_hash(hash)),
            Self::CountingBloom(filter) => Ok(filter.insert_hash(hash)),
            Self::DualBloom(filter) => filter.insert_hash(hash),
            Self::ScalableBloom(filter) => filter.insert_hash(hash),
            Self::DLeft(filter) => filter.insert_hash(hash),
            Self::Cuckoo(filter) => filter.insert_hash(hash),
            Self::GrowableCuckoo(filter) => filter.insert_hash(hash),
            Self::Quotient(filter) => filter.insert_hash(hash),
            Self::Growing(filter) => filter.insert_hash(hash),
            Self::ScalableCuckoo(filter) => filter.insert_hash(hash),
            Self::Fingerprints(filter) => filter.insert_hash(hash),
            Self::Window(filter) => Ok(filter.insert_hash(hash)),
            _ => Err(InsertError::NeverChanges { kind: self.kind() }),
        }
    }

    /// Puts all `items` in and says how many of them were certainly not in before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). Those in front of the one that was refused are in.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        if let Some(at) = items.iter().position(|item| self.check_form(item).is_err()) {
            self.insert_batch(&items[..at])?;
            return self.insert(&items[at]).map(u64::from);
        }
        match self {
            Self::Bitmap(_) => {
                let mut new = 0;
                for item in items {
                    new += u64::from(self.insert(item)?);
                }
                Ok(new)
            }
            Self::Bloom(filter) => Ok(filter.insert_batch(items)),
            Self::BlockedBloom(filter) => Ok(filter.insert_batch(items)),
            Self::CountingBloom(filter) => Ok(filter.insert_batch(items)),
            Self::DualBloom(filter) => filter.insert_batch(items),
            Self::ScalableBloom(filter) => filter.insert_batch(items),
            Self::DLeft(filter) => filter.insert_batch(items),
            Self::Cuckoo(filter) => filter.insert_batch(items),
            Self::GrowableCuckoo(filter) => filter.insert_batch(items),
            Self::Quotient(filter) => filter.insert_batch(items),
            Self::Growing(filter) => filter.insert_batch(items),
            Self::ScalableCuckoo(filter) => filter.insert_batch(items),
            Self::Fingerprints(filter) => filter.insert_batch(items),
            Self::Window(filter) => Ok(filter.insert_batch(items)),
            #[cfg(feature = "formats")]
            Self::WideBloom(filter) => Ok(filter.insert_batch(items)),
            Self::Xor8(_)
            | Self::Xor16(_)
            | Self::Xor32(_)
            | Self::BinaryFuse8(_)
            | Self::BinaryFuse16(_)
            | Self::BinaryFuse32(_)
            | Self::Ribbon(_)
            | Self::Gcs(_) => Err(InsertError::NeverChanges { kind: self.kind() }),
        }
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed with this filter's [`scheme`](Self::scheme).
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch); [`InsertError::NotANumber`] for a bitmap, which knows no hashes, and
    /// [`InsertError::NeverChanges`] for a `WideBloom`, whose items have none.
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        match self {
            Self::Bitmap(_) => Err(InsertError::NotANumber),
            Self::Bloom(filter) => Ok(filter.insert_hash_batch(hashes)),
            Self::BlockedBloom(filter) => Ok(filter.insert_hash_batch(hashes)),
            Self::CountingBloom(filter) => Ok(filter.insert_hash_batch(hashes)),
            Self::DualBloom(filter) => filter.insert_hash_batch(hashes),
            Self::ScalableBloom(filter) => filter.insert_hash_batch(hashes),
            Self::DLeft(filter) => filter.insert_hash_batch(hashes),
            Self::Cuckoo(filter) => filter.insert_hash_batch(hashes),
            Self::GrowableCuckoo(filter) => filter.insert_hash_batch(hashes),
            Self::Quotient(filter) => filter.insert_hash_batch(hashes),
            Self::Growing(filter) => filter.insert_hash_batch(hashes),
            Self::ScalableCuckoo(filter) => filter.insert_hash_batch(hashes),
            Self::Window(filter) => Ok(filter.insert_hash_batch(hashes)),
            Self::Fingerprints(filter) => {
                let before = filter.inserted();
                filter.insert_hash_batch(hashes, &mut Answers::new())?;
                Ok(filter.inserted() - before)
            }
            _ => Err(InsertError::NeverChanges { kind: self.kind() }),
        }
    }

    /// Takes one copy of `item` out; only for items that were inserted. `false`: it certainly was not in.
    ///
    /// # Errors
    /// [`RemoveError`] for a kind that cannot.
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

    /// How many copies of `item` are in, as far as it can tell, mayhap more; nothing for a kind that does not count copies.
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

    /// Forgets every item. `false`: a set that never changes, which has not.
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

    /// A copy of its own.
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
            #[cfg(feature = "formats")]
            Self::WideBloom(filter) => Self::WideBloom(filter.try_clone()?),
            Self::ScalableCuckoo(filter) => Self::ScalableCuckoo(filter.try_clone()?),
            Self::Fingerprints(filter) => Self::Fingerprints(filter.try_clone()?),
        })
    }

    /// Adds everything `other` holds.
    ///
    /// # Errors
    /// [`MergeError`] unless both are of one kind that merges, of one shape, and hash alike; nothing has changed then.
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
            #[cfg(feature = "formats")]
            (Self::WideBloom(ours), Self::WideBloom(theirs)) => ours.union(theirs),
            #[cfg(feature = "formats")]
            (Self::WideBloom(wide), Self::Bloom(plain)) => {
                Err(MergeError::HashDiffers { ours: wide.hashing(), theirs: format!("{:?}", plain.scheme()) })
            }
            #[cfg(feature = "formats")]
            (Self::Bloom(plain), Self::WideBloom(wide)) => {
                Err(MergeError::HashDiffers { ours: format!("{:?}", plain.scheme()), theirs: wide.hashing() })
            }
            (ours, theirs) if ours.kind() == theirs.kind() => {
                Err(MergeError::NeverMerges { kind: theirs.kind() })
            }
            (ours, theirs) => Err(MergeError::KindDiffers { ours: ours.kind(), theirs: theirs.kind() }),
        }
    }

    /// Items it was sized for; the ids there is room for in a bitmap.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        each!(self, filter => filter.capacity(), bitmap bitmap => bitmap.len())
    }

    /// Items in it by its own count; the bits set in a bitmap, which counts them.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        each!(self, filter => filter.inserted(), bitmap bitmap => bitmap.count())
    }

    /// The rate it promised at [`capacity`](Self::capacity). A bitmap is never wrong: 0.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        each!(self, filter => filter.target_fpr(), bitmap _bitmap => 0.0)
    }

    /// The rate by the model, for what is in it now.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        each!(self, filter => filter.expected_fpr(), bitmap _bitmap => 0.0)
    }

    /// Memory it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        each!(self, filter => filter.memory_bytes())
    }

    /// The filter as the bytes of a `.mayhap` file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, of whatever kind, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded filter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// The parameter that says how wide the fingerprints of an xor or binary fuse filter are.
const FINGERPRINT_BITS: usize = 0;

/// The number an item is to a bitmap.
pub(crate) fn number<I: Item + ?Sized>(item: &I) -> Option<u64> {
    item.with_bytes(|bytes| bytes.try_into().ok().map(u64::from_le_bytes))
}

/// The bit of an item of a bitmap; nothing for what cannot be in it.
fn bit<I: Item + ?Sized>(bitmap: &Bitmap, item: &I) -> Option<u64> {
    number(item).and_then(|number| bitmap.index_of(number))
}

/// The bit a number is to be set at.
fn index(bitmap: &Bitmap, number: u64) -> Result<u64, InsertError> {
    bitmap.index_of(number).ok_or(InsertError::OutOfRange {
        number,
        first: bitmap.first(),
        bits: bitmap.len(),
    })
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
            #[cfg(feature = "formats")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::{Deletes, ItemShape, Needs, Structure};

    /// What only [`Filter`] has is what the kinds do one by one.
    #[test]
    fn hashes_copies_counts_and_clearing_are_those_of_every_kind() {
        let needs = Needs::new(1_000, 0.01)
            .of(ItemShape::IntegerRange { low: 0, high: 9_999 })
            .deleting(Deletes::UpTo(100));
        let mut made = 0;
        for structure in Structure::all() {
            let Ok(mut filter) = structure.create(&needs, HashScheme::fast(3)) else { continue };
            made += 1;
            let scheme = filter.scheme().copied();
            for item in 0..500_u64 {
                let new = match scheme {
                    Some(scheme) => filter.insert_hash(scheme.hash(&item)),
                    None => filter.insert(&item),
                };
                assert!(new.is_ok(), "{structure}");
            }
            let copy = filter.try_clone().unwrap();
            assert_eq!(copy.encode(), filter.encode(), "{structure}");
            if let Some(scheme) = scheme {
                let hashes: Vec<ItemHash> = (0..2_000_u64).map(|item| scheme.hash(&item)).collect();
                let (mut by_hash, mut by_item) = (Answers::new(), Answers::new());
                filter.may_contain_hash_batch(&hashes, &mut by_hash);
                filter.may_contain_batch(&(0..2_000_u64).collect::<Vec<_>>(), &mut by_item);
                assert_eq!(by_hash, by_item, "{structure}");
                assert!(by_hash.mayhaps() >= 500);
            }
            if let Some(count) = filter.count(&7_u64) {
                assert!(count >= 1, "{structure}");
                assert!(filter.remove(&7_u64).unwrap());
                assert!(filter.count(&7_u64) < Some(count), "{structure}");
            }
            assert!(filter.clear() && filter.inserted() == 0, "{structure}");
            assert!((0..500_u64).all(|item| !filter.may_contain(&item)), "{structure}");
            assert!((0..500_u64).all(|item| copy.may_contain(&item)), "{structure}");
        }
        assert!(made >= 12, "{made}");
        let fixed = Structure::Ribbon.build_hashes(
            (0..100_u64).map(ItemHash::from_unmixed),
            0.01,
            HashScheme::fast(0),
            &crate::BuildOptions::default(),
        );
        let mut fixed = fixed.unwrap();
        assert!(!fixed.clear() && fixed.inserted() == 100 && fixed.count(&1_u64).is_none());
    }
}
