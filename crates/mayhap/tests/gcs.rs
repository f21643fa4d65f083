//! The promises of the Golomb–Rice coded set.

use mayhap::{
    Answers, BuildError, DecodeError, Gcs, GcsBuilder, GcsShape, HashScheme, ItemHash, MergeError, WellMixed,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, Operation, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Built, Inserted, Rebuilt, Shape, Subject, band_with_model_error, member, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

/// A set at a rate of `1 / ONE_IN`.
struct Set<const ONE_IN: u64>(Gcs);

impl<const ONE_IN: u64> Built for Set<ONE_IN> {
    fn build(items: &[Vec<u8>], seed: u64) -> Result<Self, String> {
        Gcs::build(items, 1.0 / ONE_IN as f64, seed).map(Self).map_err(|error| error.to_string())
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.0.may_contain_batch(items, &mut answers);
        answers.iter().collect()
    }

    fn round_trip(&self) -> Result<Self, String> {
        Gcs::decode(&self.0.encode()).map(Self).map_err(|error| error.to_string())
    }
}

/// `MAYHAP_OPERATIONS` sets a longer run.
fn operations() -> u64 {
    std::env::var("MAYHAP_OPERATIONS").map_or(200_000, |number| number.parse().expect("a number"))
}

/// Rebuilt for every answer after an insert, with every duplicate: quadratic, so the run is short.
#[test]
fn never_forgets_the_items_it_was_built_from() {
    let script = Script::new(operations().min(4_000), 300);
    let report = never_forgets(Rebuilt::<Set<100>>::new, &script).unwrap();
    let cannot = [Operation::LookupRemoved, Operation::Remove, Operation::Merge];
    assert!(report.missing().iter().all(|missing| cannot.contains(missing)), "{:?}", report.missing());
}

/// A set that grows by unions: every insert is one with the set of a single item.
struct United(Gcs);

impl United {
    fn add(&mut self, items: &[&[u8]]) -> Result<(), String> {
        let others = Gcs::with_shape(items, *self.0.shape(), *self.0.scheme()).unwrap();
        self.0.union(&others).map_err(|error| error.to_string())
    }
}

impl Subject for United {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let new = !self.0.may_contain(item);
        self.add(&[item]).map(|()| new).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Gcs::decode(&self.0.encode()).map(Self).map_err(|error| error.to_string()))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        Some(self.0.union(&other.0).map_err(|error| error.to_string()))
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.0.may_contain_batch(items, &mut answers);
        answers.iter().collect()
    }
}

#[test]
fn never_forgets_across_unions() {
    for (capacity, fpr) in [(200, 0.02), (64, 1e-6)] {
        let shape = GcsShape::for_capacity(capacity, fpr).unwrap();
        let make = |seed| United(Gcs::with_shape(Vec::<u64>::new(), shape, seed).unwrap());
        let report = never_forgets(make, &Script::new(operations() / 2, capacity)).unwrap();
        assert_eq!(report.missing(), [Operation::LookupRemoved, Operation::Remove]);
    }
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate. The model is exact; the band allows for an error of 1 %.
fn plan(one_in: u64, items: u64) -> RatePlan<'static> {
    let fpr = 1.0 / one_in as f64;
    let non_members = 4_000 * one_in / SEEDS.len() as u64;
    let rate = GcsShape::for_capacity(CAPACITY, fpr).unwrap().expected_fpr(CAPACITY);
    assert!((0.99..=0.998).contains(&(rate / fpr)), "{rate} for {fpr}");
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.01);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

fn full_sets_keep_their_rate<const ONE_IN: u64>() {
    let report = keeps_its_rate(Rebuilt::<Set<ONE_IN>>::new, &plan(ONE_IN, CAPACITY)).unwrap();
    assert!(report.observed_fpr() <= 1.05 / ONE_IN as f64, "{ONE_IN}: {}", report.observed_fpr());
}

#[test]
fn full_sets_keep_their_rate_at_powers_of_two_and_between() {
    full_sets_keep_their_rate::<2>();
    full_sets_keep_their_rate::<10>();
    full_sets_keep_their_rate::<100>();
    full_sets_keep_their_rate::<177>();
    full_sets_keep_their_rate::<256>();
    full_sets_keep_their_rate::<1000>();
}

