//! The promises of the quotient filter.

mod support;

use std::collections::BTreeMap;

use mayhap::{
    Answers, BuildError, CountingBloom, DecodeError, HashScheme, InsertError, ItemHash, MergeError, Quotient,
    QuotientShape, WellMixed,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

fn counted(capacity: u64, fpr: f64, seed: u64) -> Tested {
    Tested::new(Quotient::for_capacity(capacity, fpr, seed).unwrap())
}

#[test]
fn never_forgets_remaining_members() {
    let script = Script::new(operations(), 2_000);
    let report = never_forgets(|seed| counted(2_000, 0.01, seed), &script).unwrap();
    assert_eq!(report.missing(), []);
    assert!(report.mayhap_to_removed > 0, "a removed item is a false positive as often as any non-member");
}

/// Two bits of remainder: every fifth non-member shares a fingerprint with a member, and so does every fifth member.
#[test]
fn never_forgets_where_most_fingerprints_are_shared() {
    let make = |seed| counted(600, 0.3, seed);
    let script = Script { max_copies: 40, mayhap_limit: 0.9, ..Script::new(operations() / 4, 600) };
    assert_eq!(never_forgets(make, &script).unwrap().missing(), []);
}

#[test]
fn the_suites_have_teeth() {
    assert!(never_forgets(SetTwin::new, &Script::new(200_000, 2_000)).is_err(), "set semantics lose items");
    assert!(keeps_its_rate(|_| AlwaysNo, &plan(0.01, CAPACITY)).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan(0.01, CAPACITY)).is_err());
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate; ± 2 % is the stated error of the model.
fn plan(fpr: f64, items: u64) -> RatePlan<'static> {
    let non_members = (4_000.0 / fpr) as u64 / SEEDS.len() as u64;
    let rate = QuotientShape::for_capacity(CAPACITY, fpr).unwrap().expected_fpr(CAPACITY);
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn full_filters_keep_their_rate_and_a_tenth_too_empty_or_a_bit_short_is_detected() {
    for fpr in [0.3, 0.1, 0.03, 0.01, 0.001] {
        let make = |seed| counted(CAPACITY, fpr, seed);
        let report = keeps_its_rate(make, &plan(fpr, CAPACITY)).unwrap();
        assert!(report.observed_fpr() <= fpr * 1.05, "{fpr}: {}", report.observed_fpr());
        // A filter a tenth too full is rejected; nine tenths full is as wrong for the model, and a bit less is twice the rate.
        let failure = keeps_its_rate(make, &plan(fpr, CAPACITY * 4 / 5)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{fpr}: {failure}");
        let shape = QuotientShape::for_capacity(CAPACITY, fpr).unwrap();
        if shape.remainder_bits() > 2 {
            let short = QuotientShape::exactly(shape.homes(), shape.remainder_bits() - 1, CAPACITY).unwrap();
            let make = |seed| Tested::new(Quotient::with_shape(short, seed).unwrap());
            let failure = keeps_its_rate(make, &plan(fpr, CAPACITY)).unwrap_err();
            assert!(matches!(failure, Failure::RateOff { .. }), "{fpr}: {failure}");
        }
    }
}

#[test]
fn the_filter_knows_its_rate_whatever_was_inserted_and_removed() {
    let mut filter = Quotient::for_capacity(CAPACITY, 0.01, 7).unwrap();
    assert_eq!(filter.expected_fpr(), 0.0);
    let at_capacity = filter.shape().expected_fpr(CAPACITY);
    // Copies of an item cost slots, so half as many items with two copies each.
    for _ in 0..2 {
        (0..CAPACITY / 2).for_each(|i| {
            filter.insert(&member_u64(7, i)).unwrap();
        });
        assert!((filter.expected_fpr() / at_capacity - 0.5).abs() < 0.01, "{}", filter.expected_fpr());
    }
    (0..CAPACITY / 2).for_each(|i| assert!(filter.remove(&member_u64(7, i))));
    (CAPACITY / 2..CAPACITY).for_each(|i| {
        filter.insert(&member_u64(7, i)).unwrap();
    });
    assert!((filter.expected_fpr() / at_capacity - 1.0).abs() < 0.01, "{}", filter.expected_fpr());
    assert!((filter.estimated_items() as f64 / CAPACITY as f64 - 1.0).abs() < 0.002);
    assert!((0.94..=0.95).contains(&filter.fill()), "{}", filter.fill());
    let wrong = (0..400_000).filter(|&i| filter.may_contain(&non_member_u64(7, i))).count() as u64;
    assert!(band_with_model_error(400_000, filter.expected_fpr(), 1e-6, 0.0).contains(&wrong), "{wrong}");
    (0..CAPACITY).for_each(|i| assert!(filter.remove(&member_u64(7, i))));
    assert_eq!((filter.inserted(), filter.distinct(), filter.fill()), (0, 0, 0.0));
    assert_eq!(filter.encode(), Quotient::for_capacity(CAPACITY, 0.01, 7).unwrap().encode(), "as new");
}

/// The same fingerprints, each stored once: a quotient filter without counts.
struct SetTwin(Quotient);

impl SetTwin {
    fn new(seed: u64) -> Self {
        Self(Quotient::for_capacity(2_000, 0.01, seed).unwrap())
    }
}

impl Subject for SetTwin {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        if self.0.may_contain(item) { Inserted::Mayhap } else { self.0.insert(item).into() }
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        Some(self.0.remove(item))
    }
}

/// Half of 100 000 items go in and out again; those of the other half that are forgotten then.
fn lost_to_removals(insert: impl Fn(&mut Quotient, u64)) -> usize {
    const ITEMS: u64 = 100_000;
    let mut filter = Quotient::for_capacity(ITEMS, 0.01, 3).unwrap();
    (0..ITEMS).for_each(|i| insert(&mut filter, i));
    (0..ITEMS / 2).for_each(|i| {
        filter.remove(&member_u64(0, i));
    });
    (ITEMS / 2..ITEMS).filter(|&i| !filter.may_contain(&member_u64(0, i))).count()
}

#[test]
fn removing_one_of_two_that_share_a_fingerprint_loses_no_item() {
    let counted = lost_to_removals(|filter, i| {
        filter.insert(&member_u64(0, i)).unwrap();
    });
    assert_eq!(counted, 0);
    let as_a_set = lost_to_removals(|filter, i| {
        if !filter.may_contain(&member_u64(0, i)) {
            filter.insert(&member_u64(0, i)).unwrap();
        }
    });
    assert!(
        as_a_set > 100,
        "a filter that keeps shared fingerprints once loses hundreds, this one {as_a_set}"
    );
}

#[test]
fn a_million_copies_take_a_handful_of_slots() {
    for (bits, most) in [(2, 70_000), (3, 70_000), (8, 1_000_000), (58, 70_000)] {
        let shape = QuotientShape::exactly(100, bits, 50).unwrap();
        let mut filter = Quotient::with_shape(shape, 0).unwrap();
        filter.insert("another").unwrap();
        for copies in 1..=most {
            assert_eq!(filter.insert("item").unwrap(), copies == 1);
            if copies < 1_000 || copies % 1_000 == 0 {
                assert_eq!(filter.count("item"), copies);
            }
        }
        let slots = (filter.fill() * 100.0).round() as u64;
        assert!(slots <= 4 + 20_u64.div_ceil(u64::from(bits) - 1), "{slots} slots with {bits} bits");
        let mut decoded = Quotient::decode(&filter.encode()).unwrap();
        assert_eq!((decoded.count("item"), decoded.inserted()), (most, most + 1));
        decoded.union(&filter).unwrap();
        assert_eq!((decoded.count("item"), decoded.count("another")), (2 * most, 2));
        for left in (0..most).rev() {
            assert!(filter.remove("item"));
            if left < 1_000 || left % 1_000 == 0 {
                assert_eq!((filter.count("item"), filter.may_contain("item")), (left, left > 0));
            }
        }
        assert!(!filter.remove("item") && filter.remove("another"));
        assert_eq!((filter.inserted(), filter.fill()), (0, 0.0));
    }
}

/// An exact multiset of the fingerprints that hashes chosen by hand have.
#[derive(Clone, Default)]
struct Model(BTreeMap<(u64, u64), u64>);

/// A hash with a known fingerprint in a table of `homes` homes: `fraction` of `of` equal parts.
fn hash_at(fraction: u64, of: u64) -> ItemHash {
    let exact = (u128::from(fraction) << 64) / u128::from(of) + 1;
    // `low` comes first: the upper half of the fraction.
    ItemHash::from(WellMixed(exact & u128::from(u64::MAX)))
}

/// Many operations on few fingerprints, so that groups of every length are adjacent, through every way a table is rewritten.
#[test]
fn storms_on_colliding_fingerprints_agree_with_an_exact_multiset() {
    let storms = (operations() / 5_000).max(10);
    for (number, bits) in (0..storms).zip([2_u32, 3, 4, 5, 8].into_iter().cycle()) {
        let mut rng = Rng::new(number);
        let homes = 3 + rng.below(150);
        let shape = QuotientShape::exactly(homes, bits, homes / 2).unwrap();
        let mut filter = Quotient::with_shape(shape, 1).unwrap();
        let mut other = Quotient::with_shape(shape, 1).unwrap();
        let (mut model, mut other_model) = (Model::default(), Model::default());
        // Few homes of many, some of them neighbours, and the last.
        let favourites: Vec<u64> =
            (0..1 + rng.below(20)).map(|_| rng.below(homes)).chain([homes - 1]).collect();
        let (mut homes, mut bits, mut doublings, mut refusals) = (homes, bits, 0, 0_u64);
        for step in 0..1_000 {
            let all = homes << bits;
            let home = favourites[rng.below(favourites.len() as u64) as usize] << doublings;
            let remainder = if rng.below(3) == 0 { rng.below(3) } else { rng.below(1 << bits) };
            let hash = hash_at((home << bits) + remainder, all);
            let key = (home, remainder);
            match rng.below(20) {
                0..=8 => {
                    let target = rng.below(4);
                    let (filter, model) =
                        if target == 0 { (&mut other, &mut other_model) } else { (&mut filter, &mut model) };
                    for _ in 0..1 + rng.below(2) * rng.below(30) {
                        let before = (target > 0 && step % 16 == 0).then(|| filter.encode());
                        match filter.insert_hash(hash) {
                            Ok(new) => {
                                assert_eq!(new, !model.0.contains_key(&key));
                                *model.0.entry(key).or_default() += 1;
                            }
                            Err(error) => {
                                assert!(matches!(error, InsertError::Full { .. }), "{error}");
                                assert!(before.is_none_or(|before| before == filter.encode()));
                                refusals += 1;
                            }
                        }
                    }
                }
                9..=16 => {
                    for _ in 0..1 + rng.below(2) * rng.below(30) {
                        assert_eq!(filter.remove_hash(hash), model.0.contains_key(&key));
                        if let Some(copies) = model.0.get_mut(&key) {
                            *copies -= 1;
                            if *copies == 0 {
                                model.0.remove(&key);
                            }
                        }
                    }
                }
                17 => filter = Quotient::decode(&filter.encode()).unwrap(),
                18 if rng.below(4) == 0 => match filter.union(&other) {
                    Ok(()) => {
                        for (key, copies) in &other_model.0 {
                            *model.0.entry(*key).or_default() += copies;
                        }
                    }
                    Err(error) => assert!(matches!(error, MergeError::Full { .. }), "{error}"),
                },
                19 if bits > 2 && rng.below(40) == 0 => {
                    for (filter, model) in [(&mut filter, &mut model), (&mut other, &mut other_model)] {
                        filter.double().unwrap();
                        let top = bits - 1;
                        let moved = |((home, remainder), copies): (&(u64, u64), &u64)| {
                            ((home << 1 | remainder >> top, remainder & ((1 << top) - 1)), *copies)
                        };
                        model.0 = model.0.iter().map(moved).collect();
                    }
                    (homes, bits, doublings) = (homes * 2, bits - 1, doublings + 1);
                    // `key` was a place in the smaller table.
                    continue;
                }
                _ => {}
            }
            assert_eq!(
                filter.count_hash(hash),
                model.0.get(&key).copied().unwrap_or(0),
                "storm {number}, step {step}, {homes} {bits} {key:?}"
            );
            if step % 20 == 0 {
                let held: Vec<_> =
                    filter.fingerprints().map(|one| ((one.home, one.remainder), one.count)).collect();
                assert_eq!(
                    held,
                    model.0.clone().into_iter().collect::<Vec<_>>(),
                    "storm {number}, step {step}"
                );
                assert_eq!(filter.inserted(), model.0.values().sum::<u64>());
                assert_eq!(filter.distinct(), model.0.len() as u64);
                for &(home, remainder) in model.0.keys() {
                    assert!(filter.may_contain_hash(hash_at((home << bits) + remainder, homes << bits)));
                }
            }
        }
        assert!(number != 0 || refusals > 0, "the run must fill the table at least once");
        for ((home, remainder), copies) in std::mem::take(&mut model.0) {
            let hash = hash_at((home << bits) + remainder, homes << bits);
            (0..copies).for_each(|_| assert!(filter.remove_hash(hash)));
        }
        assert_eq!((filter.inserted(), filter.distinct(), filter.fill()), (0, 0, 0.0));
    }
}

#[test]
fn rejections_change_nothing_and_lose_no_item() {
    for (capacity, fpr) in [(1, 0.01), (7, 0.2), (100, 0.01), (5_000, 0.001)] {
        let mut filter = Quotient::for_capacity(capacity, fpr, 1).unwrap();
        let mut held = Vec::new();
        let mut refused = 0;
        for i in 0..4 * capacity + 20 {
            let before = (i % 16 == 0).then(|| filter.encode());
            match filter.insert(&member(i)) {
                Ok(_) => held.push(i),
                Err(error) => {
                    assert_eq!(error, InsertError::Full { inserted: held.len() as u64, capacity });
                    assert!(before.is_none_or(|before| before == filter.encode()));
                    refused += 1;
                }
            }
        }
        assert!(held.len() as u64 >= capacity && refused > capacity, "{} of {capacity}", held.len());
        assert!((0..capacity).all(|i| held.contains(&i)), "this many items must fit");
        assert!(held.iter().all(|&i| filter.may_contain(&member(i))));
        assert!(filter.fill() <= 0.95);
        // Room again, once something is out.
        assert!(filter.remove(&member(held[0])));
        assert!(filter.insert(&member(held[0])).is_ok());
    }
}

#[test]
fn a_batch_that_does_not_fit_is_inserted_up_to_the_first_rejection() {
    // More than a thousand: such batches are sorted first.
    for items in [500_u64, 5_000] {
        let batch: Vec<u64> = (0..items).map(|i| member_u64(0, i)).collect();
        let mut filter = Quotient::for_capacity(items * 2 / 3, 0.01, 1).unwrap();
        let mut one_by_one = filter.try_clone().unwrap();
        let went_in = batch.iter().take_while(|item| one_by_one.insert(*item).is_ok()).count() as u64;
        assert!(went_in >= items * 2 / 3 && went_in < items);
        assert!(
            matches!(filter.insert_batch(&batch), Err(InsertError::Full { inserted, .. }) if inserted == went_in)
        );
        assert_eq!(filter.encode(), one_by_one.encode());
    }
}

#[test]
fn batches_of_any_size_come_to_the_same_bytes_as_one_by_one() {
    let mut one_by_one = Quotient::for_capacity(60_000, 0.01, 1).unwrap();
    let mut batched = one_by_one.try_clone().unwrap();
    let mut first = 0;
    for size in [0_u64, 1, 31, 32, 33, 999, 1_000, 20_000, 3_000, 20_000] {
        // Every tenth twice.
        let batch: Vec<u64> =
            (first..first + size).map(|i| member_u64(0, if i % 10 == 0 { i / 2 } else { i })).collect();
        first += size;
        let new = batch.iter().filter(|item| one_by_one.insert(*item).unwrap()).count() as u64;
        assert_eq!(batched.insert_batch(&batch), Ok(new));
        assert_eq!(batched.encode(), one_by_one.encode(), "{size}");
    }
    let items: Vec<u64> = (0..70_000).map(|i| member_u64(0, i)).collect();
    let mut answers = Answers::new();
    batched.may_contain_batch(&items, &mut answers);
    assert!(answers.iter().zip(&items).all(|(answer, item)| answer == batched.may_contain(item)));
}

#[test]
fn hashes_and_items_are_the_same() {
    let mut by_item = Quotient::for_capacity(400, 0.01, 5).unwrap();
    let mut by_hash = by_item.try_clone().unwrap();
    let items: Vec<Vec<u8>> = (0..300).map(member).collect();
    let hashes: Vec<_> = items.iter().map(|item| by_hash.hash(item)).collect();
    assert_eq!(by_item.insert_batch(&items), by_hash.insert_hash_batch(&hashes));
    for (item, hash) in items[..100].iter().zip(&hashes) {
        assert_eq!(by_item.insert(item), by_hash.insert_hash(*hash));
        assert_eq!(by_item.count(item), by_hash.count_hash(*hash));
        assert_eq!(by_item.remove(item), by_hash.remove_hash(*hash));
        assert_eq!(by_item.may_contain(item), by_hash.may_contain_hash(*hash));
    }
    assert_eq!(by_item.encode(), by_hash.encode());
    let (mut of_items, mut of_hashes) = (Answers::new(), Answers::new());
    by_item.may_contain_batch(&items, &mut of_items);
    by_hash.may_contain_hash_batch(&hashes, &mut of_hashes);
    assert_eq!(of_items, of_hashes);
    assert_eq!(of_items.maybe_count(), 300);
}

#[test]
fn a_union_equals_a_filter_with_all_items_inserted() {
    for (capacity, fpr) in [(10, 0.01), (1_000, 0.2), (2_000, 0.001)] {
        let empty = Quotient::for_capacity(capacity, fpr, 5).unwrap();
        let [mut left, mut right, mut both] = std::array::from_fn(|_| empty.try_clone().unwrap());
        for i in 0..capacity {
            // Some in one, some in both, some often.
            let item = member(i * i % (capacity / 2 + 1));
            if i % 3 == 0 { left.insert(&item) } else { right.insert(&item) }.unwrap();
            both.insert(&item).unwrap();
        }
        left.union(&right).unwrap();
        assert_eq!(left.encode(), both.encode());
        left.union(&empty).unwrap();
        assert_eq!(left.encode(), both.encode());
    }
    let mut full = Quotient::for_capacity(400, 0.01, 5).unwrap();
    let mut other = Quotient::for_capacity(400, 0.01, 5).unwrap();
    for i in 0..400 {
        full.insert(&member(i)).unwrap();
        other.insert(&non_member(i)).unwrap();
    }
    let before = full.encode();
    let error = full.union(&other).unwrap_err();
    assert!(matches!(error, MergeError::Full { inserted, capacity } if inserted > capacity), "{error}");
    let other_shape = Quotient::for_capacity(500, 0.01, 5).unwrap();
    let other_hash = Quotient::for_capacity(400, 0.01, 6).unwrap();
    assert!(matches!(full.union(&other_shape), Err(MergeError::ShapeDiffers { .. })));
    assert!(matches!(full.union(&other_hash), Err(MergeError::HashDiffers { .. })));
    assert_eq!(full.encode(), before);
    // Doubled, both fit in one.
    full.double().unwrap();
    other.double().unwrap();
    full.union(&other).unwrap();
    assert!((0..400).all(|i| full.may_contain(&member(i)) && full.may_contain(&non_member(i))));
    assert_eq!(full.inserted(), 800);
}

#[test]
fn a_doubled_filter_equals_a_larger_one() {
    for capacity in [1, 59, 777, 20_000] {
        let shape = QuotientShape::for_capacity(capacity, 0.001).unwrap();
        let mut filter = Quotient::with_shape(shape, 9).unwrap();
        (0..capacity).for_each(|i| {
            filter.insert(&member(i / 2)).unwrap();
        });
        for doublings in 1..=3 {
            filter.double().unwrap();
            let larger = QuotientShape::exactly(
                shape.homes() << doublings,
                shape.remainder_bits() - doublings,
                capacity << doublings,
            )
            .unwrap();
            let mut direct = Quotient::with_shape(larger, 9).unwrap();
            (0..capacity).for_each(|i| {
                direct.insert(&member(i / 2)).unwrap();
            });
            assert_eq!(filter.encode()[HEADER_BYTES..], direct.encode()[HEADER_BYTES..]);
            assert_eq!((filter.capacity(), filter.distinct()), (capacity << doublings, direct.distinct()));
            let promise = direct.target_fpr().max(0.001);
            assert!((filter.target_fpr() / promise - 1.0).abs() < 1e-9, "an honest promise");
        }
    }
}

#[test]
fn spare_bits_keep_the_rate_through_their_doublings_and_no_longer() {
    let shape = QuotientShape::for_capacity_with_doublings(2_000, 0.01, 3).unwrap();
    let plain = QuotientShape::for_capacity(2_000, 0.01).unwrap();
    assert_eq!((shape.homes(), shape.remainder_bits()), (plain.homes(), plain.remainder_bits() + 3));
    let mut filter = Quotient::with_shape(shape, 2).unwrap();
    let mut inserted = 0;
    for _ in 0..=3 {
        while inserted < filter.capacity() {
            filter.insert(&member_u64(2, inserted)).unwrap();
            inserted += 1;
        }
        assert_eq!(filter.target_fpr(), 0.01);
        assert!(
            filter.expected_fpr() <= 0.01 && (0..inserted).all(|i| filter.may_contain(&member_u64(2, i)))
        );
        filter.double().unwrap();
    }
    assert!(filter.target_fpr() > 0.01, "the spare bits are used up");
    let wrong = (0..400_000).filter(|&i| filter.may_contain(&non_member_u64(2, i))).count() as u64;
    assert!(band_with_model_error(400_000, filter.expected_fpr(), 1e-6, 0.0).contains(&wrong), "{wrong}");
    // Down to two bits, and no further.
    while filter.shape().remainder_bits() > 2 {
        filter.double().unwrap();
    }
    let before = filter.encode();
    let error = filter.double().unwrap_err();
    assert_eq!(error, BuildError::FingerprintOutOfRange { got: 1, least: 2, limit: 58 });
    assert_eq!(filter.encode(), before);
    assert!((0..inserted).all(|i| filter.may_contain(&member_u64(2, i))));
}

#[test]
fn removing_a_certain_non_member_changes_nothing() {
    let mut filter = Quotient::for_capacity(1_000, 0.01, 3).unwrap();
    (0..1_000).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    let before = filter.encode();
    let mut turned_away = 0;
    for item in (0..21_000).map(non_member) {
        if !filter.may_contain(&item) {
            assert!(!filter.remove(&item));
            turned_away += 1;
        }
    }
    assert!(turned_away > 20_000, "{turned_away}");
    assert_eq!(filter.encode(), before);
}

/// Corrects the checksums of a damaged filter, so that the checks after them are reached.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let (header, payload) = bytes.split_at_mut(HEADER_BYTES);
    header[24..32].copy_from_slice(&xxh3_64(payload).to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
}

/// Everything a filter can do.
fn exercise(mut filter: Quotient) {
    let fingerprints: Vec<_> = filter.fingerprints().collect();
    assert_eq!(fingerprints.len() as u64, filter.distinct());
    assert_eq!(fingerprints.iter().map(|one| one.count).sum::<u64>(), filter.inserted());
    assert!((0.0..=1.0).contains(&filter.expected_fpr()) && filter.fill() <= 0.95);
    for i in 0..50_u64 {
        let before = filter.count(&i);
        if filter.insert(&i).is_ok() {
            assert_eq!(filter.count(&i), before + 1);
            assert!(filter.may_contain(&i) && filter.remove(&i));
        }
        assert_eq!(filter.count(&i), before);
    }
    let copy = filter.try_clone().unwrap();
    let _ = (filter.union(&copy), filter.double(), filter.estimated_items());
    assert_eq!(Quotient::decode(&filter.encode()).unwrap().encode(), filter.encode());
}

#[test]
fn damaged_bytes_are_errors_without_large_allocations() {
    let shape = QuotientShape::exactly(70, 4, 60).unwrap();
    let mut filter = Quotient::with_shape(shape, 1).unwrap();
    (0..35_u64).for_each(|i| {
        filter.insert(&i).unwrap();
    });
    (0..100).for_each(|_| {
        filter.insert("many").unwrap();
    });
    let bytes = filter.encode();
    let mut corruptor = Corruptor::new(&bytes);
    corruptor.truncations(|bytes, damage| assert!(Quotient::decode(bytes).is_err(), "{damage}"));
    corruptor.extensions(64, |bytes, damage| assert!(Quotient::decode(bytes).is_err(), "{damage}"));
    corruptor
        .bit_flips(0..bytes.len(), |bytes, damage| assert!(Quotient::decode(bytes).is_err(), "{damage}"));

    // With correct checksums: rejected, or a valid filter that keeps every guarantee for the contents it reports.
    let (mut sound, mut refused) = (0, 0);
    let mut show = |bytes: &[u8], damage: &mayhap_testkit::corrupt::Damage| {
        let (decoded, measured) = AllocMeter::measure(|| Quotient::decode(bytes));
        assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
        match decoded {
            Ok(filter) => {
                sound += 1;
                exercise(filter);
            }
            Err(_) => refused += 1,
        }
    };
    let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
    corruptor.bit_flips(HEADER_BYTES..bytes.len(), &mut show);
    corruptor.flips(3, 20_000, &mut show);
    let fields: Vec<(usize, usize)> =
        (8..16).step_by(2).map(|at| (at, 2)).chain((16..184).step_by(8).map(|at| (at, 8))).collect();
    corruptor.extremes(&fields, &mut show);
    assert!(sound > 100 && refused > 10_000, "{sound} valid, {refused} rejected");

    let counting = CountingBloom::for_capacity(10, 0.01, 0).unwrap().encode();
    assert!(matches!(Quotient::decode(&counting), Err(DecodeError::WrongKind { .. })));
}

#[test]
fn forged_fields_are_named() {
    let mut filter = Quotient::for_capacity(90, 0.01, 7).unwrap();
    (0..50_u64).for_each(|i| {
        filter.insert(&i).unwrap();
    });
    let bytes = filter.encode();
    let forge = |at: usize, field: u64| {
        let mut forged = bytes.clone();
        forged[at..at + 8].copy_from_slice(&field.to_le_bytes());
        seal(&mut forged);
        Quotient::decode(&forged).unwrap_err()
    };
    assert_eq!(forge(56, 49), DecodeError::BadField { field: "inserted", got: 49 });
    assert!(matches!(forge(48, 0), DecodeError::Unbuildable(BuildError::CapacityOutOfRange { .. })));
    assert!(matches!(forge(48, 1 << 40), DecodeError::Unbuildable(BuildError::CapacityOutOfRange { .. })));
    assert!(matches!(forge(72, 0), DecodeError::Unbuildable(BuildError::BitsOutOfRange { .. })));
    assert!(matches!(forge(72, u64::MAX), DecodeError::Unbuildable(BuildError::BitsOutOfRange { .. })));
    assert!(matches!(forge(72, 1 << 40), DecodeError::BadField { field: "payload length", .. }));
    assert!(matches!(forge(80, 1), DecodeError::Unbuildable(BuildError::FingerprintOutOfRange { .. })));
    assert!(matches!(forge(80, 59), DecodeError::Unbuildable(BuildError::FingerprintOutOfRange { .. })));
    assert!(matches!(forge(80, 1 << 40), DecodeError::BadField { field: "remainder bits", .. }));
    assert!(matches!(forge(88, 1), DecodeError::BadField { field: "unused parameter", .. }));
    assert!(matches!(
        forge(64, f64::NAN.to_bits()),
        DecodeError::Unbuildable(BuildError::RateOutOfRange { .. })
    ));
    assert!(matches!(forge(bytes.len() - 8, 1 << 60), DecodeError::StrayBit { .. }));
    assert!(matches!(forge(HEADER_BYTES, 0), DecodeError::BadField { .. }));
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |capacity, fpr: f64| {
        let (built, measured) = AllocMeter::measure(|| Quotient::for_capacity(capacity, fpr, 0));
        assert_eq!(measured.total_bytes, 0, "{capacity} {fpr}");
        built.map(|_| ()).unwrap_err()
    };
    for fpr in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateOutOfRange { .. }), "{fpr}");
    }
    assert!(matches!(refused(1_000, 1e-300), BuildError::RateTooLow { .. }));
    for capacity in [0, u64::MAX, (1 << 42) + 1] {
        assert!(matches!(refused(capacity, 0.01), BuildError::CapacityOutOfRange { .. }), "{capacity}");
    }
    let exactly = |homes, bits, capacity| QuotientShape::exactly(homes, bits, capacity).unwrap_err();
    for bits in [0, 1, 59, u32::MAX] {
        assert!(
            matches!(exactly(100, bits, 10), BuildError::FingerprintOutOfRange { got, .. } if got == bits)
        );
    }
    assert!(matches!(exactly(0, 8, 1), BuildError::BitsOutOfRange { .. }));
    assert!(matches!(exactly(u64::MAX, 8, 1), BuildError::BitsOutOfRange { .. }));
    assert_eq!(exactly(100, 8, 96), BuildError::CapacityOutOfRange { got: 96, limit: 95 });
    assert!(matches!(exactly(100, 8, 0), BuildError::CapacityOutOfRange { .. }));
    let doublings = QuotientShape::for_capacity_with_doublings(100, 0.01, u32::MAX).unwrap_err();
    assert!(matches!(doublings, BuildError::FingerprintOutOfRange { .. }));
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    for capacity in [1, 60, 1_000, 100_000, 1 << 17, (1 << 17) + 1] {
        for fpr in [0.1, 0.01, 0.001, 1e-9] {
            let shape = QuotientShape::for_capacity(capacity, fpr).unwrap();
            let filter = Quotient::with_shape(shape, HashScheme::keyed_random().unwrap()).unwrap();
            assert_eq!(filter.memory_bytes(), shape.memory_bytes());
            assert_eq!(filter.memory_bytes() as f64 * 8.0 / capacity as f64, filter.bits_per_item());
            assert!(shape.expected_fpr(capacity) <= fpr);
            // No jump at a power of two, and close to the bound of this layout everywhere.
            let bound = ((0.95 / fpr).log2().ceil() + 2.14) / 0.95;
            assert!(capacity < 100_000 || shape.bits_per_item() < bound * 1.005, "{capacity} {fpr}: {shape}");
        }
    }
    let shape = QuotientShape::for_capacity(100_000, 0.01).unwrap();
    let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
    assert_eq!(error, BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 });
    assert_eq!(shape.within(shape.memory_bytes()), Ok(shape));
}

#[test]
fn rates_far_below_the_resolution_of_one_word_are_kept() {
    // 40 bits of home and 45 of remainder: more than the 64 of half a hash. Two hashes that differ only in the other half.
    let shape = QuotientShape::exactly(1_000, 58, 900).unwrap();
    let mut filter = Quotient::with_shape(shape, 0).unwrap();
    let hash = |high: u64| ItemHash::from(WellMixed(u128::from(high) << 64 | 0x0123_4567_89ab_cdef));
    filter.insert_hash(hash(0)).unwrap();
    assert!(filter.may_contain_hash(hash(0)) && !filter.may_contain_hash(hash(1 << 63)));
}
