//! The promises of the counting filter.

mod support;

use mayhap::{
    Answers, Bloom, BloomShape, BuildError, CountingBloom, CountingShape, DecodeError, HashScheme, MergeError,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo, UnsticksCounters, WrapsCounters};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

fn counting(capacity: u64, fpr: f64, seed: u64) -> Tested {
    Tested::new(CountingBloom::for_capacity(capacity, fpr, seed).unwrap())
}

#[test]
fn never_forgets_remaining_members() {
    let script = Script::new(operations(), 2_000);
    let report = never_forgets(|seed| counting(2_000, 0.01, seed), &script).unwrap();
    assert_eq!(report.missing(), []);
    assert!(report.mayhap_to_removed > 0, "a removed item is a false positive as often as any non-member");
}

#[test]
fn never_forgets_among_many_copies_in_a_filter_far_too_small() {
    // 300 copies of up to 40 a number in 64 counters: nearly every counter has stuck at the end.
    let shape = CountingShape::exactly(64, 2, 64).unwrap();
    let make = |seed| Tested::new(CountingBloom::with_shape(shape, seed).unwrap());
    let script = Script { max_copies: 40, mayhap_limit: 1.0, ..Script::new(operations() / 10, 300) };
    assert_eq!(never_forgets(make, &script).unwrap().missing(), []);
}

