//! Our own filters, called as a user would call them.

use mayhap::{
    Answers, AtomicBlockedBloom, AtomicBloom, BlockedBloom, BlockedLayout, BlockedShape, Bloom, BuildError,
    CountingBloom, HashScheme, Item, ScalableBloom, SecretKey,
};

use crate::{
    contender::{Batch, Contender, Entry, Kind},
    items::BenchItem,
};

const SEED: u64 = 0;
const KEY: SecretKey = SecretKey::new(*b"a secret for all");

/// A filter of ours with room for its answers.
struct Ours<F> {
    filter: F,
    answers: Answers,
}

impl<F> Ours<F> {
    /// Boxed for the table; the sizes and rates that reach here were checked by the command line.
    fn boxed<T, E: std::fmt::Debug>(built: Result<F, E>) -> Box<dyn Contender<T>>
    where
        F: Calls<T> + 'static,
    {
        Box::new(Ours { filter: built.expect("a checked size and rate"), answers: Answers::new() })
    }
}

/// The calls that are measured.
trait Calls<T> {
    fn insert_one(&mut self, item: &T);
    fn contains_one(&self, item: &T) -> bool;
    fn insert_many(&mut self, items: &[T]);
    fn contains_many(&self, items: &[T], answers: &mut Answers);
    fn bytes(&self) -> u64;
}

/// One macro for the same five calls of most filters; it writes no types.
macro_rules! calls {
    ($($filter:ty),*) => {$(
        impl<T: Item> Calls<T> for $filter {
            #[inline]
            fn insert_one(&mut self, item: &T) {
                self.insert(item);
            }

            #[inline]
            fn contains_one(&self, item: &T) -> bool {
                self.may_contain(item)
            }

            fn insert_many(&mut self, items: &[T]) {
                self.insert_batch(items);
            }

            fn contains_many(&self, items: &[T], answers: &mut Answers) {
                self.may_contain_batch(items, answers);
            }

            fn bytes(&self) -> u64 {
                self.memory_bytes()
            }
        }
    )*};
}

calls!(Bloom, AtomicBloom, BlockedBloom, AtomicBlockedBloom, CountingBloom);

/// Growing takes memory and may fail, so inserting here returns a result.
impl<T: Item> Calls<T> for ScalableBloom {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert(item).expect("memory to grow");
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.may_contain(item)
    }

    fn insert_many(&mut self, items: &[T]) {
        self.insert_batch(items).expect("memory to grow");
    }

    fn contains_many(&self, items: &[T], answers: &mut Answers) {
        self.may_contain_batch(items, answers);
    }

    fn bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<T, F: Calls<T>> Contender<T> for Ours<F> {
    #[inline(never)]
    fn insert_each(&mut self, items: &[T]) {
        for item in items {
            self.filter.insert_one(item);
        }
    }

    #[inline(never)]
    fn count_each(&self, items: &[T]) -> usize {
        items.iter().map(|item| usize::from(self.filter.contains_one(item))).sum()
    }

    fn batch(&mut self) -> Option<&mut dyn Batch<T>> {
        Some(self)
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.filter.bytes())
    }
}

impl<T, F: Calls<T>> Batch<T> for Ours<F> {
    fn insert(&mut self, items: &[T]) {
        self.filter.insert_many(items);
    }

    fn count(&mut self, items: &[T]) -> usize {
        self.filter.contains_many(items, &mut self.answers);
        self.answers.mayhaps()
    }
}

/// Every filter of ours. The first of a kind sets the footprint of the limits.
pub(crate) fn entries<T: BenchItem + Item>() -> Vec<Entry<T>> {
    let entry = |name, kind, layout, make| Entry { name, kind, ours: true, slow: false, layout, make };
    vec![
        entry("mayhap Bloom", Kind::Bloom, None, |items, fpr| {
            Ours::boxed(Bloom::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap Bloom keyed", Kind::Bloom, None, |items, fpr| {
            Ours::boxed(Bloom::for_capacity(items, fpr, HashScheme::keyed(KEY)))
        }),
        entry("mayhap AtomicBloom", Kind::BloomAtomic, None, |items, fpr| {
            Ours::boxed(AtomicBloom::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap BlockedBloom split256", Kind::Blocked, Some("split256"), |items, fpr| {
            Ours::boxed(blocked(BlockedLayout::Split256, items, fpr))
        }),
        entry("mayhap BlockedBloom line512", Kind::Blocked, Some("line512"), |items, fpr| {
            Ours::boxed(blocked(BlockedLayout::Line512, items, fpr))
        }),
        entry("mayhap AtomicBlockedBloom", Kind::BlockedAtomic, None, |items, fpr| {
            Ours::boxed(AtomicBlockedBloom::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap CountingBloom", Kind::Counting, Some("4-bit counters"), |items, fpr| {
            Ours::boxed(CountingBloom::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap ScalableBloom (n/16)", Kind::Growable, None, |items, fpr| {
            Ours::boxed(ScalableBloom::for_capacity((items / 16).max(1), fpr, SEED))
        }),
    ]
}

/// The layout by name, where `for_capacity` would pick one by the rate.
fn blocked(layout: BlockedLayout, items: u64, fpr: f64) -> Result<BlockedBloom, BuildError> {
    BlockedBloom::with_shape(BlockedShape::with_layout(layout, items, fpr)?, SEED)
}
