//! The promises of the d-left filter.

mod support;

use std::collections::HashMap;

use mayhap::{
    Answers, BuildError, CountingBloom, CountingShape, DLeft, DLeftShape, DecodeError, HashScheme,
    InsertError, ItemHash, MergeError,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo, UnsticksCounters};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::{Rng, mix};
use mayhap_testkit::suite::{Failure, RatePlan, Refusals, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Tested {
    Tested::new(DLeft::for_capacity(capacity, fpr, seed).unwrap())
}

fn exactly(buckets: u64, fingerprint_bits: u32, seed: u64) -> DLeft {
    let shape = DLeftShape::exactly(buckets, fingerprint_bits, buckets * 24).unwrap();
    DLeft::with_shape(shape, seed).unwrap()
}

/// The mistake the placement is there to avoid: four buckets that have nothing to do with each other, and a removal that takes the
/// first slot with the right fingerprint.
struct FourUnrelatedBuckets {
    buckets: u64,
    seed: u64,
    tables: [Vec<Vec<u8>>; 4],
}

impl FourUnrelatedBuckets {
    fn new(buckets: u64, seed: u64) -> Self {
        Self { buckets, seed, tables: std::array::from_fn(|_| vec![Vec::new(); buckets as usize]) }
    }

    /// The fingerprint, of four bits, and a bucket in each sub-table.
    fn place(&self, item: &[u8]) -> (u8, [usize; 4]) {
        let hash = xxh3_64(item) ^ self.seed;
        let buckets = [1, 2, 3, 4].map(|table| (mix(hash ^ (table << 40)) % self.buckets) as usize);
        ((mix(hash) & 15) as u8, buckets)
    }
}

impl Subject for FourUnrelatedBuckets {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let (print, buckets) = self.place(item);
        let least = (0..4).min_by_key(|&table| self.tables[table][buckets[table]].len()).unwrap();
        self.tables[least][buckets[least]].push(print);
        Inserted::Mayhap
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        let (print, buckets) = self.place(item);
        (0..4).any(|table| self.tables[table][buckets[table]].contains(&print))
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        let (print, buckets) = self.place(item);
        for (table, bucket) in self.tables.iter_mut().zip(buckets) {
            if let Some(slot) = table[bucket].iter().position(|&other| other == print) {
                table[bucket].swap_remove(slot);
                return Some(true);
            }
        }
        Some(false)
    }
}

#[test]
fn never_forgets_remaining_members() {
    let script = Script::new(operations(), 2_000);
    let report = never_forgets(|seed| for_capacity(2_000, 0.01, seed), &script).unwrap();
    assert_eq!(report.missing(), []);
    assert!(report.mayhap_to_removed > 0, "a removed item is a false positive as often as any non-member");
}

#[test]
fn never_forgets_whatever_the_size() {
    for (capacity, fpr, seed) in [(64, 0.3, 1), (100, 1e-3, 2), (333, 1e-6, 3), (1_000, 1e-9, 4)] {
        let script = Script { seed, max_copies: 20, ..Script::new(operations() / 20, capacity) };
        assert_eq!(never_forgets(|seed| for_capacity(capacity, fpr, seed), &script).unwrap().missing(), []);
    }
}

#[test]
fn fingerprints_of_four_bits_collide_often_and_no_item_is_lost() {
    // Of 100 · 16 pairs 1 500 items take some 1 000: nearly every item shares its own with others.
    let script = Script { max_copies: 4, mayhap_limit: 1.0, ..Script::new(operations() / 4, 1_500) };
    let report = never_forgets(|seed| Tested::new(exactly(100, 4, seed)), &script).unwrap();
    assert_eq!(report.missing(), []);
    let failure = never_forgets(|seed| FourUnrelatedBuckets::new(100, seed), &script).unwrap_err();
    assert!(matches!(failure, Failure::Forgot { .. } | Failure::WouldNotRemove { .. }), "{failure}");
}

#[test]
fn never_forgets_among_refusals() {
    // 300 copies in 96 slots: it is full most of the time.
    let script = Script {
        max_copies: 2,
        mayhap_limit: 1.0,
        refusals: Refusals::Counted,
        ..Script::new(operations() / 10, 300)
    };
    let script = Script { merges: 0, ..script };
    let report = never_forgets(|seed| Tested::new(exactly(3, 10, seed)), &script).unwrap();
    assert!(report.refused > 1_000, "{}", report.refused);
}

