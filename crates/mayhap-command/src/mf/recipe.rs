//! The parameters of a filter. They are checked and their memory is computed before any memory is allocated.
//! Equal filters share one recipe.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use mayhap::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, BinaryFuseShape, Bitmap, BlockedBloom, BlockedShape, Bloom,
    BloomShape, BuildError, BuildOptions, CountingBloom, CountingShape, Cuckoo, CuckooShape, DLeft,
    DLeftShape, DualBloom, DualShape, Filter, FingerprintSet, Gcs, GcsShape, GrowableCuckoo,
    GrowableCuckooShape, Growing, GrowingShape, HashScheme, ItemHash, Kind, Quotient, QuotientShape, Ribbon,
    RibbonShape, ScalableBloom, ScalableCuckoo, ScalableCuckooShape, ScalableShape, Window, WindowShape,
    Xor8, Xor16, Xor32, XorShape,
};

/// Everything that a filter is made from, except its key.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Recipe {
    /// A bit for every number of a range, both ends included.
    Bitmap {
        /// The lowest number.
        low: u64,
        /// The highest number.
        high: u64,
    },
    /// The classic Bloom filter.
    Bloom(BloomShape),
    /// A Bloom filter that reads one cache line per lookup.
    Blocked(BlockedShape),
    /// A simple filter with deletions.
    Counting(CountingShape),
    /// A Bloom filter with deletions, which are recorded in a second filter.
    Dual(DualShape),
    /// A Bloom filter for an unknown number of items.
    Scalable(ScalableShape),
    /// A filter with deletions in half the space.
    DLeft(DLeftShape),
    /// A filter with deletions for low false-positive rates.
    Cuckoo(CuckooShape),
    /// A cuckoo filter that doubles in place up to a limit.
    GrowableCuckoo(GrowableCuckooShape),
    /// A filter with deletions, counts and merging.
    Quotient(QuotientShape),
    /// A filter of one table for an unknown number of items.
    Growing(GrowingShape),
    /// The items seen in the last N items, or in the last N seconds.
    Window(WindowShape),
    /// RedisBloom's cuckoo filter.
    ScalableCuckoo(ScalableCuckooShape),
    /// 64-bit fingerprints, up to a number of bytes.
    Fingerprints {
        /// The limit in bytes, if there is one.
        limit_bytes: Option<u64>,
    },
    /// An immutable set, built from all its items together.
    Static(StaticRecipe),
}

/// Everything that an immutable set is built from, except its items and its key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaticRecipe {
    /// Which.
    pub kind: StaticKind,
    /// The expected number of items; `None` if it is not known.
    pub capacity: Option<u64>,
    /// The requested false-positive rate.
    pub target_fpr: f64,
}

/// The kinds that are built from all items together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaticKind {
    /// Xor, with fingerprints of 8, 16 or 32 bits.
    Xor(u32),
    /// Binary fuse, with fingerprints of 8, 16 or 32 bits.
    Fuse(u32),
    /// Ribbon.
    Ribbon,
    /// Golomb-coded set.
    Gcs,
}

/// A first tier of at most this many bytes begins as a list of hashes. A larger one is allocated immediately,
/// so that a lack of memory is reported when the filter is reserved, not at its first items.
const LISTED_TIER_BYTES: u64 = 64 << 10;
/// The maximum number of bytes of a list. It is limited because a lookup searches the whole list.
const LIST_BYTES: u64 = 4 << 10;

