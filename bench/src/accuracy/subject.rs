//! The filters whose promises are checked, and how each is built and filled.

use mayhap::{
    Answers, BlockedBloom, BlockedLayout, BlockedShape, Bloom, CountingBloom, DualBloom, DualShape,
    ScalableBloom, ScalableShape,
};
use mayhap_testkit::{member_u64, stranger_u64};

/// A kind, as the table names it.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// Does it grow where others get too full?
    pub(crate) grows: bool,
    /// Builds for `capacity` at a rate, and puts `items` in: `(capacity, items, rate, seed)`.
    pub(crate) build: fn(u64, u64, f64, u64) -> Built,
}

/// A filled filter, and what the model says of it at capacity.
pub(crate) struct Built {
    pub(crate) filter: Box<dyn Asked>,
    pub(crate) expected: f64,
    pub(crate) bits_per_item: f64,
}

/// A filter to be asked about many strangers.
pub(crate) trait Asked {
    fn mayhaps(&self, items: &[u64], answers: &mut Answers) -> u64;

    /// How many of `count` strangers are answered *mayhap*.
    fn wrong_answers(&self, seed: u64, count: u64) -> u64 {
        const CHUNK: u64 = 4096;
        let (mut answers, mut strangers, mut wrong) = (Answers::new(), Vec::new(), 0);
        for first in (0..count).step_by(CHUNK as usize) {
            strangers.clear();
            strangers.extend((first..count.min(first + CHUNK)).map(|i| stranger_u64(seed, i)));
            wrong += self.mayhaps(&strangers, &mut answers);
        }
        wrong
    }
}

/// One macro for the same two lines of every filter; it writes no types.
macro_rules! asked {
    ($($filter:ty),*) => {$(
        impl Asked for $filter {
            fn mayhaps(&self, items: &[u64], answers: &mut Answers) -> u64 {
                self.may_contain_batch(items, answers);
                answers.mayhaps() as u64
            }
        }
    )*};
}

asked!(Bloom, BlockedBloom, CountingBloom, DualBloom, ScalableBloom);

const SIZES: &str = "the grid holds only sizes and rates that can be built";

pub(crate) const SUBJECTS: [Subject; 6] = [
    Subject { name: "Bloom", grows: false, build: bloom },
    Subject {
        name: "BlockedBloom, fast",
        grows: false,
        build: |c, i, r, s| blocked(BlockedLayout::Split256, c, i, r, s),
    },
    Subject {
        name: "BlockedBloom, dense",
        grows: false,
        build: |c, i, r, s| blocked(BlockedLayout::Line512, c, i, r, s),
    },
    Subject { name: "CountingBloom", grows: false, build: counting },
    Subject { name: "DualBloom, a tenth removed", grows: false, build: dual },
    Subject { name: "ScalableBloom, 6 growths", grows: true, build: scalable },
];

fn members(items: u64, seed: u64) -> impl Iterator<Item = u64> {
    (0..items).map(move |i| member_u64(seed, i))
}

/// Hands the members to `insert` in batches.
fn fill(items: u64, seed: u64, mut insert: impl FnMut(&[u64])) {
    let mut batch = Vec::with_capacity(4096);
    for item in members(items, seed) {
        batch.push(item);
        if batch.len() == batch.capacity() {
            insert(&batch);
            batch.clear();
        }
    }
    insert(&batch);
}

fn bloom(capacity: u64, items: u64, rate: f64, seed: u64) -> Built {
    let mut filter = Bloom::for_capacity(capacity, rate, seed).expect(SIZES);
    fill(items, seed, |batch| {
        filter.insert_batch(batch);
    });
    let (expected, bits_per_item) = (filter.shape().expected_fpr(capacity), filter.bits_per_item());
    Built { filter: Box::new(filter), expected, bits_per_item }
}

fn blocked(layout: BlockedLayout, capacity: u64, items: u64, rate: f64, seed: u64) -> Built {
    let shape = BlockedShape::with_layout(layout, capacity, rate).expect(SIZES);
    let mut filter = BlockedBloom::with_shape(shape, seed).expect(SIZES);
    fill(items, seed, |batch| {
        filter.insert_batch(batch);
    });
    Built {
        filter: Box::new(filter),
        expected: shape.expected_fpr(capacity),
        bits_per_item: shape.bits_per_item(),
    }
}

fn counting(capacity: u64, items: u64, rate: f64, seed: u64) -> Built {
    let mut filter = CountingBloom::for_capacity(capacity, rate, seed).expect(SIZES);
    fill(items, seed, |batch| {
        filter.insert_batch(batch);
    });
    let (expected, bits_per_item) = (filter.shape().expected_fpr(capacity), filter.bits_per_item());
    Built { filter: Box::new(filter), expected, bits_per_item }
}

/// As many items put in as it has room for, a tenth of them taken out again.
fn dual(capacity: u64, items: u64, rate: f64, seed: u64) -> Built {
    let removals = capacity / 10;
    let shape = DualShape::for_capacity(capacity, removals, rate).expect(SIZES);
    let mut filter = DualBloom::with_shape(shape, seed).expect(SIZES);
    fill(items, seed, |batch| {
        filter.insert_batch(batch).expect("nothing was removed yet");
    });
    members(removals, seed).for_each(|item| {
        filter.remove(&item);
    });
    let expected = shape.expected_fpr(capacity, removals);
    Built { filter: Box::new(filter), expected, bits_per_item: shape.bits_per_item() }
}

/// Begun so small that it has grown six times, by doubling, when it is full.
fn scalable(_: u64, items: u64, rate: f64, seed: u64) -> Built {
    const GROWTHS: u32 = 6;
    let layers = 2_u64.pow(GROWTHS + 1) - 1;
    let shape = ScalableShape::for_capacity(items.div_ceil(layers), rate)
        .and_then(|shape| shape.growth(2.0))
        .expect(SIZES);
    let mut filter = ScalableBloom::with_shape(shape, seed).expect(SIZES);
    fill(items, seed, |batch| {
        filter.insert_batch(batch).expect("memory to grow into");
    });
    assert!(filter.layers().len() as u32 == GROWTHS + 1, "{} layers", filter.layers().len());
    let (expected, bits_per_item) =
        (filter.expected_fpr(), filter.memory_bytes() as f64 * 8.0 / items as f64);
    Built { filter: Box::new(filter), expected, bits_per_item }
}