#[test]
fn the_suites_have_teeth() {
    let script = Script::new(20_000, 1_000);
    assert!(never_forgets(|seed| UnsticksCounters::for_capacity(1_000, 0.01, seed), &script).is_err());
    assert!(keeps_its_rate(|_| AlwaysNo, &plan(0.01, CAPACITY)).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan(0.01, CAPACITY)).is_err());
}

/// Inserts and removes a few items in filters of a few tiny fingerprints, compared with an exact multiset: every remaining item is found, is counted at
/// least as often as it is present, and can be removed as often.
#[test]
fn storms_on_colliding_fingerprints_lose_no_item() {
    for (buckets, bits) in [(1, 1), (1, 3), (2, 1), (3, 2), (7, 1), (16, 3), (5, 7), (9, 38)] {
        let mut rng = Rng::new(buckets * 100 + u64::from(bits));
        for round in 0..40 {
            let mut filter = exactly(buckets, bits, round);
            let mut copies = [0_u32; 12];
            for _ in 0..300 {
                let item = rng.below(12);
                if rng.below(5) < 3 {
                    let before = filter.encode();
                    match filter.insert(&item) {
                        Ok(new) => {
                            assert!(!new || copies[item as usize] == 0, "a member is not new");
                            copies[item as usize] += 1;
                        }
                        Err(InsertError::Full { .. }) => assert_eq!(filter.encode(), before),
                        Err(other) => panic!("{other}"),
                    }
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
            // Only stuck counters are left: five slots each.
            let stuck = 5.0 * filter.saturated() as f64 / filter.shape().slots() as f64;
            assert!((filter.fill() - stuck).abs() < 1e-12, "{} {stuck}", filter.fill());
        }
    }
}

/// The filter is an exact multiset of pairs of bucket and fingerprint: if those are known, so is every count.
#[test]
fn counts_are_exact_for_all_items_that_share_a_pair() {
    let mut filter = exactly(50, 4, 9);
    // Filters with a single item tell which items share a pair.
    let alone: Vec<DLeft> = (0..200_u64)
        .map(|item| {
            let mut alone = exactly(50, 4, 9);
            alone.insert(&item).unwrap();
            alone
        })
        .collect();
    let pair_of = |item: u64| (0..200).find(|&other| alone[other as usize].may_contain(&item)).unwrap();
    let pairs: Vec<u64> = (0..200).map(pair_of).collect();
    let mut counts: HashMap<u64, u32> = HashMap::new();
    let mut rng = Rng::new(4);
    let mut held: Vec<u64> = Vec::new();
    for _ in 0..20_000 {
        if held.len() < 400 && (held.is_empty() || rng.below(2) == 0) {
            let item = rng.below(200);
            // Below the count that sticks.
            if counts.get(&pairs[item as usize]).is_none_or(|&count| count < 14) {
                assert_eq!(
                    filter.insert(&item),
                    Ok(counts.get(&pairs[item as usize]).is_none_or(|&c| c == 0))
                );
                *counts.entry(pairs[item as usize]).or_default() += 1;
                held.push(item);
            }
        } else {
            let item = held.swap_remove(rng.below(held.len() as u64) as usize);
            assert!(filter.remove(&item));
            *counts.get_mut(&pairs[item as usize]).unwrap() -= 1;
        }
        let item = rng.below(200);
        let count = counts.get(&pairs[item as usize]).copied().unwrap_or(0);
        assert_eq!(u32::from(filter.count_estimate(&item)), count);
        let distinct = counts.values().filter(|&&count| count > 0).count();
        assert_eq!(filter.expected_fpr(), distinct as f64 / 800.0);
    }
    assert_eq!((filter.saturated(), filter.overflows()), (0, 0));
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate. The model is exact; filters differ in how many pairs their items share, which is a fraction of a
/// percent.
fn plan(fpr: f64, items: u64) -> RatePlan<'static> {
    let non_members = (4_000.0 / fpr) as u64 / SEEDS.len() as u64;
    let rate = DLeftShape::for_capacity(CAPACITY, fpr).unwrap().expected_fpr(CAPACITY);
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.005);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn full_filters_keep_their_rate_and_a_tenth_too_full_is_detected() {
    // At some of these rates the load determines the size, at others the rate itself.
    for fpr in [0.1, 0.04, 0.01, 0.001] {
        let make = |seed| for_capacity(CAPACITY, fpr, seed);
        let report = keeps_its_rate(make, &plan(fpr, CAPACITY)).unwrap();
        assert!(report.observed_fpr() <= fpr * 1.05, "{fpr}: {}", report.observed_fpr());
        let failure = keeps_its_rate(make, &plan(fpr, CAPACITY * 115 / 100)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. } | Failure::Refused { .. }), "{fpr}: {failure}");
    }
}