/// The same sets in a shape meant for a tenth fewer items.
struct TooFull(Gcs);

impl Built for TooFull {
    fn build(items: &[Vec<u8>], seed: u64) -> Result<Self, String> {
        let shape = GcsShape::for_capacity(items.len() as u64 * 10 / 11, 0.01).unwrap();
        Gcs::with_shape(items, shape, seed).map(Self).map_err(|error| error.to_string())
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        items.iter().map(|item| self.0.may_contain(item)).collect()
    }

    fn round_trip(&self) -> Result<Self, String> {
        Gcs::decode(&self.0.encode()).map(Self).map_err(|error| error.to_string())
    }
}

#[test]
fn a_tenth_too_full_and_other_bad_filters_are_detected() {
    let plan = plan(100, CAPACITY);
    let failure = keeps_its_rate(Rebuilt::<TooFull>::new, &plan).unwrap_err();
    assert!(matches!(failure, Failure::RateOff { .. }), "{failure}");
    assert!(keeps_its_rate(|_| AlwaysNo, &plan).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan).is_err());
}

#[test]
fn the_set_knows_its_rate_exactly() {
    for (seed, fpr) in [(1, 0.3), (2, 0.04), (3, 0.01)] {
        let set = Gcs::build((0..CAPACITY).map(member), fpr, seed).unwrap();
        let values = set.values().count() as f64;
        assert_eq!(set.expected_fpr(), values / set.shape().range() as f64);
        assert!((set.expected_fpr() / set.shape().expected_fpr(CAPACITY) - 1.0).abs() < 0.02);
        let wrong = (0..400_000).filter(|&i| set.may_contain(&non_member_u64(seed, i))).count() as u64;
        assert!(band_with_model_error(400_000, set.expected_fpr(), 1e-6, 0.0).contains(&wrong), "{wrong}");
    }
}

#[test]
fn sizes_are_as_promised() {
    for (items, fpr) in [(100_000, 0.01), (100_000, 1.0 / 256.0), (300_000, 0.5), (100_000, 1e-9), (7, 0.01)]
    {
        let set = Gcs::build(0..items, fpr, 1).unwrap();
        let promised = set.shape().memory_bytes() as f64;
        let got = set.memory_bytes() as f64;
        assert!((got - promised).abs() <= 128.0 + promised * 0.005, "{items} at {fpr}: {got} for {promised}");
        assert_eq!(set.encode().len() as u64, HEADER_BYTES as u64 + set.memory_bytes());
    }
    let set = Gcs::build(0..1_000_000_u64, 1.0 / 256.0, 1).unwrap();
    assert!(set.bits_per_item() < 9.8, "{} bits per item", set.bits_per_item());
}

#[test]
fn empty_tiny_and_odd_sets_contain_their_items() {
    let none = Gcs::build(Vec::<u64>::new(), 0.01, 3).unwrap();
    assert_eq!((none.inserted(), none.expected_fpr(), none.values().count()), (0, 0.0, 0));
    assert!((0..10_000).all(|i| !none.may_contain(&non_member(i))));
    assert!(!Gcs::decode(&none.encode()).unwrap().may_contain("a"));
    for items in [1, 2, 3, 79, 80, 81, 159, 160, 2_239, 2_240, 2_241, 2_320, 5_000] {
        for fpr in [0.9, 0.5, 0.03, 1e-3, 1e-7, 1e-15] {
            let built = Gcs::build(0..items, fpr, items);
            if items as f64 / fpr > (1_u64 << 62) as f64 {
                assert!(matches!(built, Err(BuildError::RateTooLow { .. })), "{items} at {fpr}");
                continue;
            }
            let set = built.unwrap();
            assert_eq!(set.inserted(), items);
            assert!((0..items).all(|item| set.may_contain(&item)), "{items} at {fpr}");
            let back = Gcs::decode(&set.encode()).unwrap();
            assert!((0..items).all(|item| back.may_contain(&item)), "{items} at {fpr}");
            assert!(set.values().is_sorted_by(|a, b| a < b));
            assert!(set.values().all(|value| value < set.shape().range()));
            let wrong = (items..items + 1_000).filter(|item| set.may_contain(item)).count() as f64;
            let limit = 1_000.0 * fpr + 6.0 * (1_000.0 * fpr).sqrt();
            assert!(wrong <= limit.max(1.0), "{items} at {fpr}: {wrong} wrong");
        }
    }
}

