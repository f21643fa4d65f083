//! Our filters that are created empty and then filled.

use mayhap::{
    Answers, AtomicBlockedBloom, AtomicBloom, BlockedBloom, BlockedLayout, BlockedShape, Bloom, BuildError,
    CountingBloom, Cuckoo, CuckooShape, DLeft, DualBloom, GrowableCuckoo, Growing, HashScheme, Item,
    Quotient, ScalableBloom, SecretKey, Window,
};

use super::SEED;
use crate::{
    contender::{Contender, Entry, Kind, Make},
    items::BenchItem,
    rivals::qfilter_fpr,
};

const KEY: SecretKey = SecretKey::new(*b"a secret for all");

/// The rate of a cuckoo filter of 12-bit fingerprints, four to a bucket, with every slot in use.
const TWELVE_BITS: f64 = 8.0 / 4096.0;

/// The calls that are measured.
trait Calls<T> {
    /// Whether it supports removal.
    const REMOVES: bool;

    fn insert_one(&mut self, item: &T);
    fn contains_one(&self, item: &T) -> bool;
    fn remove_one(&mut self, item: &T) -> bool;
    fn insert_many(&mut self, items: &[T]);
    fn contains_many(&self, items: &[T], answers: &mut Answers);
    fn bytes(&self) -> u64;
    fn load(&self) -> Option<f64>;
}

/// One macro for the same calls of most filters; it defines no types. `full` unwraps the result of an insertion that may be rejected.
macro_rules! calls {
    ($($filter:ty: $full:ident, $remove:ident, $load:ident);* $(;)?) => {$(
        impl<T: Item> Calls<T> for $filter {
            const REMOVES: bool = calls!(@removes $remove);

            #[inline]
            fn insert_one(&mut self, item: &T) {
                calls!(@$full self.insert(item));
            }

            #[inline]
            fn contains_one(&self, item: &T) -> bool {
                self.may_contain(item)
            }

            #[inline]
            fn remove_one(&mut self, _item: &T) -> bool {
                calls!(@$remove self, _item)
            }

            fn insert_many(&mut self, items: &[T]) {
                calls!(@$full self.insert_batch(items));
            }

            fn contains_many(&self, items: &[T], answers: &mut Answers) {
                self.may_contain_batch(items, answers);
            }

            fn bytes(&self) -> u64 {
                self.memory_bytes()
            }

            fn load(&self) -> Option<f64> {
                calls!(@$load self)
            }
        }
    )*};
    (@takes_all $call:expr) => { $call };
    (@may_refuse $call:expr) => { $call.expect("room is left, or memory to grow") };
    (@removes removes) => { true };
    (@removes keeps) => { false };
    (@removes $filter:expr, $item:expr) => { $filter.remove($item) };
    (@keeps $filter:expr, $item:expr) => { false };
    (@slots $filter:expr) => { Some($filter.fill()) };
    (@bits $filter:expr) => { None };
}

calls! {
    Bloom: takes_all, keeps, bits;
    AtomicBloom: takes_all, keeps, bits;
    BlockedBloom: takes_all, keeps, bits;
    AtomicBlockedBloom: takes_all, keeps, bits;
    CountingBloom: takes_all, removes, bits;
    DLeft: may_refuse, removes, slots;
    DualBloom: may_refuse, keeps, bits;
    ScalableBloom: may_refuse, keeps, bits;
    Cuckoo: may_refuse, removes, slots;
    Quotient: may_refuse, removes, slots;
    Growing: may_refuse, removes, slots;
    GrowableCuckoo: may_refuse, removes, slots;
    Window: takes_all, keeps, bits;
}

/// A filter with a buffer for its answers.
struct Filled<F> {
    filter: F,
    answers: Answers,
}

/// Boxes a filter for the table. The command line has checked sizes and rates.
fn boxed<T, F: Calls<T> + 'static>(built: Result<F, BuildError>) -> Box<dyn Contender<T>> {
    Box::new(Filled { filter: built.expect("a checked size and rate"), answers: Answers::new() })
}

impl<T, F: Calls<T>> Contender<T> for Filled<F> {
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

    #[inline(never)]
    fn remove_each(&mut self, items: &[T]) -> Option<usize> {
        F::REMOVES.then(|| items.iter().map(|item| usize::from(self.filter.remove_one(item))).sum())
    }

    fn insert_batch(&mut self, items: &[T]) -> bool {
        self.filter.insert_many(items);
        true
    }

    fn count_batch(&mut self, items: &[T]) -> Option<usize> {
        self.filter.contains_many(items, &mut self.answers);
        Some(self.answers.maybe_count())
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.filter.bytes())
    }

    fn load(&self) -> Option<f64> {
        self.filter.load()
    }
}

