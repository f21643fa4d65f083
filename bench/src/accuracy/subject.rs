//! The filters whose rates are checked, and how each is built and filled.

use mayhap::{
    Answers, BinaryFuse8, BinaryFuse16, BlockedBloom, BlockedLayout, BlockedShape, Bloom, BuildError,
    CountingBloom, Cuckoo, CuckooShape, DLeft, DualBloom, DualShape, Gcs, GrowableCuckoo, Growing,
    Membership, Quotient, Ribbon, ScalableBloom, ScalableShape, Window, WindowShape, Xor8, Xor16,
};
use mayhap_testkit::{member_u64, non_member_u64};

/// A kind, with its name in the table.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The overfull variant that the check must detect.
    pub(crate) twin: Twin,
    /// The fixed rate of filters of fixed width.
    pub(crate) fixed: Option<f64>,
    /// Builds a filter and inserts items: `(capacity, items, rate, seed)`.
    pub(crate) build: fn(u64, u64, f64, u64) -> Result<Built, BuildError>,
}

impl Subject {
    const fn new(
        name: &'static str,
        twin: Twin,
        build: fn(u64, u64, f64, u64) -> Result<Built, BuildError>,
    ) -> Self {
        Self { name, twin, fixed: None, build }
    }

    const fn fixed(
        name: &'static str,
        rate: f64,
        build: fn(u64, u64, f64, u64) -> Result<Built, BuildError>,
    ) -> Self {
        Self { name, twin: Twin::None, fixed: Some(rate), build }
    }
}

/// The overfull variant of a filter, which the check must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twin {
    /// A tenth too many items: the rate must be detected as wrong.
    Tenth,
    /// Half too many items: they must be rejected, or the rate must be detected as wrong. The rate grows only linearly with the items.
    Half,
    /// None: the filter is built from its items, grows, or forgets, so it cannot have too many.
    None,
}

/// A filled filter, with its own figures at capacity.
pub(crate) struct Built {
    pub(crate) filter: Box<dyn Asked>,
    pub(crate) promised: f64,
    pub(crate) expected: f64,
    pub(crate) bits_per_item: f64,
    /// Whether it rejected some items because it was full.
    pub(crate) refused: bool,
}

/// A filter that is queried with many non-members.
pub(crate) trait Asked {
    fn mayhaps(&self, items: &[u64], answers: &mut Answers) -> u64;

    /// Returns how many of `count` non-members are answered *maybe*.
    fn wrong_answers(&self, seed: u64, count: u64) -> u64 {
        const CHUNK: u64 = 4096;
        let (mut answers, mut non_members, mut wrong) = (Answers::new(), Vec::new(), 0);
        for first in (0..count).step_by(CHUNK as usize) {
            non_members.clear();
            non_members.extend((first..count.min(first + CHUNK)).map(|i| non_member_u64(seed, i)));
            wrong += self.mayhaps(&non_members, &mut answers);
        }
        wrong
    }
}

impl<F: Membership> Asked for F {
    fn mayhaps(&self, items: &[u64], answers: &mut Answers) -> u64 {
        self.may_contain_batch(items, answers);
        answers.maybe_count() as u64
    }
}

const EIGHT_BITS: f64 = 1.0 / 256.0;
const SIXTEEN_BITS: f64 = 1.0 / 65_536.0;

