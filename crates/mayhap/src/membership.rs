//! The traits that all kinds of filters share, for generic code.

use crate::answers::Answers;
use crate::codec::{self, DecodeError};
use crate::error::InsertError;
use crate::filter::number;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::{Bitmap, Filter, FingerprintSet, figures};

/// The questions that every kind of filter answers. [`Filter`] and all its kinds implement it.
///
/// Every method is also a method of the types themselves, with the same name and the same code, so a program that uses
/// one kind does not need this trait. Use it for functions over any kind. It is sealed: only this crate's filters
/// implement it.
///
/// ```
/// use mayhap::{Bloom, Membership, Ribbon};
///
/// fn report(name: &str, filter: &impl Membership) -> String {
///     format!("{name}: {} items, {:.1} bits each", filter.inserted(), filter.bits_per_item())
/// }
///
/// let bloom = Bloom::new(1_000, 0.01)?;
/// let ribbon = Ribbon::from_items(["ada", "grace"], 0.01)?;
/// assert_eq!(report("bloom", &bloom), "bloom: 0 items, 9.7 bits each");
/// assert!(report("ribbon", &ribbon).starts_with("ribbon: 2 items"));
///
/// // Without the generic methods it is a trait object:
/// let all: [&dyn Membership; 2] = [&bloom, &ribbon];
/// assert!(all.iter().all(|filter| filter.expected_fpr() <= 0.01));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// A [`Bitmap`] holds numbers and hashes nothing: an item of eight bytes (a `u64`) is a number, and any other item is
/// never a member. A `WideBloom` of another program answers for items only, not for hashes.
pub trait Membership: codec::sealed::Sealed {
    /// Returns the kind.
    fn kind(&self) -> Kind;

    /// Returns how it hashes its items. `None` for a bitmap, which does not hash, and for a `WideBloom`, whose items have
    /// no hash of 128 bits.
    fn scheme(&self) -> Option<&HashScheme>;

    /// `false`: certainly not a member (except in a [`DualBloom`](crate::DualBloom) after a removal). `true`: maybe.
    #[must_use]
    fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool
    where
        Self: Sized;

    /// [`may_contain`](Self::may_contain) for an item already hashed with the filter's [`scheme`](Self::scheme). A bitmap
    /// returns `false`, because it holds no hashes. A `WideBloom` returns `true`: it cannot look up a hash, and a *no*
    /// must be certain.
    #[must_use]
    fn may_contain_hash(&self, hash: ItemHash) -> bool;

    /// Looks up all `items` together. This is much faster than one by one if the filter is larger than the cache.
    fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers)
    where
        Self: Sized;

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed. A bitmap and a `WideBloom` answer as in
    /// [`may_contain_hash`](Self::may_contain_hash).
    fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers);

    /// Returns the number of items it was sized for; for a bitmap, the numbers in its range.
    fn capacity(&self) -> u64;

    /// Returns the number of items counted so far; for a bitmap, the number of set bits.
    fn inserted(&self) -> u64;

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity). A bitmap is exact: 0.
    fn target_fpr(&self) -> f64;

    /// Returns the false-positive rate by the model, for the items it holds now.
    fn expected_fpr(&self) -> f64;

    /// Returns the memory it takes, in bytes.
    fn memory_bytes(&self) -> u64;

    /// Returns the bits of memory per item at capacity: see [`figures`](crate::figures).
    fn bits_per_item(&self) -> f64 {
        figures::bits_per(self.memory_bytes(), self.capacity()).unwrap_or(0.0)
    }

    /// Encodes the filter as the bytes of a `.mayhap` file.
    fn encode(&self) -> Vec<u8>;

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded filter of this type.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>
    where
        Self: Sized;
}

/// The filters that accept items one after the other, and [`Filter`].
///
/// Every insertion returns a [`Result`] here, even for kinds whose own `insert` cannot fail. The trait is sealed, as
/// [`Membership`] is.
///
/// ```
/// use mayhap::{Cuckoo, Growing, Insert, InsertError};
///
/// fn fill(filter: &mut impl Insert, lines: &str) -> Result<u64, InsertError> {
///     filter.insert_batch(&lines.lines().collect::<Vec<_>>())
/// }
///
/// assert_eq!(fill(&mut Growing::new(1_000, 0.01)?, "ada\ngrace"), Ok(2));
/// assert_eq!(fill(&mut Cuckoo::new(1_000, 0.01)?, "ada\ngrace"), Ok(2));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
pub trait Insert: Membership {
    /// Inserts `item`. `true`: it certainly was not a member before. `false`: maybe it was.
    ///
    /// # Errors
    /// [`InsertError`] if there is no room, and for a [`Filter`] if its kind is immutable. The filter is unchanged then.
    fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError>
    where
        Self: Sized;