#[test]
fn the_filter_knows_its_rate_whatever_was_inserted_and_removed() {
    let mut filter = DLeft::for_capacity(CAPACITY, 0.01, 7).unwrap();
    assert_eq!(filter.expected_fpr(), 0.0);
    let at_capacity = filter.shape().expected_fpr(CAPACITY);
    // Three copies of each count three times in `inserted`, and once for the rate and the room.
    for _ in 0..3 {
        (0..CAPACITY).for_each(|i| {
            filter.insert(&member_u64(7, i)).unwrap();
        });
        assert!((filter.expected_fpr() / at_capacity - 1.0).abs() < 0.01, "{}", filter.expected_fpr());
        assert!((0.76..=0.77).contains(&filter.fill()), "{}", filter.fill());
    }
    assert_eq!(filter.inserted(), 3 * CAPACITY);
    assert!((filter.estimated_items() as f64 / CAPACITY as f64 - 1.0).abs() < 0.005);
    let wrong = (0..800_000).filter(|&i| filter.may_contain(&non_member_u64(7, i))).count() as u64;
    assert!(band_with_model_error(800_000, filter.expected_fpr(), 1e-6, 0.001).contains(&wrong), "{wrong}");
    for _ in 0..3 {
        assert!((0..CAPACITY / 2).all(|i| filter.remove(&member_u64(7, i))));
    }
    assert_eq!(filter.inserted(), 3 * CAPACITY / 2);
    let half = filter.shape().expected_fpr(CAPACITY / 2);
    assert!((filter.expected_fpr() / half - 1.0).abs() < 0.01, "{} {half}", filter.expected_fpr());
    let decoded = DLeft::decode(&filter.encode()).unwrap();
    assert_eq!((decoded.fill(), decoded.inserted()), (filter.fill(), filter.inserted()));
    for _ in 0..3 {
        assert!((CAPACITY / 2..CAPACITY).all(|i| filter.remove(&member_u64(7, i))));
    }
    assert_eq!((filter.inserted(), filter.fill(), filter.expected_fpr()), (0, 0.0, 0.0));
    assert!(filter.encode()[HEADER_BYTES..].iter().all(|&byte| byte == 0), "nothing is left");
}