#[test]
fn duplicates_count_once() {
    let once = Gcs::build(0..500_u64, 0.01, 1).unwrap();
    let thrice = Gcs::build((0..1_500_u64).map(|i| i * 7 % 500), 0.01, 1).unwrap();
    assert_eq!(once.encode(), thrice.encode());
}

#[test]
fn hashes_items_and_sorted_streams_make_the_same_set() {
    let items: Vec<Vec<u8>> = (0..3_000).map(member).collect();
    let by_item = Gcs::build(&items, 0.004, 5).unwrap();
    let mut hashes: Vec<ItemHash> = items.iter().map(|item| by_item.hash(item)).collect();
    let by_hash = Gcs::build_hashes(hashes.iter().copied(), 0.004, 5).unwrap();
    hashes.sort_unstable();
    let shape = *by_item.shape();
    let twice = hashes.iter().flat_map(|hash| [*hash, *hash]);
    let by_stream = Gcs::from_sorted_hashes(twice, shape, 5).unwrap();
    let in_shape = Gcs::with_shape(&items, shape, 5).unwrap();
    for other in [&by_hash, &by_stream, &in_shape] {
        assert_eq!(other.encode(), by_item.encode());
    }
    for item in (0..3_000).flat_map(|i| [member(i), non_member(i)]) {
        assert_eq!(by_item.may_contain(&item), by_item.may_contain_hash(by_item.hash(&item)));
    }
}

#[test]
fn unsorted_hashes_are_rejected_and_change_nothing() {
    let hash = |low: u128| ItemHash::from(WellMixed(low << 20));
    let shape = GcsShape::for_capacity(10, 0.01).unwrap();
    let mut builder = GcsBuilder::new(shape, 1).unwrap();
    assert_eq!(builder.push(hash(1 << 40)), Ok(true));
    assert_eq!(builder.push(hash(1 << 40)), Ok(false));
    assert_eq!(builder.push(hash(1 << 42)), Ok(true));
    assert_eq!(builder.push(hash(1 << 41)), Err(BuildError::Unsorted { index: 2 }));
    assert_eq!(builder.push(hash(1 << 43)), Ok(true));
    let sorted = [40, 42, 43].map(|bit| hash(1 << bit));
    assert_eq!(
        builder.finish().unwrap().encode(),
        Gcs::from_sorted_hashes(sorted, shape, 1).unwrap().encode()
    );
    let message = Gcs::from_sorted_hashes([hash(2), hash(1)], shape, 1).unwrap_err().to_string();
    assert_eq!(
        message,
        "hashes must be in ascending order: hash 1 (from 0) is smaller than the one before it"
    );
}

