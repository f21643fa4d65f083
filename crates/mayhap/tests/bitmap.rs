//! The guarantees of the bitmap: exact answers after any operation, at every border of words and lines.

use std::collections::BTreeSet;

use mayhap::{Answers, Bitmap, BuildError, DecodeError, InsertError, sizing};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::Corruptor;
use proptest::prelude::*;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

/// Lengths around the borders of words (64 bits) and lines (512).
const LENGTHS: [u64; 14] = [0, 1, 2, 63, 64, 65, 127, 128, 511, 512, 513, 1_023, 1_024, 1_500];

/// A bitmap in its simplest form.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    len: u64,
    set: BTreeSet<u64>,
}

impl Model {
    fn new(len: u64, set: impl IntoIterator<Item = u64>) -> Self {
        Self { len, set: set.into_iter().filter(|&index| index < len).collect() }
    }

    fn bitmap(&self) -> Bitmap {
        let mut bitmap = Bitmap::new(self.len).unwrap();
        for &index in &self.set {
            assert_eq!(bitmap.set(index), Ok(true));
        }
        bitmap
    }

    /// Checks that the bitmap agrees with the model.
    fn check(&self, bitmap: &Bitmap) {
        assert_eq!(bitmap.len(), self.len);
        assert_eq!(bitmap.is_empty(), self.len == 0);
        assert_eq!(bitmap.count(), self.set.len() as u64);
        assert!(bitmap.iter_ones().eq(self.set.iter().copied()));
        assert!(bitmap.memory_bytes() * 8 >= self.len);
        let asked: Vec<u64> = (0..self.len + 130).chain([u64::MAX, 1 << 63]).collect();
        let mut answers = Answers::new();
        bitmap.get_batch(&asked, &mut answers);
        for (&index, answer) in asked.iter().zip(answers.iter()) {
            assert_eq!(bitmap.get(index), self.set.contains(&index), "bit {index}");
            assert_eq!(answer, self.set.contains(&index), "bit {index} in a batch");
        }
        assert!(*bitmap == self.bitmap(), "equal bitmaps compare equal");
        assert!(Bitmap::decode(&bitmap.encode()).unwrap() == *bitmap);
        assert!(bitmap.try_clone().unwrap().encode() == bitmap.encode());
    }

    fn check_range(&self, bitmap: &Bitmap, start: u64, end: u64) {
        let inside = |index: &u64| (start..end).contains(index);
        let set = self.set.iter().copied().filter(inside);
        let clear = (0..self.len).filter(inside).find(|index| !self.set.contains(index));
        assert_eq!(bitmap.count_range(start..end), set.clone().count() as u64, "{start}..{end}");
        assert_eq!(bitmap.first_set(start..end), set.clone().next(), "{start}..{end}");
        assert_eq!(bitmap.first_clear(start..end), clear, "{start}..{end}");
        if end > start {
            assert_eq!(bitmap.count_range(start..=end - 1), bitmap.count_range(start..end));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64),
    SetGrowing(u64),
    SetBatch(Vec<u64>),
    Clear(u64),
    ClearAll,
    Grow(u64),
    Not,
    RoundTrip,
    And(u64, Vec<u64>),
    Or(u64, Vec<u64>),
    Xor(u64, Vec<u64>),
    AndNot(u64, Vec<u64>),
}

/// An index or a length, mostly near the border of a word or a line.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..1_600_u64, prop::sample::select(&LENGTHS[..])]
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(number(), 0..200)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => number().prop_map(Step::Set),
        4 => number().prop_map(Step::SetGrowing),
        4 => numbers().prop_map(Step::SetBatch),
        4 => number().prop_map(Step::Clear),
        1 => Just(Step::ClearAll),
        2 => number().prop_map(Step::Grow),
        2 => Just(Step::Not),
        2 => Just(Step::RoundTrip),
        2 => (number(), numbers()).prop_map(|(len, set)| Step::And(len, set)),
        2 => (number(), numbers()).prop_map(|(len, set)| Step::Or(len, set)),
        2 => (number(), numbers()).prop_map(|(len, set)| Step::Xor(len, set)),
        2 => (number(), numbers()).prop_map(|(len, set)| Step::AndNot(len, set)),
    ]
}

/// Combines both in the model, bit by bit.
fn combined(ours: &Model, theirs: &Model, join: impl Fn(bool, bool) -> bool) -> Model {
    let len = ours.len.max(theirs.len);
    Model::new(len, (0..len).filter(|index| join(ours.set.contains(index), theirs.set.contains(index))))
}