#[test]
fn every_honest_item_finds_room_up_to_capacity() {
    // Every size up to a few hundred, then some, several filters of each.
    let sizes = (1..=400).chain((401..5_000).step_by(97)).chain([20_011, 100_003]);
    for capacity in sizes {
        for seed in 0..if capacity < 5_000 { 6 } else { 2 } {
            for fpr in [0.3, 0.01] {
                let mut filter = DLeft::for_capacity(capacity, fpr, seed).unwrap();
                let items: Vec<u64> = (0..capacity).map(|i| member_u64(seed, i)).collect();
                assert!(filter.insert_batch(&items).is_ok(), "{capacity} items at {fpr}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_million_items_fit_and_still_fit_after_all_of_them_changed() {
    let mut filter = DLeft::for_capacity(1_000_000, 0.01, 3).unwrap();
    let items = |from: u64| (from..from + 1_000_000).map(|i| member_u64(1, i)).collect::<Vec<u64>>();
    filter.insert_batch(&items(0)).unwrap();
    // Items go out at random, each for a new one, until a lifetime and more is over.
    let (mut held, mut rng) = (items(0), Rng::new(8));
    for i in 0..1_500_000 {
        let at = rng.below(held.len() as u64) as usize;
        let (old, new) = (held[at], member_u64(1, 1_000_000 + i));
        assert!(filter.remove(&old));
        filter.insert(&new).unwrap();
        held[at] = new;
    }
    let mut answers = Answers::new();
    filter.may_contain_batch(&held, &mut answers);
    assert_eq!(answers.maybe_count(), held.len());
    assert_eq!(filter.inserted(), 1_000_000);
    assert!((filter.expected_fpr() / filter.shape().expected_fpr(1_000_000) - 1.0).abs() < 0.01);
}

#[test]
fn copies_are_counted_one_by_one_up_to_fifteen() {
    let mut filter = DLeft::for_capacity(100, 0.001, 0).unwrap();
    for copies in 1..=14 {
        assert_eq!(filter.insert("item"), Ok(copies == 1));
        assert_eq!(filter.count_estimate("item"), copies);
    }
    let slots = filter.shape().slots() as f64;
    assert!((filter.fill() - 5.0 / slots).abs() < 1e-12, "three to a slot");
    for left in (0..14).rev() {
        assert!(filter.remove("item"));
        assert_eq!(filter.count_estimate("item"), left);
        assert_eq!(filter.may_contain("item"), left > 0);
    }
    assert!(!filter.remove("item"));
    assert_eq!((filter.inserted(), filter.fill(), filter.overflows()), (0, 0.0, 0));
}

#[test]
fn stuck_counts_are_reported_and_lose_no_item() {
    for seed in SEEDS {
        let mut filter = DLeft::for_capacity(500, 0.01, seed).unwrap();
        (0..490).for_each(|i| {
            filter.insert(&member(i)).unwrap();
        });
        (0..14).for_each(|_| {
            filter.insert("hammered").unwrap();
        });
        assert_eq!((filter.saturated(), filter.overflows()), (0, 0));
        (0..1_000).for_each(|_| assert_eq!(filter.insert("hammered"), Ok(false)));
        assert_eq!((filter.saturated(), filter.overflows(), filter.inserted()), (1, 999, 1_504));
        assert_eq!(filter.count_estimate("hammered"), 15);
        let decoded = DLeft::decode(&filter.encode()).unwrap();
        assert_eq!((decoded.saturated(), decoded.overflows()), (1, 999));
        (0..1_014).for_each(|_| assert!(filter.remove("hammered")));
        assert!(filter.may_contain("hammered"), "stuck for ever");
        assert_eq!((filter.saturated(), filter.inserted()), (1, 490));
        assert!((0..490).all(|i| filter.may_contain(&member(i))));
        filter.clear();
        assert_eq!((filter.saturated(), filter.overflows(), filter.fill()), (0, 0, 0.0));
        assert!(!filter.may_contain("hammered"));
    }
}

#[test]
fn a_full_filter_refuses_loses_nothing_and_takes_items_again_later() {
    let mut filter = exactly(20, 20, 1);
    let mut held = Vec::new();
    let mut refused = 0;
    for i in 0..700 {
        let before = filter.encode();
        match filter.insert(&member_u64(1, i)) {
            Ok(_) => held.push(i),
            Err(error) => {
                refused += 1;
                assert_eq!(error, InsertError::Full { inserted: held.len() as u64, capacity: 480 });
                assert_eq!(filter.encode(), before);
            }
        }
    }
    assert!(refused > 60 && held.len() > 600, "{refused} rejected, {} members", held.len());
    assert!(held.iter().all(|&i| filter.may_contain(&member_u64(1, i))));
    // Copies of members are still accepted: they need no extra room.
    assert!(held.iter().all(|&i| filter.insert(&member_u64(1, i)) == Ok(false)));
    assert!(held.iter().all(|&i| filter.remove(&member_u64(1, i)) && filter.remove(&member_u64(1, i))));
    assert_eq!((filter.inserted(), filter.fill()), (0, 0.0));
    assert!((0..400).all(|i| filter.insert(&member_u64(2, i)).is_ok()));
}

#[test]
fn removing_a_certain_non_member_changes_nothing() {
    let mut filter = DLeft::for_capacity(1_000, 0.01, 3).unwrap();
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

#[test]
fn hashes_and_items_are_the_same() {
    // One filter of every number of words a bucket can need.
    for fpr in [0.3, 0.01, 1e-3, 1e-6, 1e-9] {
        let mut by_item = DLeft::for_capacity(300, fpr, 5).unwrap();
        let mut by_hash = by_item.try_clone().unwrap();
        let items: Vec<Vec<u8>> = (0..300).map(member).collect();
        let hashes: Vec<ItemHash> = items.iter().map(|item| by_hash.hash(item)).collect();
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
}

#[test]
fn a_union_equals_a_filter_with_all_items_inserted() {
    let empty = DLeft::for_capacity(400, 0.01, 5).unwrap();
    let [mut left, mut right, mut both] = std::array::from_fn(|_| empty.try_clone().unwrap());
    for i in 0..1_000 {
        // Few different items, so that some counts saturate: in one of the two, and by their sum.
        let item = member(i * i % 73);
        let side = if i % 3 == 0 { &mut left } else { &mut right };
        side.insert(&item).unwrap();
        both.insert(&item).unwrap();
    }
    assert!(left.saturated() < both.saturated() && right.saturated() > 0);
    left.union(&right).unwrap();
    let accounts = |filter: &DLeft| {
        [filter.inserted(), filter.saturated(), filter.overflows(), (filter.fill() * 1e9) as u64]
    };
    assert_eq!(accounts(&left), accounts(&both));
    assert_eq!(left.expected_fpr(), both.expected_fpr());
    for item in (0..100).map(member).chain((0..1_000).map(non_member)) {
        assert_eq!(left.count_estimate(&item), both.count_estimate(&item));
    }

    let other_shape = DLeft::for_capacity(500, 0.01, 5).unwrap();
    let other_hash = DLeft::for_capacity(400, 0.01, 6).unwrap();
    let before = left.encode();
    assert!(matches!(left.union(&other_shape), Err(MergeError::ShapeDiffers { .. })));
    assert!(matches!(left.union(&other_hash), Err(MergeError::HashDiffers { .. })));
    // Twice the capacity does not fit.
    let mut others = empty.try_clone().unwrap();
    (0..380).for_each(|i| {
        others.insert(&non_member(i)).unwrap();
    });
    let mut full = empty.try_clone().unwrap();
    (0..400).for_each(|i| {
        full.insert(&member(i)).unwrap();
    });
    let full_before = full.encode();
    assert_eq!(full.union(&others), Err(MergeError::Full { inserted: 780, capacity: 400 }));
    assert_eq!((left.encode(), full.encode()), (before, full_before));
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

/// Uses a filter in every way; it only has to return.
fn exercise(mut filter: DLeft) {
    let items: Vec<u64> = (0..40).collect();
    let mut answers = Answers::new();
    let _ = (filter.insert(&99_u64), filter.insert_batch(&items), filter.remove(&99_u64));
    filter.may_contain_batch(&items, &mut answers);
    let copy = DLeft::decode(&filter.encode()).unwrap();
    let _ = (filter.union(&copy), filter.count_estimate(&99_u64), filter.estimated_items());
    let _ = (filter.saturated(), filter.overflows(), filter.bits_per_item(), filter.inserted());
    assert!((0.0..=1.0).contains(&filter.expected_fpr()) && (0.0..=1.0).contains(&filter.fill()));
    (0..50).for_each(|_| {
        filter.remove(&7_u64);
    });
    filter.clear();
}

#[test]
fn damaged_bytes_are_errors_without_large_allocations() {
    let shape = DLeftShape::exactly(2, 9, 10).unwrap();
    let mut filter = DLeft::with_shape(shape, 1).unwrap();
    (0..10_u64).for_each(|i| {
        filter.insert(&i).unwrap();
    });
    let bytes = filter.encode();
    let mut corruptor = Corruptor::new(&bytes);
    corruptor.truncations(|bytes, damage| assert!(DLeft::decode(bytes).is_err(), "{damage}"));
    corruptor.extensions(64, |bytes, damage| assert!(DLeft::decode(bytes).is_err(), "{damage}"));
    corruptor.bit_flips(0..bytes.len(), |bytes, damage| {
        assert!(DLeft::decode(bytes).is_err(), "{damage}");
    });

    let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
    // 8 buckets of 11 bytes, and nothing after them.
    corruptor.bit_flips(HEADER_BYTES + 88..bytes.len(), |bytes, damage| {
        assert!(matches!(DLeft::decode(bytes), Err(DecodeError::StrayBit { .. })), "{damage}");
    });
    let fields: Vec<(usize, usize)> =
        (8..16).step_by(2).map(|at| (at, 2)).chain((16..184).step_by(8).map(|at| (at, 8))).collect();
    corruptor.extremes(&fields, |bytes, damage| {
        let (decoded, measured) = AllocMeter::measure(|| DLeft::decode(bytes));
        assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
        decoded.into_iter().for_each(exercise);
    });
    // Slots full of random bits: lookups and counts may be wrong, but must return.
    corruptor.flips(5, 3_000, |bytes, _| DLeft::decode(bytes).into_iter().for_each(exercise));
    let mut nonsense = bytes.clone();
    nonsense[HEADER_BYTES..HEADER_BYTES + 88].fill(0xff);
    seal(&mut nonsense);
    exercise(DLeft::decode(&nonsense).unwrap());
    let counting = CountingBloom::for_capacity(10, 0.01, 1).unwrap().encode();
    assert!(matches!(DLeft::decode(&counting), Err(DecodeError::WrongKind { .. })));
}

#[test]
fn contradictory_counts_are_rejected() {
    let mut filter = DLeft::with_shape(DLeftShape::exactly(2, 9, 10).unwrap(), 1).unwrap();
    (0..10_u64).for_each(|i| {
        filter.insert(&i).unwrap();
    });
    let forged = |parameter: usize, value: u64| {
        let mut bytes = filter.encode();
        bytes[72 + 8 * parameter..80 + 8 * parameter].copy_from_slice(&value.to_le_bytes());
        seal(&mut bytes);
        DLeft::decode(&bytes).map(|_| ())
    };
    assert_eq!(forged(2, 10), Ok(()));
    assert_eq!(forged(2, 65), Err(DecodeError::BadField { field: "slots taken", got: 65 }));
    assert_eq!(forged(3, 11), Err(DecodeError::BadField { field: "fingerprints", got: 11 }));
    assert_eq!(forged(4, 3), Err(DecodeError::BadField { field: "stuck counts", got: 3 }));
    assert_eq!(forged(6, 1), Err(DecodeError::BadField { field: "unused parameter", got: 1 }));
    assert!(matches!(forged(0, 0), Err(DecodeError::Unbuildable(BuildError::BitsOutOfRange { .. }))));
    assert!(matches!(forged(1, 39), Err(DecodeError::Unbuildable(BuildError::FingerprintOutOfRange { .. }))));
    assert!(matches!(forged(1, 1 << 40), Err(DecodeError::BadField { field: "fingerprint bits", .. })));
    assert!(matches!(forged(0, 1 << 30), Err(DecodeError::BadField { field: "payload length", .. })));
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |capacity, fpr: f64| {
        let (built, measured) = AllocMeter::measure(|| DLeft::for_capacity(capacity, fpr, 0));
        assert_eq!(measured.total_bytes, 0, "{capacity} {fpr}");
        built.map(|_| ()).unwrap_err()
    };
    for fpr in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateOutOfRange { .. }), "{fpr}");
    }
    assert_eq!(refused(1_000, 1e-11), BuildError::RateTooLow { got: 1e-11, limit: 1e-10 });
    for capacity in [0, u64::MAX, (1 << 42) + 1] {
        assert!(matches!(refused(capacity, 0.01), BuildError::CapacityOutOfRange { .. }), "{capacity}");
    }
    let exactly = |buckets, bits, capacity| DLeftShape::exactly(buckets, bits, capacity).unwrap_err();
    assert!(matches!(exactly(0, 8, 1), BuildError::BitsOutOfRange { got: 0, .. }));
    assert!(matches!(exactly(u64::MAX, 8, 1), BuildError::BitsOutOfRange { .. }));
    assert_eq!(exactly(64, 0, 1), BuildError::FingerprintOutOfRange { got: 0, least: 1, limit: 38 });
    assert!(matches!(exactly(64, 39, 1), BuildError::FingerprintOutOfRange { got: 39, .. }));
    assert!(matches!(exactly(64, u32::MAX, 1), BuildError::FingerprintOutOfRange { .. }));
    assert!(matches!(exactly(64, 8, 0), BuildError::CapacityOutOfRange { .. }));
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    let shape = DLeftShape::for_capacity(100_000, 0.01).unwrap();
    let filter = DLeft::with_shape(shape, HashScheme::keyed_random().unwrap()).unwrap();
    assert_eq!(filter.memory_bytes(), shape.memory_bytes());
    assert_eq!(filter.memory_bytes() as f64 * 8.0 / 100_000.0, filter.bits_per_item());
    let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
    assert_eq!(error, BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 });
    assert_eq!(shape.within(shape.memory_bytes()), Ok(shape));
    for (fpr, most) in [(0.01, 0.48), (0.001, 0.40), (1e-6, 0.31)] {
        let (dleft, counting) = (
            DLeftShape::for_capacity(1_000_000, fpr).unwrap(),
            CountingShape::for_capacity(1_000_000, fpr).unwrap(),
        );
        let ratio = dleft.bits_per_item() / counting.bits_per_item();
        assert!(ratio < most, "{fpr}: {ratio}");
    }
}
