//! What a filter is made from: known, checked and priced before any memory is taken, and shared by all that are alike.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use mayhap::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, BinaryFuseShape, Bitmap, BlockedBloom, BlockedShape, Bloom,
    BloomShape, BuildError, BuildOptions, CountingBloom, CountingShape, Cuckoo, CuckooShape, DLeft,
    DLeftShape, DualBloom, DualShape, Filter, FingerprintSet, Gcs, GcsShape, GrowableCuckoo,
    GrowableCuckooShape, Growing, GrowingShape, HashScheme, ItemHash, Kind, Quotient, QuotientShape, Ribbon,
    RibbonShape, ScalableBloom, ScalableCuckoo, ScalableCuckooShape, ScalableShape, Window, WindowShape,
    Xor8, Xor16, Xor32, XorShape,
};

/// What a filter is made from, but for its key.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Recipe {
    /// A bit for every number of a range, both ends included.
    Bitmap {
        /// The lowest.
        low: u64,
        /// The highest.
        high: u64,
    },
    /// The classic.
    Bloom(BloomShape),
    /// One cache line per lookup.
    Blocked(BlockedShape),
    /// Deletions, simple.
    Counting(CountingShape),
    /// Deletions by a second filter.
    Dual(DualShape),
    /// Unknown size.
    Scalable(ScalableShape),
    /// Deletions in half the space.
    DLeft(DLeftShape),
    /// Deletions, low rates.
    Cuckoo(CuckooShape),
    /// The same, doubling in place up to a limit.
    GrowableCuckoo(GrowableCuckooShape),
    /// Deletions, counts, merging.
    Quotient(QuotientShape),
    /// Unknown size, one table.
    Growing(GrowingShape),
    /// Seen in the last so many items, or the last so long.
    Window(WindowShape),
    /// RedisBloom's cuckoo filter.
    ScalableCuckoo(ScalableCuckooShape),
    /// 64-bit fingerprints, in at most so many bytes.
    Fingerprints {
        /// The limit, if there is one.
        limit_bytes: Option<u64>,
    },
    /// Built of all its items at once.
    Static(StaticRecipe),
}

/// What a set that never changes is built from, but for its items and its key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaticRecipe {
    /// Which.
    pub kind: StaticKind,
    /// How many items are expected; nothing if that is not known.
    pub capacity: Option<u64>,
    /// The rate asked for.
    pub target_fpr: f64,
}

/// The kinds that are built of all items at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaticKind {
    /// Xor, with fingerprints of 8, 16 or 32 bits.
    Xor(u32),
    /// Binary fuse, with fingerprints of 8, 16 or 32 bits.
    Fuse(u32),
    /// Ribbon.
    Ribbon,
    /// Golomb-coded.
    Gcs,
}

/// A first tier of at most this many bytes begins as a list of hashes; a larger one is there from the start, so that memory that cannot be
/// had is refused when the filter is reserved, not at its first items.
const LISTED_TIER_BYTES: u64 = 64 << 10;
/// A list takes at most this many bytes, for it is searched from end to end.
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

    /// What a filter like this one is made from; nothing for a set that never changes, which does not know what was asked for, and for filters
    /// of other programs.
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

    /// Does `other` make the same filters?
    #[must_use]
    pub fn makes_what(&self, other: &Self) -> bool {
        match (self, other) {
            // What was asked for is rounded up to whole buckets once a filter is made of it.
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

    /// Is it built of all its items at once?
    #[must_use]
    pub const fn is_static(&self) -> bool {
        matches!(self, Self::Static(_))
    }

    /// Memory it takes with nothing in; of a set that never changes, with all the items expected.
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

    /// How many items it holds as a plain list before it is made; nothing if it is made at once.
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
        // No more than the filter takes without growing, which may be refused.
        let items = (tier.min(LIST_BYTES) / size_of::<ItemHash>() as u64).min(capacity);
        (tier <= LISTED_TIER_BYTES && items > 1).then_some(items as usize)
    }

    /// The empty filter.
    ///
    /// # Errors
    /// [`BuildError`] for memory the system refuses. A set that never changes is not made by this.
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
            Self::Fingerprints { limit_bytes: None } => Filter::Fingerprints(FingerprintSet::new(scheme)?),
            Self::Fingerprints { limit_bytes: Some(limit) } => {
                Filter::Fingerprints(FingerprintSet::within(limit, scheme)?)
            }
            Self::Static(fixed) => fixed.build(&[], scheme)?,
        })
    }

    /// The same recipe, shared with those made from it lately.
    #[must_use]
    pub fn shared(self) -> Arc<Self> {
        /// A million filters have few recipes; those in use just now are found among these.
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
    /// Memory it takes with `items` items.
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

    /// The set of all these items.
    ///
    /// # Errors
    /// [`BuildError`] for memory the system refuses and numbers that do not fit.
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
    fn equal_recipes_are_one_and_the_priced_memory_is_what_is_taken() {
        let bloom = |items| Recipe::Bloom(BloomShape::for_capacity(items, 0.01).unwrap());
        let one = bloom(777).shared();
        assert!(Arc::ptr_eq(&one, &bloom(777).shared()) && !Arc::ptr_eq(&one, &bloom(778).shared()));
        for items in 1..40 {
            let _ = bloom(items).shared();
        }
        assert_eq!(*bloom(777).shared(), *one, "forgotten, and still the same");
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
        assert_eq!(scalable(&[10_000]), Some(256), "not too long to be searched");
        assert_eq!(scalable(&[1_000_000]), None);
        assert_eq!(Recipe::Cuckoo(CuckooShape::for_capacity(1_000, 0.01).unwrap()).listed_items(), None);
    }
}