fn apply(bitmap: &mut Bitmap, model: &mut Model, step: &Step) {
    let other = |len: u64, set: &[u64]| {
        let model = Model::new(len, set.iter().copied());
        (model.bitmap(), model)
    };
    match step {
        Step::Set(index) if *index < model.len => {
            assert_eq!(bitmap.set(*index), Ok(model.set.insert(*index)));
        }
        Step::Set(index) => {
            assert_eq!(bitmap.set(*index), Err(InsertError::PastTheEnd { index: *index, bits: model.len }));
        }
        Step::SetGrowing(index) => {
            assert_eq!(bitmap.set_growing(*index), Ok(model.set.insert(*index)));
            model.len = model.len.max(index + 1);
        }
        Step::SetBatch(indexes) => match indexes.iter().find(|&&index| index >= model.len) {
            Some(&index) => {
                let bits = model.len;
                assert_eq!(bitmap.set_batch(indexes), Err(InsertError::PastTheEnd { index, bits }));
            }
            None => {
                let new = indexes.iter().filter(|&&index| model.set.insert(index)).count() as u64;
                assert_eq!(bitmap.set_batch(indexes), Ok(new));
            }
        },
        Step::Clear(index) => assert_eq!(bitmap.clear(*index), model.set.remove(index)),
        Step::ClearAll => {
            bitmap.clear_all();
            model.set.clear();
        }
        Step::Grow(len) => {
            bitmap.grow(*len).unwrap();
            model.len = model.len.max(*len);
        }
        Step::Not => {
            bitmap.not();
            *model = Model::new(model.len, (0..model.len).filter(|index| !model.set.contains(index)));
        }
        Step::RoundTrip => *bitmap = Bitmap::decode(&bitmap.encode()).unwrap(),
        Step::And(len, set) => {
            let (theirs, theirs_model) = other(*len, set);
            bitmap.and(&theirs).unwrap();
            *model = combined(model, &theirs_model, |ours, theirs| ours && theirs);
        }
        Step::Or(len, set) => {
            let (theirs, theirs_model) = other(*len, set);
            bitmap.or(&theirs).unwrap();
            *model = combined(model, &theirs_model, |ours, theirs| ours || theirs);
        }
        Step::Xor(len, set) => {
            let (theirs, theirs_model) = other(*len, set);
            bitmap.xor(&theirs).unwrap();
            *model = combined(model, &theirs_model, |ours, theirs| ours != theirs);
        }
        Step::AndNot(len, set) => {
            let (theirs, theirs_model) = other(*len, set);
            bitmap.and_not(&theirs).unwrap();
            *model = combined(model, &theirs_model, |ours, theirs| ours && !theirs);
        }
    }
}

proptest! {
    #[test]
    fn a_bitmap_is_exactly_its_model(
        len in number(),
        steps in prop::collection::vec(step(), 1..40),
        ranges in prop::collection::vec((number(), number()), 1..10),
    ) {
        let (mut bitmap, mut model) = (Bitmap::new(len).unwrap(), Model::new(len, []));
        for step in &steps {
            apply(&mut bitmap, &mut model, step);
        }
        model.check(&bitmap);
        for (start, end) in ranges {
            model.check_range(&bitmap, start, end);
        }
    }
}

#[test]
fn every_pair_of_lengths_combines_as_if_zeroes_followed_the_shorter() {
    for ours_len in LENGTHS {
        for theirs_len in LENGTHS {
            let ours = Model::new(ours_len, (0..ours_len).filter(|index| index % 3 != 1));
            let theirs = Model::new(theirs_len, (0..theirs_len).filter(|index| index % 5 < 2));
            for step in [Step::And, Step::Or, Step::Xor, Step::AndNot] {
                let (mut bitmap, mut model) = (ours.bitmap(), ours.clone());
                let set: Vec<u64> = theirs.set.iter().copied().collect();
                apply(&mut bitmap, &mut model, &step(theirs_len, set));
                assert_eq!(model.len, ours_len.max(theirs_len));
                model.check(&bitmap);
                apply(&mut bitmap, &mut model, &Step::Not);
                model.check(&bitmap);
            }
        }
    }
}

#[test]
fn counts_and_searches_are_right_at_every_border() {
    let patterns: [fn(u64) -> bool; 5] =
        [|_| true, |_| false, |index| index % 64 == 63, |index| index % 64 == 0, |index| index % 7 == 3];
    for len in LENGTHS {
        for pattern in patterns {
            let model = Model::new(len, (0..len).filter(|&index| pattern(index)));
            let bitmap = model.bitmap();
            for start in LENGTHS {
                LENGTHS.into_iter().for_each(|end| model.check_range(&bitmap, start, end));
                assert_eq!(bitmap.first_set(start..), model.set.range(start..).next().copied());
            }
            assert_eq!(bitmap.count_range(..), bitmap.count());
            assert_eq!(bitmap.count_range(0..=u64::MAX), bitmap.count());
            assert_eq!(bitmap.count_range(u64::MAX..), 0);
        }
    }
}