#[test]
fn the_suites_have_teeth() {
    let script = Script::new(20_000, 1_000);
    assert!(never_forgets(|seed| WrapsCounters::for_capacity(1_000, 0.01, seed), &script).is_err());
    assert!(never_forgets(|seed| UnsticksCounters::for_capacity(1_000, 0.01, seed), &script).is_err());
    assert!(keeps_its_rate(|_| AlwaysNo, &plan(0.01, CAPACITY)).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan(0.01, CAPACITY)).is_err());
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate; ± 2 % is the stated error of the model.
fn plan(fpr: f64, items: u64) -> RatePlan<'static> {
    let non_members = (4_000.0 / fpr) as u64 / SEEDS.len() as u64;
    let rate = CountingShape::for_capacity(CAPACITY, fpr).unwrap().expected_fpr(CAPACITY);
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn full_filters_keep_their_rate_and_a_tenth_too_full_is_detected() {
    for fpr in [0.1, 0.01, 0.001] {
        let make = |seed| counting(CAPACITY, fpr, seed);
        let report = keeps_its_rate(make, &plan(fpr, CAPACITY)).unwrap();
        assert!(report.observed_fpr() <= fpr * 1.05, "{fpr}: {}", report.observed_fpr());
        let failure = keeps_its_rate(make, &plan(fpr, CAPACITY * 11 / 10)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{fpr}: {failure}");
    }
}

#[test]
fn the_filter_knows_its_rate_whatever_was_inserted_and_removed() {
    let mut filter = CountingBloom::for_capacity(CAPACITY, 0.01, 7).unwrap();
    assert_eq!(filter.expected_fpr(), 0.0);
    let at_capacity = filter.shape().expected_fpr(CAPACITY);
    // Three copies of each count three times in `inserted`, and once for the rate.
    for _ in 0..3 {
        (0..CAPACITY).for_each(|i| {
            filter.insert(&member_u64(7, i));
        });
        assert!((filter.expected_fpr() / at_capacity - 1.0).abs() < 0.02, "{}", filter.expected_fpr());
    }
    assert_eq!(filter.inserted(), 3 * CAPACITY);
    assert!((filter.estimated_items() as f64 / CAPACITY as f64 - 1.0).abs() < 0.01);
    let wrong = (0..400_000).filter(|&i| filter.may_contain(&non_member_u64(7, i))).count() as u64;
    assert!(band_with_model_error(400_000, filter.expected_fpr(), 1e-6, 0.02).contains(&wrong), "{wrong}");
    // Half of the items go out again, copy by copy.
    for _ in 0..3 {
        assert!((0..CAPACITY / 2).all(|i| filter.remove(&member_u64(7, i))));
    }
    assert_eq!(filter.inserted(), 3 * CAPACITY / 2);
    let half = filter.shape().expected_fpr(CAPACITY / 2);
    assert!((filter.expected_fpr() / half - 1.0).abs() < 0.05, "{} {half}", filter.expected_fpr());
    let decoded = CountingBloom::decode(&filter.encode()).unwrap();
    assert_eq!((decoded.fill(), decoded.inserted()), (filter.fill(), filter.inserted()));
    // All of them: only stuck counters are left, and the number of counters above zero has not drifted.
    for _ in 0..3 {
        assert!((CAPACITY / 2..CAPACITY).all(|i| filter.remove(&member_u64(7, i))));
    }
    let stuck = filter.saturated() as f64 / filter.shape().counters() as f64;
    assert_eq!((filter.inserted(), filter.fill()), (0, stuck));
    assert!(stuck < 0.002, "three copies of every item make one counter in a thousand stick, not {stuck}");
}

#[test]
fn copies_are_counted_one_by_one() {
    let mut filter = CountingBloom::for_capacity(100, 0.001, 0).unwrap();
    for copies in 1..=10 {
        assert_eq!(filter.insert("item"), copies == 1);
        assert_eq!(filter.count_estimate("item"), copies);
    }
    for left in (0..10).rev() {
        assert!(filter.remove("item"));
        assert_eq!(filter.count_estimate("item"), left);
        assert_eq!(filter.may_contain("item"), left > 0);
    }
    assert!(!filter.remove("item"));
    assert_eq!((filter.inserted(), filter.fill(), filter.overflows()), (0, 0.0, 0));
}

/// Twenty copies of one item go in and out among 500 others; the others that are forgotten then.
fn lost_to_saturation(mut filter: impl Subject) -> usize {
    (0..500).for_each(|i| {
        filter.insert(&member(i));
    });
    (0..20).for_each(|_| {
        filter.insert(b"hammered");
    });
    (0..20).for_each(|_| {
        filter.remove(b"hammered");
    });
    (0..500).filter(|&i| !filter.may_contain(&member(i))).count()
}

#[test]
fn saturation_loses_no_item() {
    let mut lost_by_the_twin = 0;
    for seed in SEEDS {
        assert_eq!(lost_to_saturation(counting(500, 0.01, seed)), 0);
        lost_by_the_twin += lost_to_saturation(UnsticksCounters::for_capacity(500, 0.01, seed));
    }
    assert!(lost_by_the_twin > 0, "a filter that decrements a stuck counter must be detected");
}

#[test]
fn stuck_counters_are_counted_and_reported() {
    let mut filter = CountingBloom::for_capacity(500, 0.01, 1).unwrap();
    let probes = u64::from(filter.shape().probes());
    (0..14).for_each(|_| {
        filter.insert("hammered");
    });
    assert_eq!((filter.saturated(), filter.overflows()), (0, 0));
    (0..6).for_each(|_| {
        filter.insert("hammered");
    });
    assert_eq!((filter.saturated(), filter.overflows(), filter.inserted()), (probes, 5 * probes, 20));
    assert_eq!(filter.count_estimate("hammered"), 15);
    (0..20).for_each(|_| assert!(filter.remove("hammered")));
    assert!(filter.may_contain("hammered"), "stuck for ever");
    assert_eq!((filter.saturated(), filter.overflows(), filter.inserted()), (probes, 5 * probes, 0));
    let decoded = CountingBloom::decode(&filter.encode()).unwrap();
    assert_eq!((decoded.saturated(), decoded.overflows()), (probes, 5 * probes));
    filter.clear();
    assert_eq!((filter.saturated(), filter.overflows(), filter.fill()), (0, 0, 0.0));
    assert!(!filter.may_contain("hammered"));
}

#[test]
fn different_items_make_as_many_counters_stick_as_the_model_says() {
    // Fourteen times too full, or there would be nothing to count.
    let (capacity, items) = (2_000, 28_000);
    let expected = CountingShape::for_capacity(capacity, 0.01).unwrap().expected_saturated(items);
    let saturated = |seed: u64| {
        let mut filter = CountingBloom::for_capacity(capacity, 0.01, seed).unwrap();
        (0..items).for_each(|i| {
            filter.insert(&member_u64(seed, i));
        });
        filter.saturated()
    };
    let mean = SEEDS.map(saturated).iter().sum::<u64>() as f64 / SEEDS.len() as f64;
    assert!(expected > 500.0 && (mean / expected - 1.0).abs() < 0.05, "{mean} stuck, {expected} expected");
}

/// Tiny filters, where the probes of an item meet in one counter all the time and everything saturates, against an exact
/// multiset.
#[test]
fn tiny_filters_never_forget() {
    for (counters, probes) in [(1, 1), (1, 7), (2, 3), (3, 20), (7, 5), (16, 7), (17, 4), (100, 10)] {
        let shape = CountingShape::exactly(counters, probes, 10).unwrap();
        let mut rng = Rng::new(counters * 100 + u64::from(probes));
        for round in 0..50 {
            let mut filter = CountingBloom::with_shape(shape, round).unwrap();
            let mut copies = [0_u32; 12];
            for _ in 0..200 {
                let item = rng.below(12);
                if rng.below(2) == 0 {
                    let new = filter.insert(&item);
                    assert!(!new || copies[item as usize] == 0, "a member is not new");
                    copies[item as usize] += 1;
                } else if copies[item as usize] > 0 {
                    assert!(filter.remove(&item), "a member can be removed");
                    copies[item as usize] -= 1;
                }
                for (item, &copies) in (0_u64..).zip(&copies) {
                    let estimate = filter.count_estimate(&item);
                    assert!(u32::from(estimate) >= copies.min(15), "{estimate} for {copies} copies");
                    assert!(copies == 0 || filter.may_contain(&item));
                }
            }
            assert_eq!(filter.inserted(), u64::from(copies.iter().sum::<u32>()));
            for (item, copies) in (0_u64..).zip(copies) {
                (0..copies).for_each(|_| assert!(filter.remove(&item)));
            }
            assert_eq!(filter.inserted(), 0);
            assert_eq!(
                filter.fill(),
                filter.saturated() as f64 / counters as f64,
                "only stuck counters are left"
            );
        }
    }
}

#[test]
fn removing_a_certain_non_member_changes_nothing() {
    let mut filter = CountingBloom::for_capacity(1_000, 0.01, 3).unwrap();
    (0..1_000).for_each(|i| {
        filter.insert(&member(i));
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
    assert!((0..1_000).all(|i| filter.may_contain(&member(i))));
}

#[test]
fn hashes_and_items_are_the_same() {
    let mut by_item = CountingBloom::for_capacity(300, 0.01, 5).unwrap();
    let mut by_hash = by_item.try_clone().unwrap();
    let items: Vec<Vec<u8>> = (0..300).map(member).collect();
    let hashes: Vec<_> = items.iter().map(|item| by_hash.hash(item)).collect();
    assert_eq!(by_item.insert_batch(&items), by_hash.insert_hash_batch(&hashes));
    for (item, hash) in items[..100].iter().zip(&hashes) {
        assert_eq!(by_item.insert(item), by_hash.insert_hash(*hash));
        assert_eq!(by_item.count_estimate(item), by_hash.count_estimate_hash(*hash));
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
    let empty = CountingBloom::for_capacity(400, 0.01, 5).unwrap();
    let [mut left, mut right, mut both] = std::array::from_fn(|_| empty.try_clone().unwrap());
    for i in 0..2_000 {
        // Few enough different items that many counters stick, in one of the two and by the sum of both.
        let item = member(i * i % 301);
        if i % 3 == 0 {
            left.insert(&item)
        } else {
            right.insert(&item)
        };
        both.insert(&item);
    }
    assert!(left.saturated() < both.saturated());
    left.union(&right).unwrap();
    assert_eq!(left.encode(), both.encode());

    let other_shape = CountingBloom::for_capacity(500, 0.01, 5).unwrap();
    let other_hash = CountingBloom::for_capacity(400, 0.01, 6).unwrap();
    assert!(matches!(left.union(&other_shape), Err(MergeError::ShapeDiffers { .. })));
    assert!(matches!(left.union(&other_hash), Err(MergeError::HashDiffers { .. })));
    assert_eq!(left.encode(), both.encode());
}

#[test]
fn the_plain_filter_has_the_same_bits() {
    for (counters, probes) in [(1, 1), (63, 3), (64, 3), (65, 3), (9_600, 7), (100_003, 5)] {
        let shape = CountingShape::exactly(counters, probes, 1_000).unwrap();
        let mut counting = CountingBloom::with_shape(shape, 9).unwrap();
        let mut plain = Bloom::with_shape(BloomShape::exactly(counters, probes, 1_000).unwrap(), 9).unwrap();
        for i in 0..1_000 {
            counting.insert(&member_u64(0, i));
            counting.insert(&non_member_u64(0, i));
            plain.insert(&member_u64(0, i));
        }
        (0..1_000).for_each(|i| assert!(counting.remove(&non_member_u64(0, i))));
        let made = counting.to_bloom().unwrap();
        assert_eq!(made.shape(), plain.shape());
        if counting.saturated() == 0 {
            assert_eq!(made.encode()[HEADER_BYTES..], plain.encode()[HEADER_BYTES..]);
        }
        assert!((0..3_000).all(|i| {
            let item = non_member_u64(1, i);
            counting.may_contain(&item) == made.may_contain(&item)
        }));
        assert_eq!(made.fill(), counting.fill());
    }
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

#[test]
fn damaged_bytes_are_errors_without_large_allocations() {
    // 70 counters: there is room for stray ones after them.
    let shape = CountingShape::exactly(70, 3, 10).unwrap();
    let mut filter = CountingBloom::with_shape(shape, 1).unwrap();
    (0..10_u64).for_each(|i| {
        filter.insert(&i);
    });
    let bytes = filter.encode();
    let mut corruptor = Corruptor::new(&bytes);
    corruptor.truncations(|bytes, damage| assert!(CountingBloom::decode(bytes).is_err(), "{damage}"));
    corruptor.extensions(64, |bytes, damage| assert!(CountingBloom::decode(bytes).is_err(), "{damage}"));
    corruptor.bit_flips(0..bytes.len(), |bytes, damage| {
        assert!(CountingBloom::decode(bytes).is_err(), "{damage}");
    });

    let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
    corruptor.bit_flips(HEADER_BYTES + 35..bytes.len(), |bytes, damage| {
        assert!(matches!(CountingBloom::decode(bytes), Err(DecodeError::StrayBit { .. })), "{damage}");
    });
    let fields: Vec<(usize, usize)> =
        (8..16).step_by(2).map(|at| (at, 2)).chain((16..184).step_by(8).map(|at| (at, 8))).collect();
    corruptor.extremes(&fields, |bytes, damage| {
        let (decoded, measured) = AllocMeter::measure(|| CountingBloom::decode(bytes));
        assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
        if let Ok(mut filter) = decoded {
            // Counts may be wrong, but that is harmless.
            assert!(filter.insert(&99_u64) || filter.may_contain(&99_u64), "{damage}");
            assert!(filter.remove(&99_u64), "{damage}");
            assert!((0.0..=1.0).contains(&filter.expected_fpr()), "{damage}");
        }
    });
    let plain = filter.to_bloom().unwrap().encode();
    assert!(matches!(CountingBloom::decode(&plain), Err(DecodeError::WrongKind { .. })));
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |capacity, fpr: f64| {
        let (built, measured) = AllocMeter::measure(|| CountingBloom::for_capacity(capacity, fpr, 0));
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
    assert!(matches!(refused(1 << 42, 1e-15), BuildError::CountersOutOfRange { .. }));
    let exactly =
        |counters, probes, capacity| CountingShape::exactly(counters, probes, capacity).unwrap_err();
    assert!(matches!(exactly(0, 1, 1), BuildError::CountersOutOfRange { got: 0, .. }));
    assert!(matches!(exactly(u64::MAX, 1, 1), BuildError::CountersOutOfRange { .. }));
    assert!(matches!(exactly(64, 0, 1), BuildError::ProbesOutOfRange { got: 0, .. }));
    assert!(matches!(exactly(64, 65, 1), BuildError::ProbesOutOfRange { got: 65, limit: 64 }));
    assert!(matches!(exactly(64, 1, 0), BuildError::CapacityOutOfRange { .. }));
    for bytes in [0, 7, u64::MAX] {
        let error = CountingShape::for_memory(bytes, 100).unwrap_err();
        assert!(matches!(error, BuildError::CountersOutOfRange { .. }), "{bytes}");
    }
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    let shape = CountingShape::for_capacity(100_000, 0.01).unwrap();
    let filter = CountingBloom::with_shape(shape, HashScheme::keyed_random().unwrap()).unwrap();
    assert_eq!(filter.memory_bytes(), shape.memory_bytes());
    assert_eq!(filter.memory_bytes() as f64 * 8.0 / 100_000.0, filter.bits_per_item());
    let plain = BloomShape::for_capacity(100_000, 0.01).unwrap();
    assert!(shape.memory_bytes() <= 4 * plain.memory_bytes());
    let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
    assert_eq!(error, BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 });
    assert_eq!(shape.within(shape.memory_bytes()), Ok(shape));
    let best = CountingShape::for_memory(shape.memory_bytes(), 100_000).unwrap();
    assert!(best.target_fpr() <= 0.01 && best.memory_bytes() <= shape.memory_bytes());
}