#[test]
fn crowded_hashes_are_an_error_or_all_found() {
    let mut refused = 0;
    for spread in [1_u128 << 32, 1 << 44, 1 << 54, 1 << 63] {
        let step = spread / 60_000;
        let hashes = (0..60_000).map(|i| ItemHash::from(WellMixed(i * step)));
        let shape = GcsShape::for_capacity(60_000, 1e-6).unwrap();
        match Gcs::from_sorted_hashes(hashes.clone(), shape, 1) {
            Ok(set) => assert!(hashes.clone().all(|hash| set.may_contain_hash(hash)), "{spread}"),
            Err(error) => {
                assert!(matches!(error, BuildError::Unsolvable { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert!((1..4).contains(&refused), "{refused} of 4");
}

#[test]
fn a_failed_builder_stays_failed() {
    let mut builder = GcsBuilder::new(GcsShape::for_capacity(60_000, 1e-6).unwrap(), 1).unwrap();
    let crowded = (0..60_000).map(|i| ItemHash::from(WellMixed(i << 35)));
    crowded.for_each(|hash| assert!(builder.push(hash).is_ok()));
    let far = ItemHash::from(WellMixed(u128::from(u64::MAX)));
    for _ in 0..2 {
        assert!(matches!(builder.push(far), Err(BuildError::Unsolvable { .. })));
    }
    assert!(matches!(builder.finish(), Err(BuildError::Unsolvable { .. })));
}

#[test]
fn batches_answer_like_single_lookups_in_any_order() {
    let mut rng = Rng::new(4);
    for (items, fpr) in [(1, 0.1), (500, 0.1), (20_000, 0.02)] {
        let set = Gcs::build(0..items, fpr, 9).unwrap();
        for asked in [0_u64, 1, 63, 64, 65, 129, 4_000, 40_000] {
            let mut hashes: Vec<ItemHash> = (0..asked).map(|_| set.hash(&rng.below(2 * items))).collect();
            let mut answers = Answers::new();
            for order in 0..3 {
                match order {
                    0 => {}
                    1 => hashes.sort_unstable(),
                    _ => hashes.reverse(),
                }
                set.may_contain_hash_batch(&hashes, &mut answers);
                assert_eq!(answers.len(), hashes.len());
                for (hash, answer) in hashes.iter().zip(answers.iter()) {
                    assert_eq!(
                        answer,
                        set.may_contain_hash(*hash),
                        "{items} items, {asked} queried, order {order}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_union_equals_a_set_built_from_all_items() {
    let shape = GcsShape::for_capacity(3_000, 0.01).unwrap();
    let build = |items: std::ops::Range<u64>| Gcs::with_shape(items, shape, 5).unwrap();
    let (mut left, right, both) = (build(0..1_000), build(1_000..3_000), build(0..3_000));
    left.union(&right).unwrap();
    assert_eq!(left.encode(), both.encode());
    let mut with_nothing = build(0..0);
    with_nothing.union(&both).unwrap();
    assert_eq!(with_nothing.encode(), both.encode());
    // Items of both sets are stored once; only the count of insertions may differ.
    let mut overlapping = build(0..2_000);
    overlapping.union(&right).unwrap();
    assert!(overlapping.values().eq(both.values()));
    assert_eq!(overlapping.inserted(), 4_000);
    assert!(Gcs::decode(&overlapping.encode()).is_ok());

    let other_shape = Gcs::build(0..2_000_u64, 0.01, 5).unwrap();
    let other_hash = Gcs::with_shape(0..10_u64, shape, 6).unwrap();
    assert!(matches!(left.union(&other_shape), Err(MergeError::ShapeDiffers { .. })));
    assert!(matches!(left.union(&other_hash), Err(MergeError::HashDiffers { .. })));
    assert_eq!(left.encode(), both.encode());
}

#[test]
fn streams_need_no_more_memory_than_the_set() {
    const ITEMS: u64 = 200_000;
    // Ascending hashes from nowhere: evenly spaced with some noise.
    let mut rng = Rng::new(8);
    let step = u64::MAX / ITEMS;
    let hashes = (0..ITEMS).map(move |i| ItemHash::from(WellMixed(u128::from(i * step + rng.below(step)))));
    let shape = GcsShape::for_capacity(ITEMS, 0.001).unwrap();
    let (set, usage) = AllocMeter::measure(|| Gcs::from_sorted_hashes(hashes, shape, 1).unwrap());
    assert_eq!(set.inserted(), ITEMS);
    assert!(usage.peak_bytes <= set.memory_bytes() * 21 / 20 + 4_096, "{usage:?} for {}", set.memory_bytes());
}

/// Puts right checksums into `bytes`, as an attacker would.
fn seal(bytes: &mut [u8]) {
    let payload = xxh3_64(&bytes[HEADER_BYTES..]);
    bytes[24..32].copy_from_slice(&payload.to_le_bytes());
    let header = xxh3_64(&bytes[..HEADER_BYTES - 8]);
    bytes[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
}

#[test]
fn wrong_fields_are_rejected_and_named() {
    let set = Gcs::build(0..100_u64, 0.01, 7).unwrap();
    let bytes = set.encode();
    let forge = |at: usize, field: &[u8]| {
        let mut forged = bytes.clone();
        forged[at..at + field.len()].copy_from_slice(field);
        seal(&mut forged);
        Gcs::decode(&forged).unwrap_err()
    };
    let parameter = |index: usize, value: u64| forge(72 + 8 * index, &value.to_le_bytes());
    assert_eq!(forge(12, &[2, 0]), DecodeError::UnknownPlacement { got: 2 });
    assert!(matches!(forge(10, &[2, 0]), DecodeError::WrongKind { .. }));
    assert!(matches!(forge(14, &[0, 0]), DecodeError::UnknownHashScheme { .. }));
    assert!(matches!(forge(48, &[0; 8]), DecodeError::Unbuildable(_)));
    assert!(matches!(forge(56, &[0; 8]), DecodeError::BadField { field: "values", .. }));
    assert!(matches!(forge(64, &f64::NAN.to_le_bytes()), DecodeError::Unbuildable(_)));
    assert!(matches!(parameter(0, 0), DecodeError::Unbuildable(BuildError::BucketCountOutOfRange { .. })));
    assert!(matches!(parameter(0, 1 << 30), DecodeError::BadField { field: "payload length", .. }));
    assert!(matches!(parameter(1, 0), DecodeError::Unbuildable(BuildError::ValuesOutOfRange { .. })));
    assert!(matches!(parameter(1, 1 << 63), DecodeError::Unbuildable(BuildError::ValuesOutOfRange { .. })));
    assert!(matches!(parameter(2, 57), DecodeError::Unbuildable(_)));
    assert!(matches!(parameter(2, 1 << 40), DecodeError::BadField { field: "low bits", .. }));
    assert!(matches!(parameter(3, 1 << 20), DecodeError::BadField { field: "payload length", .. }));
    assert!(matches!(parameter(3, u64::MAX), DecodeError::BadField { field: "bits of the stream", .. }));
    assert!(matches!(parameter(4, 101), DecodeError::BadField { field: "values", .. }));
    assert!(matches!(parameter(4, 0), DecodeError::BadField { field: "values", .. }));
    assert!(matches!(parameter(5, 1), DecodeError::BadField { field: "unused parameter", .. }));
    assert!(matches!(forge(bytes.len() - 1, &[1]), DecodeError::StrayBit { .. }));
    // The index: one bucket; the other 27 must be empty.
    assert!(matches!(forge(HEADER_BYTES + 10, &[1]), DecodeError::StrayBit { .. }));
    assert!(matches!(
        forge(HEADER_BYTES + 8, &[99]),
        DecodeError::BadField { field: "bits of the stream", .. }
    ));
}

/// Uses a set in every way; it only has to return.
fn exercise(set: &mut Gcs) {
    let range = set.shape().range();
    assert!(set.values().is_sorted_by(|a, b| a < b));
    assert!(set.values().all(|value| value < range));
    let mut answers = Answers::new();
    set.may_contain_batch(&["a", "b", "a"], &mut answers);
    for i in 0..50_u64 {
        let _ = set.may_contain(&i);
    }
    let _ = (set.expected_fpr(), set.bits_per_item(), set.memory_bytes(), set.shape().memory_bytes());
    let copy = set.try_clone().unwrap();
    let _ = set.union(&copy);
    let _ = Gcs::decode(&set.encode());
}

#[test]
fn forged_payloads_with_correct_checksums_are_harmless() {
    for (items, fpr) in [(3_000, 0.01), (100, 1e-9), (500, 0.4)] {
        let bytes = Gcs::build(0..items, fpr, 7).unwrap().encode();
        let mut decoded = 0;
        Corruptor::new(&bytes).sealed_by(seal).flips(3, 3_000, |damaged, _| {
            if let Ok(mut set) = Gcs::decode(damaged) {
                exercise(&mut set);
                decoded += 1;
            }
        });
        assert!(decoded > 100, "{decoded} forgeries decoded: too few to prove anything");
        // Whole stretches of ones, of zeroes and of noise over everything but the ends the decoder looks at.
        let mut rng = Rng::new(items);
        for round in 0..200 {
            let mut forged = bytes.clone();
            let payload = &mut forged[HEADER_BYTES..];
            let last = payload.len() - 1;
            let (from, to) = (rng.below(last as u64) as usize, rng.below(last as u64) as usize);
            for byte in &mut payload[from.min(to)..from.max(to)] {
                *byte = [0xff, 0, rng.next_u64() as u8][round % 3];
            }
            seal(&mut forged);
            if let Ok(mut set) = Gcs::decode(&forged) {
                exercise(&mut set);
            }
        }
    }
}

#[test]
fn keyed_sets_need_their_key() {
    let scheme = HashScheme::keyed_random().unwrap();
    let set = Gcs::build((0..200).map(member), 0.001, scheme).unwrap();
    let back = Gcs::decode(&set.encode()).unwrap();
    assert_eq!(back.scheme(), set.scheme());
    assert!((0..200).all(|i| back.may_contain(&member(i))));
}
