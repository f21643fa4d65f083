//! The standard library's traits for all kinds: `Clone`, `PartialEq`, `Extend`, `FromIterator`, `|=` and `&=`.
//!
//! The macros write one-line impls and define no types.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::ops::{BitAndAssign, BitOrAssign};

use crate::codec;
use crate::error::BuildError;
use crate::hash::ItemHash;
use crate::item::Item;
use crate::membership::every_type_of_its_own;
use crate::statics::Fingerprint;
use crate::store::LINE_BYTES;
use crate::xor_fuse::{SlotGraph, XorFuse};
use crate::{Bitmap, FingerprintSet, Insert, ScalableBloom};

/// The number of items that [`Extend`] inserts together.
const BATCH: usize = 256;
/// The false-positive rate of a filter that is collected from an iterator.
const COLLECTED_FPR: f64 = 0.01;
/// The limits for the capacity of its first layer. The iterator reports a minimum number of items, but it may be wrong.
const COLLECTED: std::ops::RangeInclusive<usize> = 1_000..=1_000_000;

/// Returns the copy. If the system refuses the memory, it ends the process, as `Vec` does.
fn copied<F>(copy: Result<F, BuildError>) -> F {
    copy.unwrap_or_else(|error| match error {
        BuildError::OutOfMemory { bytes } => {
            let layout = Layout::from_size_align(usize::try_from(bytes).unwrap_or(0), LINE_BYTES);
            handle_alloc_error(layout.unwrap_or(Layout::new::<u64>()))
        }
        error => panic!("a filter could not be copied: {error}"),
    })
}

macro_rules! impl_clone {
    ($($variant:ident $filter:ident $kind:ident),* $(,)?) => {$(
        /// Like the standard library's collections, this ends the process if the system refuses the memory. `try_clone`
        /// returns an error then.
        impl Clone for crate::$filter {
            fn clone(&self) -> Self {
                copied(self.try_clone())
            }
        }
    )*};
}

every_type_of_its_own!(impl_clone);
impl_clone!(Bitmap Bitmap Bitmap, WideBloom WideBloom Bloom, Filter Filter Filter);

/// Like the standard library's collections, this ends the process if the system refuses the memory. `try_clone`
/// returns an error then.
impl<F: Fingerprint, G: SlotGraph> Clone for XorFuse<F, G> {
    fn clone(&self) -> Self {
        copied(self.try_clone())
    }
}

macro_rules! impl_eq {
    ($($variant:ident $filter:ident $kind:ident),* $(,)?) => {$(
        /// Filters are equal if they would be encoded as the same bytes: the same shape, hash scheme, counts, and bits or
        /// slots. Filters of the same items can differ: because of their random seeds, or because other items were
        /// inserted in between. The comparison reads all memory of both filters.
        impl PartialEq for crate::$filter {
            fn eq(&self, other: &Self) -> bool {
                codec::same(self, other)
            }
        }

        impl Eq for crate::$filter {}
    )*};
}

every_type_of_its_own!(impl_eq);
impl_eq!(Filter Filter Filter, WideBloom WideBloom Bloom);

/// Filters are equal if they would be encoded as the same bytes: the same hash scheme, and the same fingerprints in the
/// same slots. Filters of the same items with the same scheme and options are equal; with random seeds they differ.
impl<F: Fingerprint, G: SlotGraph> PartialEq for XorFuse<F, G> {
    fn eq(&self, other: &Self) -> bool {
        codec::same(self, other)
    }
}

impl<F: Fingerprint, G: SlotGraph> Eq for XorFuse<F, G> {}

/// Inserts all items, hashed one batch at a time.
///
/// # Panics
/// If an insertion fails.
fn insert_all<F: Insert, I: Item>(filter: &mut F, items: impl IntoIterator<Item = I>) {
    let Some(scheme) = filter.scheme().copied() else {
        return items.into_iter().for_each(|item| {
            filter.insert(&item).unwrap_or_else(|error| panic!("extending a filter: {error}"));
        });
    };
    let mut hashes = [ItemHash::default(); BATCH];
    let mut items = items.into_iter();
    loop {
        let mut count = 0;
        for (hash, item) in hashes.iter_mut().zip(items.by_ref()) {
            *hash = scheme.hash(&item);
            count += 1;
        }
        let inserted = filter.insert_hash_batch(&hashes[..count]);
        inserted.unwrap_or_else(|error| panic!("extending a filter: {error}"));
        if count < BATCH {
            return;
        }
    }
}