pub(crate) const SUBJECTS: [Subject; 19] = [
    Subject::new("Bloom", Twin::Tenth, bloom),
    Subject::new("BlockedBloom, fast", Twin::Tenth, |c, i, r, s| {
        blocked(BlockedLayout::Split256, c, i, r, s)
    }),
    Subject::new("BlockedBloom, dense", Twin::Tenth, |c, i, r, s| {
        blocked(BlockedLayout::Line512, c, i, r, s)
    }),
    Subject::new("CountingBloom", Twin::Tenth, counting),
    Subject::new("DualBloom, a tenth removed", Twin::Tenth, dual),
    Subject::new("ScalableBloom, 6 growths", Twin::None, scalable),
    Subject::new("DLeft", Twin::Half, d_left),
    Subject::new("Cuckoo", Twin::Half, |c, i, r, s| cuckoo(CuckooShape::for_capacity(c, r)?, i, s)),
    Subject::new("Cuckoo, semi-sorted", Twin::Half, |c, i, r, s| {
        cuckoo(CuckooShape::semi_sorted(c, r)?, i, s)
    }),
    Subject::new("GrowableCuckoo, 6 doublings", Twin::Half, growable_cuckoo),
    Subject::new("Quotient", Twin::Half, quotient),
    Subject::new("Growing, started at a millionth", Twin::None, growing),
    Subject::new("Window, full", Twin::None, window),
    Subject::fixed("Xor8", EIGHT_BITS, |_, items, _, seed| {
        let filter = Xor8::build(members(items, seed), seed)?;
        Ok(whole((filter.target_fpr(), filter.expected_fpr(), filter.memory_bytes()), filter, items))
    }),
    Subject::fixed("Xor16", SIXTEEN_BITS, |_, items, _, seed| {
        let filter = Xor16::build(members(items, seed), seed)?;
        Ok(whole((filter.target_fpr(), filter.expected_fpr(), filter.memory_bytes()), filter, items))
    }),
    Subject::fixed("BinaryFuse8", EIGHT_BITS, |_, items, _, seed| {
        let filter = BinaryFuse8::build(members(items, seed), seed)?;
        Ok(whole((filter.target_fpr(), filter.expected_fpr(), filter.memory_bytes()), filter, items))
    }),
    Subject::fixed("BinaryFuse16", SIXTEEN_BITS, |_, items, _, seed| {
        let filter = BinaryFuse16::build(members(items, seed), seed)?;
        Ok(whole((filter.target_fpr(), filter.expected_fpr(), filter.memory_bytes()), filter, items))
    }),
    Subject::new("Ribbon", Twin::None, |_, items, rate, seed| {
        let filter = Ribbon::build(members(items, seed), rate, seed)?;
        Ok(whole((filter.target_fpr(), filter.expected_fpr(), filter.memory_bytes()), filter, items))
    }),
    Subject::new("Gcs", Twin::None, |_, items, rate, seed| {
        let filter = Gcs::build(members(items, seed), rate, seed)?;
        Ok(whole((filter.target_fpr(), filter.expected_fpr(), filter.memory_bytes()), filter, items))
    }),
];

fn members(items: u64, seed: u64) -> impl Iterator<Item = u64> {
    (0..items).map(move |i| member_u64(seed, i))
}

/// Passes the members to `insert` in batches until it rejects one. Returns whether it did.
fn fill<E>(items: u64, seed: u64, mut insert: impl FnMut(&[u64]) -> Result<u64, E>) -> bool {
    let mut batch = Vec::with_capacity(4096);
    for item in members(items, seed) {
        batch.push(item);
        if batch.len() == batch.capacity() {
            if insert(&batch).is_err() {
                return true;
            }
            batch.clear();
        }
    }
    insert(&batch).is_err()
}

/// Converts the result of a filter that accepts every item.
fn taken(new: u64) -> Result<u64, BuildError> {
    Ok(new)
}

/// A static filter: its promised rate, expected rate, size in bytes, and the filter itself.
fn whole(
    (promised, expected, memory_bytes): (f64, f64, u64),
    filter: impl Asked + 'static,
    items: u64,
) -> Built {
    let bits_per_item = memory_bytes as f64 * 8.0 / items as f64;
    Built { filter: Box::new(filter), promised, expected, bits_per_item, refused: false }
}