#[test]
fn a_bitmap_of_no_bits_is_empty() {
    let mut none = Bitmap::new(0).unwrap();
    assert_eq!((none.len(), none.memory_bytes(), none.count(), none.get(0)), (0, 0, 0, false));
    assert_eq!(none.set(0), Err(InsertError::PastTheEnd { index: 0, bits: 0 }));
    assert_eq!(none.set(0).unwrap_err().to_string(), "bit 0 is past the end, there are 0 bits");
    assert_eq!((none.first_set(..), none.first_clear(..), none.iter_ones().next()), (None, None, None));
    none.not();
    assert_eq!(none.set_batch(&[]), Ok(0));
    assert!(Bitmap::decode(&none.encode()).unwrap() == none);
    assert_eq!(none.set_growing(700), Ok(true));
    assert_eq!((none.len(), none.count()), (701, 1));
}

/// A million ids in order: moved some twenty times, not sixteen thousand.
#[test]
fn growing_bit_by_bit_rarely_reallocates_and_leaves_no_trace() {
    let mut grown = Bitmap::new(0).unwrap();
    let (_, measured) = AllocMeter::measure(|| {
        (0..1_000_000).step_by(3).for_each(|index| assert_eq!(grown.set_growing(index), Ok(true)));
    });
    assert!(measured.total_bytes < 4 * 1_000_000 / 8, "{} bytes in all", measured.total_bytes);
    assert!(grown.memory_bytes() <= 2 * 1_000_000 / 8 + 64, "{} bytes held", grown.memory_bytes());
    let mut made = Bitmap::new(999_999 + 1).unwrap();
    (0..1_000_000).step_by(3).for_each(|index| assert_eq!(made.set(index), Ok(true)));
    assert!(grown.encode() == made.encode());
}

#[test]
fn large_bitmaps_are_exact_too() {
    // Past the size from which memory is mapped in its own pages.
    let bits = 40_000_003;
    let mut bitmap = Bitmap::new(bits).unwrap();
    let indexes: Vec<u64> = (0..100_000).map(|i| i * 7_919 % bits).collect();
    let model: BTreeSet<u64> = indexes.iter().copied().collect();
    assert_eq!(bitmap.set_batch(&indexes), Ok(model.len() as u64));
    assert_eq!(bitmap.set_batch(&indexes), Ok(0));
    assert!(bitmap.iter_ones().eq(model.iter().copied()));
    bitmap.grow(80_000_000).unwrap();
    assert_eq!(bitmap.count(), model.len() as u64);
    bitmap.not();
    assert_eq!(bitmap.count(), 80_000_000 - model.len() as u64);
    let mut answers = Answers::new();
    bitmap.get_batch(&indexes, &mut answers);
    assert_eq!((answers.len(), answers.maybe_count()), (indexes.len(), 0));
    assert_eq!(bitmap.memory_bytes(), 80_000_000_u64.div_ceil(512) * 64);
}

#[test]
fn absurd_lengths_are_rejected_before_any_allocation() {
    let mut bitmap = Bitmap::new(100).unwrap();
    bitmap.set(99).unwrap();
    for bits in [sizing::MAX_BITS + 1, 1 << 63, u64::MAX] {
        let refused = BuildError::BitsOutOfRange { got: bits, limit: sizing::MAX_BITS };
        let (outcome, measured) = AllocMeter::measure(|| Bitmap::new(bits));
        assert_eq!((outcome.err(), measured.total_bytes), (Some(refused.clone()), 0));
        let (outcome, measured) = AllocMeter::measure(|| bitmap.grow(bits));
        assert_eq!((outcome, measured.total_bytes), (Err(refused.clone()), 0));
        let (outcome, measured) = AllocMeter::measure(|| bitmap.set_growing(bits - 1));
        assert_eq!((outcome, measured.total_bytes), (Err(refused), 0));
    }
    assert!(matches!(bitmap.set_growing(u64::MAX), Err(BuildError::BitsOutOfRange { got: u64::MAX, .. })));
    assert_eq!((bitmap.len(), bitmap.get(99)), (100, true));
}

#[test]
fn damage_is_detected_at_every_byte() {
    for len in [0, 100, 512, 700] {
        let mut bitmap = Bitmap::new(len).unwrap();
        bitmap.not();
        let refused = |damaged: &[u8], damage: &dyn std::fmt::Debug| {
            assert!(Bitmap::decode(damaged).is_err(), "{damage:?}");
        };
        let bytes = bitmap.encode();
        let mut corruptor = Corruptor::new(&bytes);
        corruptor.truncations(|damaged, damage| refused(damaged, damage));
        corruptor.extensions(130, |damaged, damage| refused(damaged, damage));
        corruptor.bit_flips(0..bytes.len(), |damaged, damage| refused(damaged, damage));
    }
    let bloom = mayhap::Bloom::for_capacity(10, 0.01, 0).unwrap().encode();
    assert!(matches!(Bitmap::decode(&bloom), Err(DecodeError::WrongKind { .. })));
}