macro_rules! impl_extend {
    ($($(#[$doc:meta])* $filter:ident),* $(,)?) => {$(
        $(#[$doc])*
        impl<I: Item> Extend<I> for crate::$filter {
            fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
                insert_all(self, items);
            }
        }
    )*};
}

impl_extend!(
    /// Inserts all items, in batches.
    Bloom,
    /// Inserts all items, in batches.
    BlockedBloom,
    /// Inserts one copy of each item, in batches.
    CountingBloom,
    /// Inserts all items in order, in batches. The last ones stay.
    Window,
    /// Inserts all items, in batches, and grows if necessary.
    ///
    /// # Panics
    /// If the filter cannot grow: its memory limit is reached, or the system refuses the memory. `insert_batch` returns an
    /// error then.
    ScalableBloom,
    /// Inserts all items, in batches, and grows if necessary.
    ///
    /// # Panics
    /// If the set cannot grow: its memory limit is reached, or the system refuses the memory. `insert_batch` returns an
    /// error then.
    FingerprintSet,
);

impl_extend!(
    /// Inserts all items.
    WideBloom,
);

/// Collects items into a filter with a false-positive rate of 1 % and a random seed.
///
/// # Panics
/// If the system refuses the memory.
impl<I: Item> FromIterator<I> for ScalableBloom {
    fn from_iter<T: IntoIterator<Item = I>>(items: T) -> Self {
        let items = items.into_iter();
        let capacity = items.size_hint().0.clamp(*COLLECTED.start(), *COLLECTED.end());
        let filter = Self::new(capacity as u64, COLLECTED_FPR);
        let mut filter = filter.unwrap_or_else(|error| panic!("collecting a filter: {error}"));
        filter.extend(items);
        filter
    }
}

/// Collects items into a set with a random seed.
///
/// # Panics
/// If the system refuses the memory.
impl<I: Item> FromIterator<I> for FingerprintSet {
    fn from_iter<T: IntoIterator<Item = I>>(items: T) -> Self {
        let mut set = Self::new().unwrap_or_else(|error| panic!("collecting a set: {error}"));
        set.extend(items);
        set
    }
}

/// Panics if the merge failed: an operator cannot return an error.
fn merged(result: Result<(), impl fmt::Display>) {
    result.unwrap_or_else(|error| panic!("{error}"));
}

macro_rules! impl_union {
    ($($filter:ident),* $(,)?) => {$(
        /// `a |= &b` inserts all items of `b` into `a`.
        ///
        /// # Panics
        /// If the filters cannot be merged: they differ in shape or hash scheme, or there is no room. `union` returns an
        /// error then. Filters made by `new` differ in their random seeds.
        impl BitOrAssign<&Self> for crate::$filter {
            fn bitor_assign(&mut self, other: &Self) {
                merged(self.union(other));
            }
        }
    )*};
}

impl_union!(BlockedBloom, Bloom, CountingBloom, DLeft, DualBloom, Filter, FingerprintSet, Gcs, Quotient);
impl_union!(WideBloom);

macro_rules! impl_intersection {
    ($($filter:ident),* $(,)?) => {$(
        /// `a &= &b` keeps the items that both filters may contain.
        ///
        /// # Panics
        /// If the filters differ in shape or hash scheme. `intersect` returns an error then.
        impl BitAndAssign<&Self> for crate::$filter {
            fn bitand_assign(&mut self, other: &Self) {
                merged(self.intersect(other));
            }
        }
    )*};
}

impl_intersection!(Bloom);
impl_intersection!(WideBloom);

/// `a |= &b` sets the bits that are set in `b`.
///
/// # Panics
/// If their ranges begin with different numbers, or the system refuses the memory to extend the shorter one.
impl BitOrAssign<&Self> for Bitmap {
    fn bitor_assign(&mut self, other: &Self) {
        assert_eq!(self.first(), other.first(), "the bitmaps begin with different numbers");
        merged(self.or(other));
    }
}

/// `a &= &b` keeps the bits that are set in both.
///
/// # Panics
/// If their ranges begin with different numbers, or the system refuses the memory to extend the shorter one.
impl BitAndAssign<&Self> for Bitmap {
    fn bitand_assign(&mut self, other: &Self) {
        assert_eq!(self.first(), other.first(), "the bitmaps begin with different numbers");
        merged(self.and(other));
    }
}