pub(super) fn entries<T: BenchItem + Item>() -> Vec<Entry<T>> {
    let mut all = blooms();
    all.extend(with_fingerprints());
    all.extend(growing());
    all
}

fn entry<T>(
    name: &'static str,
    kind: Kind,
    layout: Option<&'static str>,
    make: fn(u64, f64) -> Box<dyn Contender<T>>,
) -> Entry<T> {
    Entry { name, kind, ours: true, slow: false, layout, make: Make::Empty(make) }
}

fn blooms<T: BenchItem + Item>() -> Vec<Entry<T>> {
    vec![
        entry("mayhap Bloom", Kind::Bloom, None, |items, fpr| boxed(Bloom::for_capacity(items, fpr, SEED))),
        entry("mayhap Bloom keyed", Kind::Bloom, None, |items, fpr| {
            boxed(Bloom::for_capacity(items, fpr, HashScheme::keyed(KEY)))
        }),
        entry("mayhap AtomicBloom", Kind::BloomAtomic, None, |items, fpr| {
            boxed(AtomicBloom::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap BlockedBloom split256", Kind::Blocked, Some("split256"), |items, fpr| {
            boxed(blocked(BlockedLayout::Split256, items, fpr))
        }),
        entry("mayhap BlockedBloom line512", Kind::Blocked, Some("line512"), |items, fpr| {
            boxed(blocked(BlockedLayout::Line512, items, fpr))
        }),
        entry("mayhap AtomicBlockedBloom", Kind::BlockedAtomic, None, |items, fpr| {
            boxed(AtomicBlockedBloom::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap CountingBloom", Kind::Counting, Some("4-bit counters"), |items, fpr| {
            boxed(CountingBloom::for_capacity(items, fpr, SEED))
        }),
        // Its removals may remove other items too, as documented, so no removals are counted here.
        entry("mayhap DualBloom (n/10 removals)", Kind::Counting, None, |items, fpr| {
            boxed(DualBloom::for_capacity(items, items.div_ceil(10), fpr, SEED))
        }),
    ]
}

fn with_fingerprints<T: BenchItem + Item>() -> Vec<Entry<T>> {
    vec![
        entry("mayhap DLeft", Kind::Counting, None, |items, fpr| {
            boxed(DLeft::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap Cuckoo", Kind::Cuckoo, None, |items, fpr| {
            boxed(Cuckoo::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap Cuckoo 12-bit", Kind::Cuckoo, None, |items, _| {
            boxed(cuckoo(CuckooShape::with_bucket_size(4, items, TWELVE_BITS)))
        }),
        entry("mayhap Cuckoo 12-bit semi-sorted", Kind::Cuckoo, None, |items, _| {
            boxed(cuckoo(CuckooShape::semi_sorted(items, TWELVE_BITS)))
        }),
        entry("mayhap Quotient", Kind::Quotient, None, |items, fpr| {
            boxed(Quotient::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap Quotient at qfilter's rate", Kind::Quotient, None, |items, fpr| {
            boxed(Quotient::for_capacity(items, qfilter_fpr(items, fpr), SEED))
        }),
    ]
}

fn growing<T: BenchItem + Item>() -> Vec<Entry<T>> {
    vec![
        entry("mayhap ScalableBloom (n/16)", Kind::Growable, None, |items, fpr| {
            boxed(ScalableBloom::for_capacity((items / 16).max(1), fpr, SEED))
        }),
        entry("mayhap Growing (n/16)", Kind::Growable, None, |items, fpr| {
            boxed(Growing::for_capacity((items / 16).max(1), fpr, SEED))
        }),
        entry("mayhap GrowableCuckoo (n/16, told n)", Kind::Growable, None, |items, fpr| {
            boxed(GrowableCuckoo::for_growth((items / 16).max(1), items, fpr, SEED))
        }),
        entry("mayhap Growing (n/2^20)", Kind::Growing, None, |items, fpr| {
            boxed(Growing::for_capacity((items >> 20).max(1), fpr, SEED))
        }),
        entry("mayhap Growing (built for n)", Kind::Growing, None, |items, fpr| {
            boxed(Growing::for_capacity(items, fpr, SEED))
        }),
        entry("mayhap Window", Kind::Window, None, |items, fpr| boxed(Window::of_items(items, fpr, SEED))),
    ]
}

/// The layout by name, because `for_capacity` would choose one by the rate.
fn blocked(layout: BlockedLayout, items: u64, fpr: f64) -> Result<BlockedBloom, BuildError> {
    BlockedBloom::with_shape(BlockedShape::with_layout(layout, items, fpr)?, SEED)
}

fn cuckoo(shape: Result<CuckooShape, BuildError>) -> Result<Cuckoo, BuildError> {
    Cuckoo::with_shape(shape?, SEED)
}