    /// [`insert`](Self::insert) for an item already hashed with the filter's [`scheme`](Membership::scheme).
    ///
    /// # Errors
    /// As [`insert`](Self::insert). A bitmap returns [`InsertError::NotANumber`], because it holds no hashes.
    /// A `WideBloom` returns [`InsertError::NeverChanges`], because its items have no such hash.
    fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError>;

    /// Inserts all `items` and returns how many of them certainly were not members before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). The items before the rejected one were inserted.
    fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError>
    where
        Self: Sized;

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch) and [`insert_hash`](Self::insert_hash).
    fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError>;

    /// Removes all items.
    fn clear(&mut self);
}

/// Calls a macro with every kind that hashes its items: its variant of [`Filter`], its type, and its [`Kind`].
macro_rules! every_type_of_its_own {
    ($write:ident $($more:tt)*) => {
        $write! {
            Bloom Bloom Bloom,
            BlockedBloom BlockedBloom BlockedBloom,
            CountingBloom CountingBloom CountingBloom,
            DualBloom DualBloom DualBloom,
            ScalableBloom ScalableBloom ScalableBloom,
            DLeft DLeft DLeft,
            Cuckoo Cuckoo Cuckoo,
            GrowableCuckoo GrowableCuckoo GrowableCuckoo,
            Quotient Quotient Quotient,
            Ribbon Ribbon Ribbon,
            Gcs Gcs Gcs,
            Window Window Window,
            Growing Growing Growing,
            ScalableCuckoo ScalableCuckoo ScalableCuckoo,
            Fingerprints FingerprintSet Fingerprints,
            $($more)*
        }
    };
}

/// Calls a macro with every kind that hashes its items, as [`every_type_of_its_own`]. The widths of xor and binary fuse
/// filters are one generic type.
macro_rules! every_hashing_kind {
    ($write:ident) => {
        $crate::membership::every_type_of_its_own! { $write
            Xor8 Xor8 Xor,
            Xor16 Xor16 Xor,
            Xor32 Xor32 Xor,
            BinaryFuse8 BinaryFuse8 BinaryFuse,
            BinaryFuse16 BinaryFuse16 BinaryFuse,
            BinaryFuse32 BinaryFuse32 BinaryFuse,
        }
    };
}

/// Calls a macro with every kind, as [`every_hashing_kind`].
macro_rules! every_kind {
    ($write:ident) => {
        $crate::membership::every_hashing_kind!($write);
        $write! { Bitmap Bitmap Bitmap, }
        $write! { WideBloom WideBloom Bloom, }
    };
}
pub(crate) use {every_hashing_kind, every_kind, every_type_of_its_own};

/// Passes the methods on to the type's own methods with the same names and results. Rust prefers a type's own method to
/// one of a trait, so none of these calls itself.
macro_rules! passed_on {
    () => {
        #[inline(always)]
        fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
            self.may_contain(item)
        }

        #[inline(always)]
        fn may_contain_hash(&self, hash: ItemHash) -> bool {
            self.may_contain_hash(hash)
        }

        #[inline(always)]
        fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
            self.may_contain_batch(items, answers);
        }

        #[inline(always)]
        fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
            self.may_contain_hash_batch(hashes, answers);
        }

        passed_on!(figures);
    };
    (figures) => {
        #[inline(always)]
        fn capacity(&self) -> u64 {
            self.capacity()
        }

        #[inline(always)]
        fn inserted(&self) -> u64 {
            self.inserted()
        }

        #[inline(always)]
        fn target_fpr(&self) -> f64 {
            self.target_fpr()
        }

        #[inline(always)]
        fn expected_fpr(&self) -> f64 {
            self.expected_fpr()
        }

        passed_on!(bytes);
    };
    (bytes) => {
        #[inline(always)]
        fn memory_bytes(&self) -> u64 {
            self.memory_bytes()
        }

        fn encode(&self) -> Vec<u8> {
            codec::encode(self)
        }

        fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
            codec::decode(bytes)
        }
    };
}

macro_rules! impl_membership {
    ($($variant:ident $filter:ident $kind:ident),* $(,)?) => {$(
        impl Membership for crate::$filter {
            #[inline(always)]
            fn kind(&self) -> Kind {
                Kind::$kind
            }

            #[inline(always)]
            fn scheme(&self) -> Option<&HashScheme> {
                Some(self.scheme())
            }

            passed_on!();
        }
    )*};
}

every_hashing_kind!(impl_membership);

impl Membership for Filter {
    #[inline]
    fn kind(&self) -> Kind {
        self.kind()
    }