impl Recipe {
    /// The kind it makes.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Bitmap { .. } => Kind::Bitmap,
            Self::Bloom(_) => Kind::Bloom,
            Self::Blocked(_) => Kind::BlockedBloom,
            Self::Counting(_) => Kind::CountingBloom,
            Self::Dual(_) => Kind::DualBloom,
            Self::Scalable(_) => Kind::ScalableBloom,
            Self::DLeft(_) => Kind::DLeft,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::GrowableCuckoo(_) => Kind::GrowableCuckoo,
            Self::Quotient(_) => Kind::Quotient,
            Self::Growing(_) => Kind::Growing,
            Self::Window(_) => Kind::Window,
            Self::ScalableCuckoo(_) => Kind::ScalableCuckoo,
            Self::Fingerprints { .. } => Kind::Fingerprints,
            Self::Static(fixed) => match fixed.kind {
                StaticKind::Xor(_) => Kind::Xor,
                StaticKind::Fuse(_) => Kind::BinaryFuse,
                StaticKind::Ribbon => Kind::Ribbon,
                StaticKind::Gcs => Kind::Gcs,
            },
        }
    }

    /// The recipe of a filter like this one. `None` for immutable sets, which do not store what was
    /// requested, and for filters of other programs.
    #[must_use]
    pub fn of(filter: &Filter) -> Option<Self> {
        Some(match filter {
            Filter::Bitmap(bitmap) => Self::Bitmap {
                low: bitmap.first(),
                high: bitmap.first().saturating_add(bitmap.len().saturating_sub(1)),
            },
            Filter::Bloom(filter) => Self::Bloom(*filter.shape()),
            Filter::BlockedBloom(filter) => Self::Blocked(*filter.shape()),
            Filter::CountingBloom(filter) => Self::Counting(*filter.shape()),
            Filter::DualBloom(filter) => Self::Dual(*filter.shape()),
            Filter::ScalableBloom(filter) => Self::Scalable(*filter.shape()),
            Filter::DLeft(filter) => Self::DLeft(*filter.shape()),
            Filter::Cuckoo(filter) => Self::Cuckoo(*filter.shape()),
            Filter::GrowableCuckoo(filter) => Self::GrowableCuckoo(*filter.shape()),
            Filter::Quotient(filter) => Self::Quotient(*filter.shape()),
            Filter::Growing(filter) => Self::Growing(*filter.shape()),
            Filter::Window(filter) => Self::Window(*filter.shape()),
            Filter::ScalableCuckoo(filter) => Self::ScalableCuckoo(*filter.shape()),
            Filter::Fingerprints(set) => Self::Fingerprints {
                limit_bytes: Some(set.memory_limit_bytes()).filter(|&limit| limit != u64::MAX),
            },
            _ => return None,
        })
    }

    /// Returns `true` if `other` makes the same filters.
    #[must_use]
    pub fn makes_what(&self, other: &Self) -> bool {
        match (self, other) {
            // The requested capacity is rounded up to whole buckets once a filter is made from it.
            (Self::ScalableCuckoo(one), Self::ScalableCuckoo(other)) => {
                let of = |shape: &ScalableCuckooShape| {
                    let (buckets, slots) = (shape.buckets(), shape.bucket_size());
                    (buckets, slots, shape.max_iterations(), shape.expansion(), shape.limit_bytes())
                };
                of(one) == of(other)
            }
            (one, other) => one == other,
        }
    }

    /// Returns `true` if the filter is built from all its items together.
    #[must_use]
    pub const fn is_static(&self) -> bool {
        matches!(self, Self::Static(_))
    }

    /// The memory of the empty filter; of an immutable set, with all expected items.
    ///
    /// # Errors
    /// [`BuildError`] for numbers that do not fit.
    pub fn memory_bytes(&self) -> Result<u64, BuildError> {
        /// The smallest set of fingerprints.
        const SMALLEST_SET_BYTES: u64 = 1024;
        Ok(match self {
            Self::Bitmap { low, high } => (high.saturating_sub(*low) / 512 + 1) * 64,
            Self::Bloom(shape) => shape.memory_bytes(),
            Self::Blocked(shape) => shape.memory_bytes(),
            Self::Counting(shape) => shape.memory_bytes(),
            Self::Dual(shape) => shape.memory_bytes(),
            Self::Scalable(shape) => shape.layer(0)?.memory_bytes(),
            Self::DLeft(shape) => shape.memory_bytes(),
            Self::Cuckoo(shape) => shape.memory_bytes(),
            Self::GrowableCuckoo(shape) => shape.memory_bytes(0),
            Self::Quotient(shape) => shape.memory_bytes(),
            Self::Growing(shape) => shape.memory_bytes(),
            Self::Window(shape) => shape.memory_bytes(),
            Self::ScalableCuckoo(shape) => shape.memory_bytes(1)?,
            Self::Fingerprints { .. } => SMALLEST_SET_BYTES,
            Self::Static(fixed) => match fixed.capacity {
                Some(items) => fixed.memory_bytes(items)?,
                None => 0,
            },
        })
    }

    /// The number of items that are held as a plain list before the filter is made. `None` if it is made
    /// immediately.
    #[must_use]
    pub fn listed_items(&self) -> Option<usize> {
        let (tier, capacity) = match self {
            Self::Bloom(shape) => (shape.memory_bytes(), shape.capacity()),
            Self::Blocked(shape) => (shape.memory_bytes(), shape.capacity()),
            Self::Scalable(shape) => {
                let first = shape.layer(0).ok()?;
                (first.memory_bytes(), first.capacity())
            }
            _ => return None,
        };
        // At most as many as the filter takes without growing, because growing may be refused.
        let items = (tier.min(LIST_BYTES) / size_of::<ItemHash>() as u64).min(capacity);
        (tier <= LISTED_TIER_BYTES && items > 1).then_some(items as usize)
    }

    /// Makes the empty filter.
    ///
    /// # Errors
    /// [`BuildError`] if the system has no memory for it. An immutable set cannot be made this way.
    pub fn make(&self, scheme: HashScheme) -> Result<Filter, BuildError> {
        Ok(match *self {
            Self::Bitmap { low, high } => Filter::Bitmap(Bitmap::of_range(low, high)?),
            Self::Bloom(shape) => Filter::Bloom(Bloom::with_shape(shape, scheme)?),
            Self::Blocked(shape) => Filter::BlockedBloom(BlockedBloom::with_shape(shape, scheme)?),
            Self::Counting(shape) => Filter::CountingBloom(CountingBloom::with_shape(shape, scheme)?),
            Self::Dual(shape) => Filter::DualBloom(DualBloom::with_shape(shape, scheme)?),
            Self::Scalable(shape) => Filter::ScalableBloom(ScalableBloom::with_shape(shape, scheme)?),
            Self::DLeft(shape) => Filter::DLeft(DLeft::with_shape(shape, scheme)?),
            Self::Cuckoo(shape) => Filter::Cuckoo(Cuckoo::with_shape(shape, scheme)?),
            Self::GrowableCuckoo(shape) => Filter::GrowableCuckoo(GrowableCuckoo::with_shape(shape, scheme)?),
            Self::Quotient(shape) => Filter::Quotient(Quotient::with_shape(shape, scheme)?),
            Self::Growing(shape) => Filter::Growing(Growing::with_shape(shape, scheme)?),
            Self::Window(shape) => Filter::Window(Window::with_shape(shape, scheme)?),
            Self::ScalableCuckoo(shape) => Filter::ScalableCuckoo(ScalableCuckoo::with_shape(shape, scheme)?),
            Self::Fingerprints { limit_bytes: None } => {
                Filter::Fingerprints(FingerprintSet::within(u64::MAX, scheme)?)
            }
            Self::Fingerprints { limit_bytes: Some(limit) } => {
                Filter::Fingerprints(FingerprintSet::within(limit, scheme)?)
            }
            Self::Static(fixed) => fixed.build(&[], scheme)?,
        })
    }

    /// Returns this recipe from a cache of recent recipes, so that equal filters share it.
    #[must_use]
    pub fn shared(self) -> Arc<Self> {
        /// A million filters have few recipes. The ones in current use are among these.
        const REMEMBERED: usize = 16;
        static LATELY: LazyLock<Mutex<Vec<Weak<Recipe>>>> = LazyLock::new(Mutex::default);
        let mut lately = LATELY.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lately.iter().position(|recipe| recipe.upgrade().is_some_and(|recipe| *recipe == self));
        if let Some(at) = found
            && let Some(recipe) = lately[at].upgrade()
        {
            lately[..=at].rotate_right(1);
            return recipe;
        }
        let recipe = Arc::new(self);
        lately.truncate(REMEMBERED - 1);
        lately.insert(0, Arc::downgrade(&recipe));
        recipe
    }
}

