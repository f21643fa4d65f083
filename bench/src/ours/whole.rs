//! Our static filters.

use mayhap::{Answers, BinaryFuse8, BinaryFuse16, BuildError, Gcs, Item, Ribbon, Xor8, Xor16};

use super::SEED;
use crate::{
    contender::{Contender, Entry, Kind, Make},
    items::BenchItem,
};

/// The rate of 8-bit fingerprints.
const EIGHT_BITS: f64 = 1.0 / 256.0;

/// A filter with a buffer for its answers.
struct Built<F> {
    filter: F,
    answers: Answers,
}

/// The queries that are measured.
trait Questions<T> {
    fn contains_one(&self, item: &T) -> bool;
    fn contains_many(&self, items: &[T], answers: &mut Answers);
    fn bytes(&self) -> u64;
}

/// One macro for the same queries to all of them; it defines no types.
macro_rules! questions {
    ($($filter:ty),*) => {$(
        impl<T: Item> Questions<T> for $filter {
            #[inline]
            fn contains_one(&self, item: &T) -> bool {
                self.may_contain(item)
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

questions!(Xor8, Xor16, BinaryFuse8, BinaryFuse16, Ribbon, Gcs);

impl<T, F: Questions<T>> Contender<T> for Built<F> {
    #[inline(never)]
    fn count_each(&self, items: &[T]) -> usize {
        items.iter().map(|item| usize::from(self.filter.contains_one(item))).sum()
    }

    fn count_batch(&mut self, items: &[T]) -> Option<usize> {
        self.filter.contains_many(items, &mut self.answers);
        Some(self.answers.maybe_count())
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.filter.bytes())
    }
}

pub(super) fn entries<T: BenchItem + Item>() -> Vec<Entry<T>> {
    let entry = |name, make| Entry {
        name,
        kind: Kind::Static,
        ours: true,
        slow: false,
        layout: None,
        make: Make::Whole(make),
    };
    vec![
        entry("mayhap BinaryFuse8", |items, _| boxed(BinaryFuse8::build(items, SEED))),
        entry("mayhap BinaryFuse16", |items, _| boxed(BinaryFuse16::build(items, SEED))),
        entry("mayhap Xor8", |items, _| boxed(Xor8::build(items, SEED))),
        entry("mayhap Xor16", |items, _| boxed(Xor16::build(items, SEED))),
        entry("mayhap Ribbon", |items, fpr| boxed(Ribbon::build(items, fpr, SEED))),
        entry("mayhap Ribbon 8-bit", |items, _| boxed(Ribbon::build(items, EIGHT_BITS, SEED))),
        entry("mayhap Gcs", |items, fpr| boxed(Gcs::build(items, fpr, SEED))),
        entry("mayhap Gcs 8-bit", |items, _| boxed(Gcs::build(items, EIGHT_BITS, SEED))),
    ]
}

/// Boxes a filter for the table. The command line has checked the rates.
fn boxed<T, F: Questions<T> + 'static>(built: Result<F, BuildError>) -> Box<dyn Contender<T>> {
    Box::new(Built { filter: built.expect("a checked rate"), answers: Answers::new() })
}