    #[inline]
    fn scheme(&self) -> Option<&HashScheme> {
        self.scheme()
    }

    passed_on!();
}

impl Membership for Bitmap {
    fn kind(&self) -> Kind {
        Kind::Bitmap
    }

    fn scheme(&self) -> Option<&HashScheme> {
        None
    }

    #[inline]
    fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        number(item).and_then(|number| self.index_of(number)).is_some_and(|bit| self.get(bit))
    }

    fn may_contain_hash(&self, _: ItemHash) -> bool {
        false
    }

    fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        answers.reset(items.len());
        for (index, item) in items.iter().enumerate() {
            if Membership::may_contain(self, item) {
                answers.set(index);
            }
        }
    }

    fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        answers.reset(hashes.len());
    }

    fn capacity(&self) -> u64 {
        self.len()
    }

    fn inserted(&self) -> u64 {
        self.count()
    }

    fn target_fpr(&self) -> f64 {
        0.0
    }

    fn expected_fpr(&self) -> f64 {
        0.0
    }

    passed_on!(bytes);
}

impl Membership for crate::WideBloom {
    fn kind(&self) -> Kind {
        Kind::Bloom
    }

    fn scheme(&self) -> Option<&HashScheme> {
        None
    }

    #[inline]
    fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain(item)
    }

    fn may_contain_hash(&self, _: ItemHash) -> bool {
        true
    }

    fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.may_contain_batch(items, answers);
    }

    fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        answers.reset(hashes.len());
        (0..hashes.len()).for_each(|index| answers.set(index));
    }

    passed_on!(figures);
}

/// For kinds whose insertion can fail, and for `Filter`.
macro_rules! impl_insert {
    ($($filter:ident),* $(,)?) => {$(
        impl Insert for crate::$filter {
            #[inline]
            fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
                self.insert(item)
            }

            #[inline]
            fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
                self.insert_hash(hash)
            }

            fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
                self.insert_batch(items)
            }

            fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
                self.insert_hash_batch(hashes)
            }

            fn clear(&mut self) {
                self.clear();
            }
        }
    )*};
}

impl_insert!(
    Cuckoo,
    DLeft,
    DualBloom,
    Filter,
    GrowableCuckoo,
    Growing,
    Quotient,
    ScalableBloom,
    ScalableCuckoo,
);

/// For kinds whose insertion cannot fail.
macro_rules! impl_sure_insert {
    ($($filter:ident),* $(,)?) => {$(
        impl Insert for crate::$filter {
            #[inline(always)]
            fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
                Ok(self.insert(item))
            }

            #[inline(always)]
            fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
                Ok(self.insert_hash(hash))
            }

            fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
                Ok(self.insert_batch(items))
            }

            fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
                Ok(self.insert_hash_batch(hashes))
            }

            fn clear(&mut self) {
                self.clear();
            }
        }
    )*};
}

impl_sure_insert!(BlockedBloom, Bloom, CountingBloom, Window);

impl Insert for FingerprintSet {
    #[inline]
    fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert(item)
    }

    #[inline]
    fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        self.insert_hash(hash)
    }

    fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        self.insert_batch(items)
    }

    fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        let before = self.inserted();
        self.insert_hash_batch(hashes, &mut Answers::new())?;
        Ok(self.inserted() - before)
    }

    fn clear(&mut self) {
        self.clear();
    }
}

impl Insert for Bitmap {
    fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        let number = number(item).ok_or(InsertError::NotANumber)?;
        let outside = InsertError::OutOfRange { number, first: self.first(), bits: self.len() };
        self.set(self.index_of(number).ok_or(outside)?)
    }

    fn insert_hash(&mut self, _: ItemHash) -> Result<bool, InsertError> {
        Err(InsertError::NotANumber)
    }

    fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        items.iter().try_fold(0, |new, item| Ok(new + u64::from(Insert::insert(self, item)?)))
    }

    fn insert_hash_batch(&mut self, _: &[ItemHash]) -> Result<u64, InsertError> {
        Err(InsertError::NotANumber)
    }

    fn clear(&mut self) {
        self.clear_all();
    }
}

impl Insert for crate::WideBloom {
    fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        Ok(self.insert(item))
    }

    fn insert_hash(&mut self, _: ItemHash) -> Result<bool, InsertError> {
        Err(InsertError::NeverChanges { kind: Kind::Bloom })
    }

    fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        Ok(self.insert_batch(items))
    }

    fn insert_hash_batch(&mut self, _: &[ItemHash]) -> Result<u64, InsertError> {
        Err(InsertError::NeverChanges { kind: Kind::Bloom })
    }

    fn clear(&mut self) {
        self.clear();
    }
}