impl StaticRecipe {
    /// The memory of the set with `items` items.
    ///
    /// # Errors
    /// [`BuildError`] for numbers that do not fit.
    pub fn memory_bytes(&self, items: u64) -> Result<u64, BuildError> {
        Ok(match self.kind {
            StaticKind::Xor(bits) => XorShape::for_items(items, bits)?.memory_bytes(),
            StaticKind::Fuse(bits) => BinaryFuseShape::for_items(items, bits)?.memory_bytes(),
            StaticKind::Ribbon => RibbonShape::for_items(items, self.target_fpr)?.memory_bytes(),
            StaticKind::Gcs => GcsShape::for_capacity(items, self.target_fpr)?.memory_bytes(),
        })
    }

    /// Builds the set of all these items.
    ///
    /// # Errors
    /// [`BuildError`] if the system has no memory for it, or for numbers that do not fit.
    pub fn build(&self, hashes: &[ItemHash], scheme: HashScheme) -> Result<Filter, BuildError> {
        let options = BuildOptions::default();
        let hashes = hashes.iter().copied();
        Ok(match self.kind {
            StaticKind::Xor(8) => Filter::Xor8(Xor8::build_hashes(hashes, &options, scheme)?),
            StaticKind::Xor(16) => Filter::Xor16(Xor16::build_hashes(hashes, &options, scheme)?),
            StaticKind::Xor(_) => Filter::Xor32(Xor32::build_hashes(hashes, &options, scheme)?),
            StaticKind::Fuse(8) => Filter::BinaryFuse8(BinaryFuse8::build_hashes(hashes, &options, scheme)?),
            StaticKind::Fuse(16) => {
                Filter::BinaryFuse16(BinaryFuse16::build_hashes(hashes, &options, scheme)?)
            }
            StaticKind::Fuse(_) => {
                Filter::BinaryFuse32(BinaryFuse32::build_hashes(hashes, &options, scheme)?)
            }
            StaticKind::Ribbon => Filter::Ribbon(Ribbon::build_hashes(hashes, self.target_fpr, scheme)?),
            StaticKind::Gcs => Filter::Gcs(Gcs::build_hashes(hashes, self.target_fpr, scheme)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_recipes_are_shared_and_memory_estimates_are_exact() {
        let bloom = |items| Recipe::Bloom(BloomShape::for_capacity(items, 0.01).unwrap());
        let one = bloom(777).shared();
        assert!(Arc::ptr_eq(&one, &bloom(777).shared()) && !Arc::ptr_eq(&one, &bloom(778).shared()));
        for items in 1..40 {
            let _ = bloom(items).shared();
        }
        assert_eq!(*bloom(777).shared(), *one, "dropped from the cache, and still equal");
        for recipe in [
            bloom(1_000),
            Recipe::Bitmap { low: 5, high: 5 },
            Recipe::Bitmap { low: 5, high: 516 },
            Recipe::Bitmap { low: 5, high: 517 },
            Recipe::Fingerprints { limit_bytes: None },
            Recipe::ScalableCuckoo(ScalableCuckooShape::for_capacity(1_000).unwrap()),
            Recipe::GrowableCuckoo(GrowableCuckooShape::for_growth(1_000, 9_000, 0.01).unwrap()),
            Recipe::Growing(GrowingShape::for_capacity(1_000, 0.01).unwrap()),
            Recipe::Window(WindowShape::of_items(1_000, 0.01).unwrap()),
        ] {
            let made = recipe.make(HashScheme::fast(0)).unwrap();
            assert_eq!(made.memory_bytes(), recipe.memory_bytes().unwrap(), "{recipe:?}");
            assert_eq!(made.kind(), recipe.kind());
        }
    }

    #[test]
    fn only_small_filters_without_counters_begin_as_a_list() {
        let scalable =
            |tiers: &[u64]| Recipe::Scalable(ScalableShape::with_tiers(tiers, 0.01).unwrap()).listed_items();
        let tier = ScalableShape::with_tiers(&[1_000], 0.01).unwrap().layer(0).unwrap().memory_bytes();
        assert_eq!(scalable(&[1_000, 10_000]), Some(tier as usize / 16));
        assert_eq!(scalable(&[10_000]), Some(256), "short enough to be searched");
        assert_eq!(scalable(&[1_000_000]), None);
        assert_eq!(Recipe::Cuckoo(CuckooShape::for_capacity(1_000, 0.01).unwrap()).listed_items(), None);
    }
}