fn bloom(capacity: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = Bloom::for_capacity(capacity, rate, seed)?;
    let refused = fill(items, seed, |batch| taken(filter.insert_batch(batch)));
    let (expected, bits_per_item) = (filter.shape().expected_fpr(capacity), filter.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

fn blocked(
    layout: BlockedLayout,
    capacity: u64,
    items: u64,
    rate: f64,
    seed: u64,
) -> Result<Built, BuildError> {
    let shape = BlockedShape::with_layout(layout, capacity, rate)?;
    let mut filter = BlockedBloom::with_shape(shape, seed)?;
    let refused = fill(items, seed, |batch| taken(filter.insert_batch(batch)));
    let (expected, bits_per_item) = (shape.expected_fpr(capacity), shape.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

fn counting(capacity: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = CountingBloom::for_capacity(capacity, rate, seed)?;
    let refused = fill(items, seed, |batch| taken(filter.insert_batch(batch)));
    let (expected, bits_per_item) = (filter.shape().expected_fpr(capacity), filter.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

/// Filled to its capacity, with a tenth of the items removed again.
fn dual(capacity: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let removals = capacity / 10;
    let shape = DualShape::for_capacity(capacity, removals, rate)?;
    let mut filter = DualBloom::with_shape(shape, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    members(removals, seed).for_each(|item| {
        filter.remove(&item);
    });
    let (expected, bits_per_item) = (shape.expected_fpr(capacity, removals), shape.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

/// Created so small that it has doubled six times when it is full.
fn scalable(_: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    const GROWTHS: u32 = 6;
    let layers = 2_u64.pow(GROWTHS + 1) - 1;
    let shape = ScalableShape::for_capacity(items.div_ceil(layers), rate)?.growth(2.0)?;
    let mut filter = ScalableBloom::with_shape(shape, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    assert!(filter.layers().len() as u32 == GROWTHS + 1, "{} layers", filter.layers().len());
    let (expected, bits_per_item) =
        (filter.expected_fpr(), filter.memory_bytes() as f64 * 8.0 / items as f64);
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

fn d_left(capacity: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = DLeft::for_capacity(capacity, rate, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    let (expected, bits_per_item) = (filter.shape().expected_fpr(capacity), filter.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

fn cuckoo(shape: CuckooShape, items: u64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = Cuckoo::with_shape(shape, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    let (expected, bits_per_item) = (shape.expected_fpr(shape.capacity()), shape.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: shape.target_fpr(), expected, bits_per_item, refused })
}

/// Created at 1/64 of its final size.
fn growable_cuckoo(capacity: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = GrowableCuckoo::for_growth(capacity.div_ceil(64), capacity, rate, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    let (expected, bits_per_item) =
        (filter.shape().expected_fpr(capacity), filter.memory_bytes() as f64 * 8.0 / capacity as f64);
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

fn quotient(capacity: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = Quotient::for_capacity(capacity, rate, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    let (expected, bits_per_item) = (filter.shape().expected_fpr(capacity), filter.bits_per_item());
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

/// Created with room for a millionth of its items, at least one: twenty doublings and more.
fn growing(_: u64, items: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let mut filter = Growing::for_capacity((items >> 20).max(1), rate, seed)?;
    let refused = fill(items, seed, |batch| filter.insert_batch(batch));
    let (expected, bits_per_item) =
        (filter.expected_fpr(), filter.memory_bytes() as f64 * 8.0 / items as f64);
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}

/// As full as it ever gets: one more item, and the oldest generation is dropped.
fn window(capacity: u64, _: u64, rate: f64, seed: u64) -> Result<Built, BuildError> {
    let shape = WindowShape::of_items(capacity, rate)?;
    let held = shape.generation_items() * u64::from(shape.generations());
    let mut filter = Window::with_shape(shape, seed)?;
    let refused = fill(held, seed, |batch| taken(filter.insert_batch(batch)));
    let (expected, bits_per_item) =
        (filter.expected_fpr(), filter.memory_bytes() as f64 * 8.0 / capacity as f64);
    Ok(Built { filter: Box::new(filter), promised: rate, expected, bits_per_item, refused })
}
